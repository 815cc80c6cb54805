"""The closure invariant ‖F reverse(F) − 1‖ < 1e-6: measured inside the traced program, asserted on the host.

Everything is written so that NaN fails: `~(residual < tolerance)`. Booleans are reduced, not values, because reductions
by maximum may drop a NaN. Raising inside a traced program is not used at all: an unused check is compiled away, one bad
sample kills a batch, and on several devices it may hang (docs/decisions/0021-closure-as-a-result.md).
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from engine.algebra.arguments import MotorLike, coefficients
from engine.algebra.product import closure_kernel
from engine.base.errors import MissingClosureError, TracedCheckError, VersorClosureError

TOLERANCE = 1e-6
"""Bound of the closure residual at every step."""

ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""Residual that rounding explains, per sandwich and squared norm: two products of 16 terms, each squared once more."""

NOT_A_VERSOR = "not a versor"
TOO_LARGE = "coefficients too large for this precision"


class Closure(eqx.Module):
    """What a propagation found, per sample.

    `max_residual`: the worst residual of all steps, infinity where the state was not finite. `first_violation`: the
    first step at which the residual was not below the tolerance, -1 where none; 0 is the initial state, k the state
    after k versors. `ok`: no violation. `norm`: the largest coefficient norm of a state up to that step;
    `versor_norm`: of a versor. `versors_closed`: every versor is closed to its own rounding. These two are measured
    only where a sample failed.
    """

    max_residual: Float[Array, "*batch"]
    first_violation: Int[Array, "*batch"]
    ok: Bool[Array, "*batch"]
    norm: Float[Array, "*batch"]
    versor_norm: Float[Array, "*batch"]
    versors_closed: Bool[Array, "*batch"]


class Watch(eqx.Module):
    """The closure while it is being measured: squares instead of roots, carried through a loop beside the state."""

    worst: Float[Array, "*batch"]
    first: Int[Array, "*batch"]
    norm: Float[Array, "*batch"]


def squared_residual(motor: Float[Array, "*batch 16"]) -> tuple[Float[Array, "*batch"], Float[Array, "*batch"]]:
    """Squared residual, infinity where not finite, and squared coefficient norm; no gradient flows through either."""
    still = lax.stop_gradient(motor)
    square = jnp.sum(jnp.square(closure_kernel(still)), axis=-1)
    return jnp.where(square < jnp.inf, square, jnp.inf), jnp.sum(jnp.square(still), axis=-1)


def begin(square: Float[Array, "*batch"], norm: Float[Array, "*batch"]) -> Watch:
    """The watch after looking at the initial state."""
    return Watch(square, jnp.where(square < TOLERANCE**2, -1, 0), norm)


def watch(seen: Watch, step: Int[Array, ""], square: Float[Array, "*batch"], norm: Float[Array, "*batch"]) -> Watch:
    """The watch after looking at the state of `step` (counted from 1)."""
    # Infinity stands for NaN in `square`, so that the maximum loses nothing and stays where it is once violated.
    worst = jnp.maximum(seen.worst, square)
    intact = seen.first < 0
    return Watch(
        worst=worst,
        first=jnp.where(intact & ~(worst < TOLERANCE**2), step, seen.first),
        norm=jnp.where(intact, jnp.maximum(seen.norm, norm), seen.norm),
    )


def watch_all(
    seen: Watch, step: Int[Array, ""], square: Float[Array, "steps *batch"], norm: Float[Array, "steps *batch"]
) -> Watch:
    """What `watch` finds when it looks at the states of `step`, `step` + 1, ... one after the other."""
    count = square.shape[0]
    numbers = jnp.arange(count).reshape(-1, *(1,) * (square.ndim - 1))
    place = jnp.min(jnp.where(square < TOLERANCE**2, count, numbers), axis=0)
    until = jnp.max(jnp.where(numbers <= place[None], norm, 0.0), axis=0)
    intact = seen.first < 0
    return Watch(
        worst=jnp.maximum(seen.worst, jnp.max(square, axis=0)),
        first=jnp.where(intact & (place < count), step + place, seen.first),
        norm=jnp.where(intact, jnp.maximum(seen.norm, until), seen.norm),
    )


def finish(
    seen: Watch, versor_norm: Float[Array, "*batch"], versors_closed: Bool[Array, "*batch"] | None = None
) -> Closure:
    """The closure of everything that was watched. Without `versors_closed` the norms alone tell the likely cause."""
    return Closure(
        max_residual=jnp.sqrt(seen.worst),
        first_violation=seen.first,
        ok=seen.first < 0,
        norm=jnp.sqrt(seen.norm),
        versor_norm=versor_norm,
        versors_closed=jnp.zeros_like(seen.first, bool) if versors_closed is None else versors_closed,
    )


