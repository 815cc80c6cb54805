"""Propagation by sandwich products: F ← V F reverse(V), step by step or by an associative scan.

The state is only ever moved by versors; nothing here normalises, rounds, selects or repairs it. `engine.safety.hotpath`
proves that from the traces of `propagate_program` and `parallel_program`, the programs that are compiled and called.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from engine.algebra.arguments import MotorLike, coefficients
from engine.algebra.product import even_product_kernel, sandwich_kernel
from engine.base.errors import ShapeError
from engine.field.closure import TOLERANCE, Closure, Watch, assert_closed, begin, finish, squared_residual, watch
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

    The default way to propagate: returns the pair that `propagate` returns. Shapes and other errors as for `propagate`; `TracedCheckError` inside jit and vmap,
    where nothing can be raised.
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
    return propagate_program(*_aligned(state, versors))


def propagate_parallel(state: FieldState, versors: MotorLike) -> tuple[FieldState, Closure]:
    """`propagate` by an associative scan over the steps: logarithmic depth, memory for the states of all steps.

    Equal to `propagate` up to rounding, which here goes with the norm of the composed versors.
    """
    return parallel_program(*_aligned(state, versors))


def _aligned(state: FieldState, versors: MotorLike) -> tuple[FieldState, Array]:
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


def _propagate(state: FieldState, versors: Float[Array, "steps *batch 16"]) -> tuple[FieldState, Closure]:
    def step(carry: tuple[Array, Watch], row: tuple[Int[Array, ""], Array]) -> tuple[tuple[Array, Watch], None]:
        motor, seen = carry
        number, versor = row
        moved = sandwich_kernel(jnp.broadcast_to(versor, motor.shape), motor)
        return (moved, watch(seen, number, *squared_residual(moved))), None

    start = (state.motor, begin(*squared_residual(state.motor)))
    numbers = jnp.arange(1, versors.shape[0] + 1)
    (motor, seen), _ = lax.scan(step, start, (numbers, versors))
    return FieldState(motor), finish(seen, _versor_norm(seen, versors))


@jax.jit
def compose(later: Float[Array, "*batch 16"], earlier: Float[Array, "*batch 16"]) -> Float[Array, "*batch 16"]:
    """The versor that acts like `earlier` and then `later`."""
    return even_product_kernel(later, earlier)


def _propagate_parallel(state: FieldState, versors: Float[Array, "steps *batch 16"]) -> tuple[FieldState, Closure]:
    first = begin(*squared_residual(state.motor))
    if versors.shape[0] == 0:
        return state, finish(first, jnp.ones_like(first.norm))
    prefixes = lax.associative_scan(lambda earlier, later: compose(later, earlier), versors)
    shape = (versors.shape[0], *state.motor.shape)
    states = sandwich_kernel(jnp.broadcast_to(prefixes, shape), jnp.broadcast_to(state.motor, shape))
    seen = _watch_all(first, *squared_residual(states))
    return FieldState(states[-1]), finish(seen, _versor_norm(seen, versors))


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
        square=jnp.take_along_axis(squares, step[None], axis=0)[0],
        norm=jnp.max(jnp.where(numbers <= step[None], norms, 0.0), axis=0),
    )


def _versor_norm(seen: Watch, versors: Float[Array, "steps *rows 16"]) -> Float[Array, "*batch"]:
    """Largest coefficient norm of the versors, needed only to say why a state failed and computed only then."""

    def measure() -> Array:
        squares = jnp.sum(jnp.square(lax.stop_gradient(versors)), axis=-1)
        return jnp.broadcast_to(jnp.sqrt(jnp.max(squares, axis=0, initial=1.0)), seen.first.shape)

    return lax.cond(jnp.any(seen.first >= 0), measure, lambda: jnp.ones_like(seen.norm))


propagate_program = jax.jit(_propagate)
"""The compiled program behind `propagate`: FieldState and versors of aligned batches."""

parallel_program = jax.jit(_propagate_parallel)
"""The compiled program behind `propagate_parallel`."""
