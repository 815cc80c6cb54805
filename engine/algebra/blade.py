"""Duality and the meet, with respect to the pseudoscalar I = e12345, which is central and squares to -1."""

import numpy as np
from jaxtyping import Array, Float

from engine.algebra import tables
from engine.algebra.arguments import MultivectorLike, coefficients
from engine.algebra.product import outer_product, scale_constant, take_constant

_COMPLEMENT = np.array([tables.BLADES.index(mask ^ tables.PSEUDOSCALAR) for mask in tables.BLADES])
_UNDUAL_SIGNS = np.array(
    [tables.blade_sign(mask ^ tables.PSEUDOSCALAR, tables.PSEUDOSCALAR) for mask in tables.BLADES], np.float64
)


def undual(a: MultivectorLike) -> Float[Array, "*batch 32"]:
    """a I, the inverse of `dual`; (..., 32) to (..., 32)."""
    return scale_constant(take_constant(coefficients(a, 32, "a"), _COMPLEMENT), _UNDUAL_SIGNS)


def dual(a: MultivectorLike) -> Float[Array, "*batch 32"]:
    """a I⁻¹ = -a I; (..., 32) to (..., 32). dual(dual(a)) = -a."""
    return -undual(a)


def meet(a: MultivectorLike, b: MultivectorLike) -> Float[Array, "*batch 32"]:
    """undual(dual(a) ∧ dual(b)): the intersection of two blades that together span the space.

    Where they do not span it, the result is zero (Dorst, Fontijne, Mann 2007, section 5.7, the full space as join).
    """
    return undual(outer_product(dual(a), dual(b)))
