"""Propagation by sandwich products: F ← V F reverse(V), step by step, in blocks of steps or by an associative scan.

The state is only ever moved by versors; nothing here normalises, rounds, selects or repairs it. `engine.safety.hotpath`
proves that from the traces of `propagate_program`, `blocks_program` and `parallel_program`, the programs that are
compiled and called.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from engine.algebra.arguments import MotorLike, coefficients
from engine.algebra.lanes import compose, squares_of_lanes, step_lanes
from engine.algebra.resident import Resident, from_resident, to_resident
from engine.base.errors import ShapeError
from engine.field.blocks import move_in_blocks
from engine.field.closure import (
    Closure,
    Watch,
    assert_closed,
    begin,
    closed_to_rounding,
    finish,
    squared_residual,
    watch,
    watch_all,
)
from engine.field.state import FieldState

COMPOSITIONS = ("compose",)
"""Names of the jitted functions by which `propagate_parallel` combines operators, for the hot-path proof."""


MANY = 8
"""Steps from which versors are taken in blocks, where all samples share them or the samples are few."""

FEW_SAMPLES = {"cpu": 2}
"""Samples, by platform, up to which versors of their own are faster in blocks of steps than one step after another."""

FEW_SAMPLES_ELSEWHERE = 512
"""The same where a step costs a launch, whatever its width: as many as `move_in_blocks` takes. Not measured."""


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
    return program_for(*aligned(state, versors))


def propagate_parallel(state: FieldState, versors: MotorLike) -> tuple[FieldState, Closure]:
    """`propagate` by an associative scan over the steps: logarithmic depth, memory for the states of all steps.

    Equal to `propagate` up to rounding, which here goes with the norm of the composed versors.
    """
    return parallel_program(*aligned(state, versors))


def program_for(state: FieldState, versors: Float[Array, "steps *rows 16"]) -> tuple[FieldState, Closure]:
    """What `propagate` does with aligned arguments: the program that is fastest for their shapes on this platform."""
    count = math.prod(state.motor.shape[:-1])
    few = FEW_SAMPLES.get(jax.default_backend(), FEW_SAMPLES_ELSEWHERE)
    in_blocks = versors.shape[0] >= MANY and count > 0 and (_is_shared(versors) or count <= few)
    return (blocks_program if in_blocks else propagate_program)(state, versors)


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
    seen = watch_all(begin(*squares_of_lanes(entered)), jnp.asarray(1), *squares_of_lanes(states))
    return _leave(states[-1], seen, batch, versors)


def _propagate_blocks(state: FieldState, versors: Float[Array, "steps *rows 16"]) -> tuple[FieldState, Closure]:
    batch, steps = state.motor.shape[:-1], versors.shape[0]
    rows = 1 if _is_shared(versors) else math.prod(batch)
    own = versors if rows == 1 else jnp.broadcast_to(versors, (steps, *batch, 16))
    moved, seen = move_in_blocks(state.motor, own.reshape(steps, rows, 16))
    return _left(moved, seen, versors)


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
    seen = jax.tree.map(lambda lanes: lanes.ravel()[: math.prod(batch)].reshape(batch), seen)
    return _left(from_resident(motor, batch), seen, versors)


def _left(
    left: Float[Array, "*batch 16"], seen: Watch, versors: Float[Array, "steps *rows 16"]
) -> tuple[FieldState, Closure]:
    seen = watch(seen, jnp.asarray(versors.shape[0]), *squared_residual(left))
    return FieldState(left), finish(seen, *_look_at_versors(seen, versors))


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

blocks_program = jax.jit(_propagate_blocks)
"""The compiled program behind `propagate` for MANY steps by versors that all samples share, or of few samples."""

parallel_program = jax.jit(_propagate_parallel)
"""The compiled program behind `propagate_parallel`."""
