"""Multivectors of 32 coefficients in the resident layout, for programs that multiply them many times.

The pseudoscalar I = e12345 is central and squares to -1, so that a multivector is A + I B with A and B even, and
(A + I B)(C + I D) = (A C - B D) + I (A D + B C): four products of 2 x 2 quaternion matrices, 512 multiplications
instead of 1,024. Enter once, keep both parts resident through the whole program, donate what is not needed again, leave
once. Nothing is checked here. Figures: docs/performance.md.
"""

from typing import NamedTuple

from jaxtyping import Array, Float

from engine.algebra import tables
from engine.algebra.lanes import multiply_lanes
from engine.algebra.product import (
    divide_pseudoscalar_kernel,
    join_parity_kernel,
    multiply_pseudoscalar_kernel,
    take_constant,
)
from engine.algebra.resident import Resident, from_resident, to_resident


class ResidentMultivector(NamedTuple):
    """A + I B: `even` is A and `dual` is B, both (blocks, 4, 2, 2, lanes)."""

    even: Resident
    dual: Resident


def enter_multivector(m: Float[Array, "*batch 32"]) -> ResidentMultivector:
    """Multivectors (..., 32) in the resident layout; lanes beyond the batch hold zeros."""
    odd = divide_pseudoscalar_kernel(take_constant(m, tables.ODD))
    return ResidentMultivector(to_resident(take_constant(m, tables.EVEN), fill=None), to_resident(odd, fill=None))


def leave_multivector(m: ResidentMultivector, batch: tuple[int, ...]) -> Float[Array, "*batch 32"]:
    """The inverse of `enter_multivector`."""
    even, dual = (from_resident(part, batch) for part in m)
    return join_parity_kernel(even, multiply_pseudoscalar_kernel(dual))


def multiply_multivectors(a: ResidentMultivector, b: ResidentMultivector) -> ResidentMultivector:
    """The geometric product a b of each lane."""
    return ResidentMultivector(
        multiply_lanes(a.even, b.even) - multiply_lanes(a.dual, b.dual),
        multiply_lanes(a.even, b.dual) + multiply_lanes(a.dual, b.even),
    )
