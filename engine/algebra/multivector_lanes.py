"""Multivectors of 32 coefficients as 4 x 4 complex matrices in blocks of lanes, for programs that multiply them often.

The pseudoscalar I = e12345 is central and squares to -1, so that Cl(4,1) is its even part with complex numbers for real
ones: 2 x 2 matrices of complex quaternions, which are 4 x 4 complex matrices (Lounesto, Clifford Algebras and Spinors,
2001, ch. 16). A product is 64 complex multiplications, 256 real ones instead of 1,024. An entry's real or imaginary
part is the sum or difference of four coefficients. Enter once, keep the matrices through the whole program, leave once.

`multiply_multivectors` is one loop over blocks, vectorised over lanes, and reads each operand once: slices, broadcasts
and one reversal, no stacked parts. `multiply_multivectors_into` writes to the memory of an array that is not needed
again, since fresh pages cost as much as the product. Nothing is checked here. Figures: docs/performance.md.
"""

from typing import Final, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float
from numpy.typing import NDArray

from engine.algebra import tables
from engine.algebra.large import into_buffer
from engine.algebra.layout import from_blocks, to_blocks
from engine.algebra.resident import ENTERING, QUATERNION_SIGNS, combine, signed_terms

ResidentMultivector: TypeAlias = Float[Array, "*blocks 2 4 4 lanes"]
"""Real and imaginary part, row, column, lane."""

LANES: Final = 48
"""Lanes of a full block: 32 coefficients of it are 12 KiB. A power of two would put all of them into few cache sets."""


def _units() -> NDArray:
    """(4, 2, 2) complex: quaternion units as complex matrices that multiply as `QUATERNION_SIGNS` says."""
    first, second = np.diag([1j, -1j]), np.array([[0, 1], [-1, 0]], complex)
    return np.stack([np.eye(2), first, second, QUATERNION_SIGNS[1, 3] * first @ second])


def _entering_matrix() -> NDArray:
    """(2, 4, 4, 32): real and imaginary part of the entries of each basis blade, +1, -1 or 0."""
    # Even blades: the 2 x 2 matrix of quaternions, each quaternion a 2 x 2 complex matrix.
    even = np.einsum("qrcn,qab->racbn", ENTERING, _units()).reshape(4, 4, 16)
    matrix = np.zeros((4, 4, 32), complex)
    matrix[..., tables.EVEN] = even
    full = int(tables.BLADES[-1])
    for number, blade in enumerate(tables.EVEN_BLADES):
        # The odd blade e I, up to its sign, is the complex unit times the even blade e.
        odd = tables.BLADES.index(int(blade) ^ full)
        matrix[..., odd] = tables.blade_sign(int(blade), full) * 1j * even[..., number]
    return np.stack([matrix.real, matrix.imag])


MULTIVECTOR_ENTERING: Final = _entering_matrix()
_ENTER: Final = signed_terms(MULTIVECTOR_ENTERING.reshape(32, 32))
_LEAVE: Final = signed_terms(MULTIVECTOR_ENTERING.reshape(32, 32).T)


def enter_multivector(m: Float[Array, "*batch 32"]) -> ResidentMultivector:
    """Multivectors (..., 32) as matrices (blocks, 2, 4, 4, lanes); lanes beyond the batch hold zeros."""
    entries = combine(to_blocks(m, most=LANES), _ENTER)
    return entries.reshape(entries.shape[0], 2, 4, 4, entries.shape[-1])


def leave_multivector(m: ResidentMultivector, batch: tuple[int, ...]) -> Float[Array, "*batch 32"]:
    """The inverse of `enter_multivector`: a blade has four entries, of magnitude 1."""
    return from_blocks(0.25 * combine(m.reshape(m.shape[0], 32, m.shape[-1]), _LEAVE), batch)


def multiply_multivectors(a: ResidentMultivector, b: ResidentMultivector) -> ResidentMultivector:
    """The geometric product a b of each lane: matrix products of real and imaginary parts."""
    turned = lax.rev(b, (b.ndim - 4,))
    real = a[..., 0:1, :, 0:1, :] * b[..., 0:1, :, :]
    imaginary = a[..., 1:2, :, 0:1, :] * turned[..., 0:1, :, :]
    for m in range(1, 4):
        real += a[..., 0:1, :, m : m + 1, :] * b[..., m : m + 1, :, :]
        imaginary += a[..., 1:2, :, m : m + 1, :] * turned[..., m : m + 1, :, :]
    return real + jnp.asarray([-1.0, 1.0]).reshape((1,) * (a.ndim - 4) + (2, 1, 1, 1)) * imaginary


multiply_multivectors_into = into_buffer(multiply_multivectors)
"""`multiply_multivectors(a, b)` in the memory of a third array of the same shape, which is given up."""