def closed_to_rounding(square: Float[Array, "*batch"], norm: Float[Array, "*batch"]) -> Bool[Array, "*batch"]:
    """Whether motors of this squared residual and squared norm are closed as far as float64 can tell."""
    return (norm < jnp.inf) & (square <= jnp.square(ROUNDING * jnp.maximum(norm, 1.0)))


@jax.jit
def _measure(motor: Float[Array, "*batch 16"]) -> Closure:
    square, norm = squared_residual(motor)
    return finish(begin(square, norm), jnp.ones_like(norm))


def measure_closure(motor: MotorLike) -> Closure:
    """The closure of motors (..., 16) as they are: prompts, personas, vocabularies, entries, a restored state.

    A violation is at step 0. Raises `PrecisionError` or `ShapeError` for another dtype or width.
    """
    return _measure(coefficients(motor, 16, "motor"))


def assert_closed(closure: Closure) -> None:
    """Raise `VersorClosureError` for the first sample that left the manifold: which, when, how far and likely why.

    Runs on the host. Raises `TracedCheckError` inside jit and vmap, where the check would be dropped: return the
    closure from there and assert it outside (`checked`, `checked_value_and_grad`).
    """
    if isinstance(closure.ok, jax.core.Tracer):
        raise TracedCheckError(
            "the closure cannot be asserted while tracing; return it and assert it outside "
            "(engine.field.checked and checked_value_and_grad do that)"
        )
    if bool(jnp.all(closure.ok)):
        return
    failed = ~jnp.ravel(closure.ok)
    sample = int(jnp.argmax(failed))

    def number(values: Array) -> float:
        return float(jnp.ravel(values)[sample])

    step, residual, norm = int(number(closure.first_violation)), number(closure.max_residual), number(closure.norm)
    moved_well = step > 0 and bool(number(closure.versors_closed))
    cause = TOO_LARGE if moved_well else _likely_cause(step, residual, norm, number(closure.versor_norm))
    raise VersorClosureError(
        f"the field left the versor manifold: sample {sample}, step {step}, "
        f"worst residual {residual:.3g} (bound {TOLERANCE:g}), "
        f"coefficient norm {norm:.3g}; {int(jnp.sum(failed))} of {failed.size} samples failed; likely cause: {cause}",
        sample=sample,
        step=step,
        residual=residual,
        norm=norm,
        cause=cause,
    )


def _likely_cause(step: int, residual: float, norm: float, versor_norm: float) -> str:
    """Whether rounding alone explains the residual, as far as the norms tell.

    A sandwich with two products of 16 terms errs by at most about 2·16·eps·‖V‖²·‖F‖ in F, hence by twice that times ‖F‖
    in F reverse(F); `step` sandwiches add up linearly, unless later ones magnify what earlier ones left, as boosts do:
    there only the versors themselves tell.
    """
    largest = max(1.0, versor_norm)
    rounding = ROUNDING * (step + 1) * norm * norm * largest * largest
    return TOO_LARGE if residual <= rounding else NOT_A_VERSOR


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, compiled, with every `Closure` in its result asserted on the host after each call.

    Raises `MissingClosureError` if the result holds none, so that a closure dropped inside is noticed.
    """
    compiled = jax.jit(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = compiled(*args, **kwargs)
        _assert_all(result)
        return result

    return call


def checked_value_and_grad(function: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """`jax.value_and_grad` of a function that returns `(value, closure)`, with the closure asserted on the host.

    `closure` is a `Closure` or a tree that holds at least one; it is the auxiliary output. Returns
    `((value, closure), gradient)`. Raises `VersorClosureError` where a state left the manifold and
    `MissingClosureError` where the function returns no closure.
    """
    compiled = jax.jit(jax.value_and_grad(function, argnums=argnums, has_aux=True))

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        (value, auxiliary), gradient = compiled(*args, **kwargs)
        _assert_all(auxiliary)
        return (value, auxiliary), gradient

    return call


def _assert_all(tree: Any) -> None:
    leaves = jax.tree.leaves(tree, is_leaf=lambda node: isinstance(node, Closure))
    closures = [leaf for leaf in leaves if isinstance(leaf, Closure)]
    if not closures:
        raise MissingClosureError("the function returned no Closure: there is nothing to check")
    for closure in closures:
        assert_closed(closure)
