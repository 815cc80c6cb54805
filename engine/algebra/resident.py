"""The even algebra as 2 x 2 matrices of quaternions, kept in blocks of lanes: the layout of long loops.

Cl+(4,1) is the tensor product of the quaternions {1, e12, e13, e23} and the real 2 x 2 matrices {1, e45, e1234, e1235},
which commute. An entry is the sum or difference of two coefficients, so that entering costs 16 additions, leaving 16
more and a multiplication by ½, and a product 128 multiplications instead of 256. A state enters once, takes all its
steps and leaves once. Translators and all similarities are upper triangular here, with an entry that is exactly zero:
products of them do not lose the null direction to rounding, as they do in the blade basis.
Derivation: docs/derivations/resident-layout.md.

Arrays are (*lead, blocks, 4, 2, 2, lanes): quaternion component, row, column, lane. Nothing is checked here.
"""

import functools
import operator
from typing import Final, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float
from numpy.typing import NDArray

from engine.algebra import tables
from engine.algebra.layout import from_blocks, to_blocks

Resident: TypeAlias = Float[Array, "*lead blocks 4 2 2 lanes"]

_QUATERNIONS: Final = tuple(tables.BLADES[tables.BLADE_INDEX[name]] for name in ("1", "e12", "e13", "e23"))
_E45, _E1234 = (tables.BLADES[tables.BLADE_INDEX[name]] for name in ("e45", "e1234"))


def _matrix_units() -> dict[int, NDArray]:
    """Real 2 x 2 matrices of 1, e45, e1234 and their product, which is e1235 up to the sign of the blade product."""
    diagonal, swap = np.diag([1.0, -1.0]), np.array([[0.0, 1.0], [1.0, 0.0]])
    return {
        0: np.eye(2),
        _E45: diagonal,
        _E1234: swap,
        _E45 ^ _E1234: tables.blade_sign(_E45, _E1234) * diagonal @ swap,
    }


def _entering_matrix() -> NDArray:
    """(4, 2, 2, 16): the entries of each basis blade, +1, -1 or 0."""
    matrix = np.zeros((4, 2, 2, 16))
    for component, quaternion in enumerate(_QUATERNIONS):
        for blade, unit in _matrix_units().items():
            position = tables.EVEN_BLADES.index(quaternion ^ blade)
            matrix[component, :, :, position] = tables.blade_sign(quaternion, blade) * unit
    return matrix


ENTERING: Final = _entering_matrix()

QUATERNION_SIGNS: Final = np.array(
    [[tables.blade_sign(_QUATERNIONS[q], _QUATERNIONS[q ^ k]) for k in range(4)] for q in range(4)], np.float64
)
"""`signs[q, k]` in (a b)[k] = sum over q of signs[q, k] a[q] b[q xor k]."""

_CONJUGATE: Final = np.array([1.0, -1.0, -1.0, -1.0])
_CONJUGATE_SIGNS: Final = QUATERNION_SIGNS * _CONJUGATE[np.arange(4)[:, None] ^ np.arange(4)[None, :]]
"""Signs of a conjugate(b)."""

_IDENTITY: Final = np.eye(16)[0]


SignedTerms: TypeAlias = list[tuple[NDArray, NDArray]]


def signed_terms(matrix: NDArray) -> SignedTerms:
    """Index and sign of the first, second, ... non-zero entry of each row; all rows have as many."""
    count = int(np.count_nonzero(matrix[0]))
    order = np.argsort(matrix == 0.0, axis=1, kind="stable")[:, :count]
    return [(order[:, i], matrix[np.arange(len(matrix)), order[:, i]]) for i in range(count)]


_ENTER: Final = signed_terms(ENTERING.reshape(16, 16))
_LEAVE: Final = signed_terms(ENTERING.reshape(16, 16).T)


def combine(x: Float[Array, "*lead n lanes"], terms: SignedTerms) -> Float[Array, "*lead n lanes"]:
    """The product of `x`, on the last axis but one, with the matrix of `signed_terms`."""
    axis = x.ndim - 2
    dimensions = lax.GatherDimensionNumbers(
        offset_dims=tuple(i for i in range(x.ndim) if i != axis), collapsed_slice_dims=(axis,), start_index_map=(axis,)
    )
    shape = (*x.shape[:axis], 1, x.shape[-1])
    parts = [
        lax.gather(x, index.astype(np.int32)[:, None], dimensions, shape, mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)
        * signs.reshape((1,) * axis + (len(signs), 1))
        for index, signs in terms
    ]
    return functools.reduce(operator.add, parts)


def enter(columns: Float[Array, "*lead 16 lanes"]) -> Float[Array, "*lead 16 lanes"]:
    """Coefficients to entries of the matrix, on the last axis but one; an entry sums two coefficients."""
    return combine(columns, _ENTER)


def leave(columns: Float[Array, "*lead 16 lanes"]) -> Float[Array, "*lead 16 lanes"]:
    """The inverse of `enter`."""
    return 0.5 * combine(columns, _LEAVE)


