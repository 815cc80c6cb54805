"""Propagation by sandwich products: F ← V F reverse(V), step by step or by an associative scan.

The state is only ever moved by versors; nothing here normalises, rounds, selects or repairs it. `engine.safety.hotpath`
proves that from the traces of `propagate_program` and `parallel_program`, the programs that are compiled and called.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from engine.algebra.arguments import MotorLike, coefficients
from engine.algebra.resident import Resident, from_resident, to_resident
from engine.base.errors import ShapeError
from engine.field.closure import (
    TOLERANCE,
    Closure,
    Watch,
    assert_closed,
    begin,
    closed_to_rounding,
    finish,
    squared_residual,
    watch,
)
from engine.field.lanes import multiply_lanes, squares_of_lanes, step_lanes
from engine.field.state import FieldState

COMPOSITIONS = ("compose",)
"""Names of the jitted functions by which `propagate_parallel` combines operators, for the hot-path proof."""


class Propagated(NamedTuple):
    """What `run` returns: the pair of `propagate`, whose closure has been asserted; `motor` is the state's."""

    state: FieldState
    closure: Closure

    @property
    def motor(self) -> Float[Array, "*batch 16"]:
        """The motors of the state, (..., 16)."""
        return self.state.motor


def run(state: FieldState, versors: MotorLike) -> Propagated:
    """Move `state` by `versors` (steps, ..., 16) and raise `VersorClosureError` if it left the versor manifold.

    The default way to propagate: returns the pair that `propagate` returns. Shapes and other errors as for `propagate`;
    `TracedCheckError` inside jit and vmap, where nothing can be raised.
    """
    moved, closure = propagate(state, versors)
    assert_closed(closure)
    return Propagated(moved, closure)


def propagate(state: FieldState, versors: MotorLike) -> tuple[FieldState, Closure]:
    """Move `state` (..., 16) by `versors` (steps, ..., 16) in order; also the closure of every state on the way.

    The versors' batch broadcasts against the state's, so that (steps, 16) serves every sample. Low level: the closure
    is part of the result and whoever calls this looks at it. Safe under jit, vmap, grad and shard_map. Zero steps give
    the closure of the initial state, an empty batch an empty closure. Raises `PrecisionError` and `ShapeError`.
    """
    return propagate_program(*aligned(state, versors))


def propagate_parallel(state: FieldState, versors: MotorLike) -> tuple[FieldState, Closure]:
    """`propagate` by an associative scan over the steps: logarithmic depth, memory for the states of all steps.

    Equal to `propagate` up to rounding, which here goes with the norm of the composed versors.
    """
    return parallel_program(*aligned(state, versors))


def aligned(state: FieldState, versors: MotorLike) -> tuple[FieldState, Array]:
    """State and versors with batches of the same rank; the state has the broadcast batch."""
    motor = coefficients(state.motor, 16, "state.motor")
    rows = coefficients(versors, 16, "versors")
    if rows.ndim < 2:
        raise ShapeError(f"versors have shape {rows.shape}; (steps, ..., 16) is needed")
    try:
        batch = jnp.broadcast_shapes(motor.shape[:-1], rows.shape[1:-1])
    except ValueError as error:
        raise ShapeError(f"batch axes do not broadcast: state {motor.shape}, versors {rows.shape}") from error
    missing = len(batch) + 2 - rows.ndim
    rows = rows.reshape(rows.shape[0], *(1,) * missing, *rows.shape[1:])
    return FieldState(jnp.broadcast_to(motor, (*batch, 16))), rows


def _propagate(state: FieldState, versors: Float[Array, "steps *rows 16"]) -> tuple[FieldState, Closure]:
    batch, steps = state.motor.shape[:-1], versors.shape[0]
    if steps == 0:
        return _standing(state)
    shared = _is_shared(versors)
    # Versors shared by the batch enter once, as one lane that broadcasts; others enter as they are read.
    rows = to_resident(versors.reshape(steps, 16), lead=1, fill=None) if shared else versors

    def step(carry: tuple[Array, Watch], row: tuple[Int[Array, ""], Array]) -> tuple[tuple[Array, Watch], None]:
        motor, seen = carry
        number, versor = row
        if not shared:
            versor = to_resident(jnp.broadcast_to(versor, (*batch, 16)), fill=None)
        moved = step_lanes(jnp.broadcast_to(versor, motor.shape), motor)
        return (moved, watch(seen, number, *squares_of_lanes(moved))), None

    entered = to_resident(state.motor, fill=None)
    start = (entered, begin(*squares_of_lanes(entered)))
    (motor, seen), _ = lax.scan(step, start, (jnp.arange(1, steps + 1), rows))
    return _leave(motor, seen, batch, versors)


