"""One step of the field in the resident layout, written out by quaternion components.

The same mathematics as `engine.algebra.resident`, of which it is tested to be the equal: versors and states are 2 x 2
matrices of quaternions in blocks of lanes. Written as sums of products of whole lanes, with the half product stored
once, XLA compiles each product to one vectorised loop; and the residual is a few such loops instead of reductions.
Figures: docs/field-closure.md.
"""

from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float
from numpy.typing import NDArray

from engine.algebra.resident import QUATERNION_SIGNS

Lanes: TypeAlias = Float[Array, "*lead 4 2 2 lanes"]
Lane: TypeAlias = Float[Array, "*lead lanes"]
Quaternion: TypeAlias = list[Array]
Matrix: TypeAlias = list[list[Quaternion]]

_CONJUGATE = np.array([1.0, -1.0, -1.0, -1.0])
CONJUGATE_SIGNS = QUATERNION_SIGNS * _CONJUGATE[np.arange(4)[:, None] ^ np.arange(4)[None, :]]
"""`signs[q, k]` in (a conjugate(b))[k] = sum over q of signs[q, k] a[q] b[q xor k]."""


def step_lanes(versor: Lanes, motor: Lanes) -> Lanes:
    """V F reverse(V).

    The reverse of [[a, b], [c, d]] is [[d', b'], [c', a']] with conjugate quaternions.
    """
    (a, b), (c, d) = _entries(versor)
    half = _product([[a, b], [c, d]], _entries(motor), QUATERNION_SIGNS)
    return _stacked(_product(_entries(_stacked(half)), [[d, b], [c, a]], CONJUGATE_SIGNS))


def multiply_lanes(left: Lanes, right: Lanes) -> Lanes:
    """The product of two versors."""
    return _stacked(_product(_entries(left), _entries(right), QUATERNION_SIGNS))


@jax.jit
def compose(later: Lanes, earlier: Lanes) -> Lanes:
    """The versor that acts like `earlier` and then `later`. The hot-path proof knows it by its name."""
    return multiply_lanes(later, earlier)


def squares_of_lanes(motor: Lanes) -> tuple[Lane, Lane]:
    """Squared residual, infinity where not finite, and squared coefficient norm of each lane; no gradient flows.

    Of F reverse(F) − 1 the diagonal entry a d' + b c' − 1 holds the scalar and e1245, e1345, e2345; the off-diagonal
    entries 2 Re(a b') and 2 Re(c d') are the sum and the difference of e1234 and e1235 (docs/derivations).
    """
    return _squares(_entries(lax.stop_gradient(motor)))


def squares_of_entries(states: Float[Array, "*lead 16 lanes"]) -> tuple[Lane, Lane]:
    """What `squares_of_lanes` gives, of states whose 16 entries share one axis."""
    still = lax.stop_gradient(states)
    return _squares(
        [[[still[..., 4 * q + 2 * row + column, :] for q in range(4)] for column in range(2)] for row in range(2)]
    )


def _squares(matrix: Matrix) -> tuple[Array, Array]:
    (a, b), (c, d) = matrix
    numbers = [_term(b, c, k, CONJUGATE_SIGNS, _term(a, d, k, CONJUGATE_SIGNS)) for k in range(4)]
    numbers[0] = numbers[0] - 1.0
    upper, lower = _dot(a, b), _dot(c, d)
    square = _dot(numbers, numbers) + 2.0 * (upper * upper + lower * lower)
    # Entries are sums and differences of two coefficients: their squares add up to twice the coefficients'.
    norm = 0.5 * ((_dot(a, a) + _dot(b, b)) + (_dot(c, c) + _dot(d, d)))
    return jnp.where(square < jnp.inf, square, jnp.inf), norm


def _entries(x: Lanes) -> Matrix:
    """Quaternions of the matrix, each a list of four arrays (*blocks, lanes)."""
    return [[[x[..., q, row, column, :] for q in range(4)] for column in range(2)] for row in range(2)]


def _stacked(matrix: Matrix) -> Lanes:
    return jnp.stack(
        [
            jnp.stack(
                [jnp.stack([matrix[row][column][q] for column in range(2)], axis=-2) for row in range(2)], axis=-3
            )
            for q in range(4)
        ],
        axis=-4,
    )


def _product(left: Matrix, right: Matrix, signs: NDArray) -> Matrix:
    """The matrix product with the quaternion product that `signs` stand for."""
    return [
        [
            [_term(left[i][1], right[1][j], k, signs, _term(left[i][0], right[0][j], k, signs)) for k in range(4)]
            for j in range(2)
        ]
        for i in range(2)
    ]


def _term(x: Quaternion, y: Quaternion, k: int, signs: NDArray, total: Array | None = None) -> Array:
    """Component k of a product of quaternions, added to `total`."""
    for q in range(4):
        product = x[q] * y[q ^ k]
        if total is None:
            total = product if signs[q, k] > 0 else -product
        else:
            total = total + product if signs[q, k] > 0 else total - product
    assert total is not None
    return total


def _dot(x: Quaternion, y: Quaternion) -> Array:
    return (x[0] * y[0] + x[1] * y[1]) + (x[2] * y[2] + x[3] * y[3])