def to_resident(m: Float[Array, "*batch 16"], lead: int = 0, fill: NDArray | None = _IDENTITY) -> Resident:
    """(*lead, *batch, 16) to (*lead, blocks, 4, 2, 2, lanes); lanes beyond the batch hold `fill` (16), or zeros."""
    entries = enter(to_blocks(m, lead, fill=fill))
    return entries.reshape(*entries.shape[:-2], 4, 2, 2, entries.shape[-1])


def from_resident(r: Resident, batch: tuple[int, ...]) -> Float[Array, "*batch 16"]:
    """The inverse of `to_resident`: (*lead, blocks, 4, 2, 2, lanes) to (*lead, *batch, 16)."""
    return from_blocks(leave(r.reshape(*r.shape[:-4], 16, r.shape[-1])), batch)


def lanes_to_batch(x: Float[Array, "*lead blocks lanes"], batch: tuple[int, ...]) -> Float[Array, "*lead_batch"]:
    """Numbers of each lane, (*lead, blocks, lanes), as (*lead, *batch)."""
    return from_blocks(x[..., None, :], batch)[..., 0]


def _exclusive_or(x: Array, key: int, axis: int) -> Array:
    """`y[k] = x[k xor key]` on a negative axis of length 4."""
    axis += x.ndim
    axes = tuple(axis + 1 - bit for bit in range(2) if key >> bit & 1)
    if not axes:
        return x
    return lax.rev(x.reshape(*x.shape[:axis], 2, 2, *x.shape[axis + 1 :]), axes).reshape(x.shape)


def _signed(x: Array, signs: NDArray, axis: int) -> Array:
    """x times one constant for each quaternion component on a negative axis."""
    axis += x.ndim
    return x * signs.reshape((1,) * axis + (4,) + (1,) * (x.ndim - axis - 1))


def resident_product(a: Resident, b: Resident) -> Resident:
    """a b. A product by the identity is exact."""
    total = None
    for q in range(4):
        partner = _signed(_exclusive_or(b, q, -4), QUATERNION_SIGNS[q], -4)
        for m in range(2):
            term = a[..., q : q + 1, :, m : m + 1, :] * partner[..., :, m : m + 1, :, :]
            total = term if total is None else total + term
    assert total is not None
    return total


def resident_times_reverse(x: Resident, v: Resident) -> Resident:
    """x reverse(v): the reverse of [[a, b], [c, d]] is [[d', b'], [c', a']] with conjugate entries."""
    flipped = lax.rev(v, (v.ndim - 3, v.ndim - 2))
    total = None
    for q in range(4):
        partner = _signed(_exclusive_or(flipped, q, -4), _CONJUGATE_SIGNS[q], -4)
        for m in range(2):
            term = x[..., q : q + 1, :, m : m + 1, :] * partner[..., :, :, m, :][..., :, None, :, :]
            total = term if total is None else total + term
    assert total is not None
    return total


def resident_sandwich(v: Resident, f: Resident) -> Resident:
    """v f reverse(v)."""
    return resident_times_reverse(resident_product(v, f), v)


def resident_reverse(v: Resident) -> Resident:
    """reverse(v)."""
    return _signed(jnp.swapaxes(lax.rev(v, (v.ndim - 3, v.ndim - 2)), -3, -2), _CONJUGATE, -4)


def _times_conjugate(x: Array, y: Array) -> Array:
    """x conjugate(y) for arrays (..., 4, lanes) of quaternions."""
    total = None
    for q in range(4):
        term = x[..., q : q + 1, :] * _signed(_exclusive_or(y, q, -2), _CONJUGATE_SIGNS[q], -2)
        total = term if total is None else total + term
    assert total is not None
    return total


def resident_closure(f: Resident) -> Float[Array, "*lead blocks 6 lanes"]:
    """Six numbers whose squares add up to ‖f reverse(f) − 1‖²; (*lead, blocks, 6, lanes).

    The diagonal entry a d' + b c' of f reverse(f) holds the scalar and e1245, e1345, e2345; the real off-diagonal
    entries 2 Re(a b') and 2 Re(c d') are the sum and the difference of e1234 and e1235.
    """
    a, b, c, d = f[..., 0, 0, :], f[..., 0, 1, :], f[..., 1, 0, :], f[..., 1, 1, :]
    one = np.eye(4)[0].reshape((1,) * (a.ndim - 2) + (4, 1))
    diagonal = _times_conjugate(a, d) + _times_conjugate(b, c) - one
    upper, lower = jnp.sum(a * b, axis=-2, keepdims=True), jnp.sum(c * d, axis=-2, keepdims=True)
    return jnp.concatenate([diagonal, float(np.sqrt(2.0)) * upper, float(np.sqrt(2.0)) * lower], axis=-2)


def resident_residual(f: Resident) -> Float[Array, "*lead blocks lanes"]:
    """‖f reverse(f) − 1‖ of each lane; its gradient is undefined at 0, so take it of `stop_gradient(f)`."""
    numbers = resident_closure(f)
    return jnp.sqrt(jnp.sum(numbers * numbers, axis=-2))