@jax.jit
def compose(later: Resident, earlier: Resident) -> Resident:
    """The versor that acts like `earlier` and then `later`, in the resident layout."""
    return multiply_lanes(later, earlier)


def _propagate_parallel(state: FieldState, versors: Float[Array, "steps *rows 16"]) -> tuple[FieldState, Closure]:
    batch, steps = state.motor.shape[:-1], versors.shape[0]
    if steps == 0:
        return _standing(state)
    rows = versors.reshape(steps, 16) if _is_shared(versors) else jnp.broadcast_to(versors, (steps, *batch, 16))
    prefixes = lax.associative_scan(
        lambda earlier, later: compose(later, earlier), to_resident(rows, lead=1, fill=None)
    )
    entered = to_resident(state.motor, fill=None)
    shape = (steps, *entered.shape)
    states = step_lanes(jnp.broadcast_to(prefixes, shape), jnp.broadcast_to(entered, shape))
    seen = _watch_all(begin(*squares_of_lanes(entered)), *squares_of_lanes(states))
    return _leave(states[-1], seen, batch, versors)


def _is_shared(versors: Float[Array, "steps *rows 16"]) -> bool:
    """Whether every sample takes the same versors."""
    return math.prod(versors.shape[1:-1]) == 1


def _standing(state: FieldState) -> tuple[FieldState, Closure]:
    """The result of no steps."""
    seen = begin(*squared_residual(state.motor))
    return state, finish(seen, jnp.ones_like(seen.norm))


def _leave(
    motor: Resident, seen: Watch, batch: tuple[int, ...], versors: Float[Array, "steps *rows 16"]
) -> tuple[FieldState, Closure]:
    """The last state in the blade basis. It is looked at once more there, since leaving rounds its coefficients."""
    left = from_resident(motor, batch)
    seen = jax.tree.map(lambda lanes: lanes.ravel()[: math.prod(batch)].reshape(batch), seen)
    seen = watch(seen, jnp.asarray(versors.shape[0]), *squared_residual(left))
    return FieldState(left), finish(seen, *_look_at_versors(seen, versors))


def _watch_all(first: Watch, square: Float[Array, "steps *batch"], norm: Float[Array, "steps *batch"]) -> Watch:
    """What `watch` finds, from the squares of all steps at once."""
    squares = jnp.concatenate([first.worst[None], square])
    norms = jnp.concatenate([first.norm[None], norm])
    bad = ~(squares < TOLERANCE**2)
    violated = jnp.any(bad, axis=0)
    step = jnp.where(violated, jnp.argmax(bad, axis=0), squares.shape[0] - 1)
    numbers = jnp.arange(squares.shape[0]).reshape(-1, *(1,) * step.ndim)
    return Watch(
        worst=jnp.max(squares, axis=0),
        first=jnp.where(violated, step, -1),
        norm=jnp.max(jnp.where(numbers <= step[None], norms, 0.0), axis=0),
    )


def _look_at_versors(
    seen: Watch, versors: Float[Array, "steps *rows 16"]
) -> tuple[Float[Array, "*batch"], Bool[Array, "*batch"]]:
    """Largest norm of the versors and whether all are closed: needed to say why a state failed, computed only then."""
    # Made from `seen`, so that under shard_map both branches vary over the devices alike.
    yes = seen.first == seen.first
    one = yes.astype(versors.dtype)

    def measure() -> tuple[Array, Array]:
        square, norm = squared_residual(versors)
        closed = jnp.all(closed_to_rounding(square, norm), axis=0)
        largest = jnp.sqrt(jnp.max(norm, axis=0, initial=1.0))
        return one * largest, yes & closed

    def skip() -> tuple[Array, Array]:
        return one, yes

    return lax.cond(jnp.any(seen.first >= 0), measure, skip)


propagate_program = jax.jit(_propagate)
"""The compiled program behind `propagate`: FieldState and versors of aligned batches."""

parallel_program = jax.jit(_propagate_parallel)
"""The compiled program behind `propagate_parallel`."""
