"""Products of large batches of even elements in the resident layout, each one vectorised loop in a program of its own.

`engine.algebra.lanes` writes a product out by its 16 entries, which suits one step within a longer program. For a batch
beyond the caches that form is no longer vectorised. Here the sum over quaternion components is written with reversals
(component q xor k is a reversal of the two bits of k), broadcasts and constant signs: one loop over blocks that XLA
vectorises over lanes and splits over threads. Two products that follow each other in one program would be fused into
one that computes the first eight times over; `sandwich_into` therefore calls two programs.

Fresh pages cost as much as a product: results are written to the memory of arrays that are handed in and given up.
Nothing is checked here. Figures: docs/performance.md.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array
from numpy.typing import NDArray

from engine.algebra.lanes import CONJUGATE_SIGNS
from engine.algebra.resident import QUATERNION_SIGNS, Resident


def into_buffer(product: Callable[[Any, Any], Array]) -> Callable[[Any, Any, Any], Array]:
    """The compiled product of two arrays in the memory of a third, of the result's shape, which is given up."""
    return jax.jit(lambda left, right, buffer: product(left, right), donate_argnums=2, keep_unused=True)


def multiply_batch(left: Resident, right: Resident) -> Resident:
    """The product of two even elements, lane by lane."""
    return _product(left, right, QUATERNION_SIGNS)


def multiply_reversed_batch(left: Resident, right: Resident) -> Resident:
    """left reverse(right), lane by lane: the reverse of [[a, b], [c, d]] is [[d', b'], [c', a']], conjugated."""
    turned = jnp.swapaxes(lax.rev(right, (right.ndim - 3, right.ndim - 2)), -3, -2)
    return _product(left, turned, CONJUGATE_SIGNS)


multiply_into = into_buffer(multiply_batch)
"""`multiply_batch(left, right)` in the memory of a third array."""

multiply_reversed_into = into_buffer(multiply_reversed_batch)
"""`multiply_reversed_batch(left, right)` in the memory of a third array."""


def sandwich_into(versor: Resident, motor: Resident, half: Resident, out: Resident) -> tuple[Resident, Resident]:
    """V F and V F reverse(V), in the memory of `half` and of `out`, which are given up.

    To move on, hand in the arrays that come back: `half, moved = sandwich_into(v, f, half, spare)`, and `f` is the next
    spare.
    """
    stored = multiply_into(versor, motor, half)
    return stored, multiply_reversed_into(stored, versor, out)


def _product(left: Resident, right: Resident, signs: NDArray) -> Resident:
    total: Array | None = None
    for q in range(4):
        turned = _component_xor(right, q)
        by_component = jnp.asarray(signs[q]).reshape((1,) * (left.ndim - 4) + (4, 1, 1, 1))
        for m in range(2):
            term = left[..., q : q + 1, :, m : m + 1, :] * turned[..., m : m + 1, :, :] * by_component
            total = term if total is None else total + term
    assert total is not None
    return total


def _component_xor(x: Resident, q: int) -> Resident:
    """Component k of the result is component k xor q: axes of the two bits of k, reversed where q has the bit."""
    axis = x.ndim - 4
    bits = x.reshape(*x.shape[:axis], 2, 2, *x.shape[axis + 1 :])
    return lax.rev(bits, [axis + place for place, bit in enumerate((q >> 1, q & 1)) if bit]).reshape(x.shape)
