"""Points as null vectors: X = x + n_o + ½|x|² n_inf, their coordinates and their distances.

The weight n_o of a far point is the difference of two numbers of size ½|x|², which float64 loses near |x| = 1e8 (and
float32 near 1e4) while the vector still looks null. Coordinates and distances are therefore read without that
difference, which keeps them accurate to a few units in the last place of |x|.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from engine.algebra import tables
from engine.algebra.arguments import MultivectorLike, VectorLike, broadcast_batch, coefficients
from engine.algebra.product import take_constant

_AXES = np.array([tables.BLADE_INDEX[name] for name in ("e1", "e2", "e3")])
_E4, _E5 = tables.BLADE_INDEX["e4"], tables.BLADE_INDEX["e5"]


def embed_point(x: VectorLike) -> Float[Array, "*batch 32"]:
    """The conformal point of coordinates (..., 3), a null vector of weight 1; (..., 32).

    The weight is exactly 1 up to |x| = 4e7, and |x|² is rounded instead, by a relative 4 eps."""
    position = coefficients(x, 3, "x")
    half = 0.5 * jnp.sum(position * position, axis=-1, keepdims=True)
    # On the grid of doubles beside half + ½, both coefficients are exact, and so is the weight, their difference.
    coarse = 4.0 * (half + 0.5)
    half = jax.lax.stop_gradient((half + coarse) - coarse - half) + half
    before = jnp.zeros((*position.shape[:-1], 1), jnp.float64)
    after = jnp.zeros((*position.shape[:-1], 26), jnp.float64)
    return jnp.concatenate([before, position, half - 0.5, half + 0.5, after], axis=-1)


def point_coordinates(X: MultivectorLike) -> Float[Array, "*batch 3"]:
    """Coordinates (..., 3) of points (..., 32) of any non-zero weight; inverse of `embed_point`.

    Only the vector part is read. The weight -X·n_inf = X5 - X4 equals |X1..3|² / (X5 + X4) on the null cone, and of the
    two the one without cancellation is used. The point at infinity (weight 0) has no coordinates: infinity or NaN.
    """
    full = coefficients(X, 32, "X")
    position = take_constant(full, _AXES)
    near, far = full[..., _E5 : _E5 + 1] - full[..., _E4 : _E4 + 1], full[..., _E5 : _E5 + 1] + full[..., _E4 : _E4 + 1]
    squared = jnp.sum(position * position, axis=-1, keepdims=True)
    outside = jnp.abs(far) > jnp.abs(near)
    weight = jnp.where(outside, squared / jnp.where(outside, far, 1.0), near)
    return position / weight


def squared_distance(X: MultivectorLike, Y: MultivectorLike) -> Float[Array, "*batch"]:
    """|x - y|² of points (..., 32), that is -2 X·Y at weight 1, without the cancellation of the inner product."""
    left, right = broadcast_batch((point_coordinates(X), "X"), (point_coordinates(Y), "Y"))
    difference = left - right
    return jnp.sum(difference * difference, axis=-1)


def distance(X: MultivectorLike, Y: MultivectorLike) -> Float[Array, "*batch"]:
    """|x - y| of points (..., 32), in the unit of the coordinates; its gradient at distance 0 is defined as 0."""
    squared = squared_distance(X, Y)
    vanishes = squared == 0.0
    return jnp.where(vanishes, 0.0, jnp.sqrt(jnp.where(vanishes, 1.0, squared)))
