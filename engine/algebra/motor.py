"""Motors and the elementary versors: translator, rotor, dilator, transversion.

Conventions of docs/conventions.md: n_o = ½(e5 - e4), n_inf = e4 + e5, T(t) = 1 - ½ t n_inf, rotor exp(-½ θ B).
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from engine.algebra.arguments import (
    BivectorLike,
    MatrixLike,
    ScalarLike,
    VectorLike,
    broadcast_batch,
    coefficients,
    first_failure,
    is_concrete,
)
from engine.algebra.exponential import bivector_to_even, exp_kernel, scalar_square, wedge_half
from engine.algebra.product import even_product
from engine.base.errors import NotAVersorError, OperatorRangeError, ShapeError
from engine.base.precision import require_float64, require_x64

CLOSURE_TOLERANCE = 1e-6
"""The bound on ‖F reverse(F) − 1‖ that every runtime state keeps."""

_BLADE_TOLERANCE = 1e-12
"""Size of B ∧ B, and of |B²|, relative to ‖B‖² that counts as zero: thousands of roundings. The plane of an axis at
distance d has |B²| / ‖B‖² near 1 / (2 d²), so that axes up to d = 7e5 are accepted."""

_FRAME_TOLERANCE = 1e-9
"""Largest entry of axes axesᵀ - 1: measured frames are rounded in the last digits, others are mistakes."""


def coefficients_fit(m: Float[Array, "*batch 16"]) -> Bool[Array, "*batch"]:
    """Whether the rounding of the motor's own coefficients, eps ‖m‖², stays below the closure tolerance.

    m reverse(m) is a sum of products of size ‖m‖², each rounded to eps: a translator by t has ‖m‖² = 1 + ½ t², so that
    the bound is near |t| = 9.5e4. NaN does not fit.
    """
    return jnp.sum(m * m, axis=-1) * float(np.finfo(np.float64).eps) < CLOSURE_TOLERANCE


def _require_fit(m: Float[Array, "*batch 16"], what: str) -> Float[Array, "*batch 16"]:
    """`m`, or `OperatorRangeError`; while tracing, NaN where the error could not be raised."""
    fits = coefficients_fit(m)
    if is_concrete(fits) and (place := first_failure(~fits)) is not None:
        raise OperatorRangeError(
            f"{what} at batch index {place} has coefficients that are not finite or too large to hold "
            f"‖F reverse(F) − 1‖ < {CLOSURE_TOLERANCE:g} in float64"
        )
    return jnp.where(fits[..., None], m, jnp.nan)


def identity_motor(shape: tuple[int, ...] = ()) -> Float[Array, "*batch 16"]:
    """The motor 1, as an array of shape (*shape, 16)."""
    require_x64()
    return jnp.zeros((*shape, 16), jnp.float64).at[..., 0].set(1.0)


def _assemble(scalar: Float[Array, "*batch"], bivector: Float[Array, "*batch 10"]) -> Float[Array, "*batch 16"]:
    return bivector_to_even(bivector).at[..., 0].set(scalar)


def translator(t: VectorLike) -> Float[Array, "*batch 16"]:
    """T(t) = 1 - ½ t n_inf for displacements (..., 3): moves the point of x to the point of x + t.

    Raises `OperatorRangeError` from about |t| = 9.5e4 on, where float64 cannot hold the closure tolerance (while
    tracing: NaN). The displacement has the unit of the points.
    """
    shift = -0.5 * coefficients(t, 3, "t")
    x, y, z = (shift[..., i] for i in range(3))
    zero = jnp.zeros_like(x)
    bivector = jnp.stack([zero, zero, x, x, zero, y, y, z, z, zero], axis=-1)
    return _require_fit(_assemble(jnp.ones_like(x), bivector), "translator")


def rotor(plane: BivectorLike, angle: ScalarLike) -> Float[Array, "*batch 16"]:
    """exp(-½ angle B) with B the plane (..., 10) scaled to B² = ∓1, and angles (...) in radians.

    A plane with B² < 0 turns by the angle; one with B² > 0 (it contains a time-like direction) boosts by that rapidity.
    Raises `NotAVersorError` for a plane that is null, zero, not finite or no blade (B ∧ B ≠ 0), and
    `OperatorRangeError` for a boost that float64 cannot hold; while tracing, NaN.
    """
    b = coefficients(plane, 10, "plane")
    theta = require_float64(angle, "angle")
    b, column = broadcast_batch((b, "plane"), (theta[..., None], "angle"))
    square = scalar_square(b)
    size = jnp.sum(b * b, axis=-1, keepdims=True)
    half = wedge_half(b)
    simple = jnp.sum(half * half, axis=-1, keepdims=True) <= (_BLADE_TOLERANCE * size) ** 2
    usable = simple & (jnp.abs(square) > _BLADE_TOLERANCE * size)
    if is_concrete(usable) and (place := first_failure(~usable[..., 0])) is not None:
        raise NotAVersorError(
            f"the plane at batch index {place} is zero, null, not finite or no blade: "
            "a rotor needs B ∧ B = 0 and B² ≠ 0"
        )
    unit = b / jnp.sqrt(jnp.where(usable, jnp.abs(square), 1.0))
    return _require_fit(jnp.where(usable, exp_kernel(-0.5 * column * unit), jnp.nan), "rotor")


def dilator(scale: ScalarLike) -> Float[Array, "*batch 16"]:
    """exp(-½ ln(scale) e45) for scales (...) > 0: moves the point of x to that of scale * x, times 1 / scale.

    Raises `OperatorRangeError` for a scale that is not positive and finite, or too extreme for float64.
    """
    s = require_float64(scale, "scale")
    positive = s > 0.0
    half = -0.5 * jnp.log(jnp.where(positive, s, jnp.nan))
    zero = jnp.zeros((*s.shape, 9), jnp.float64)
    return _require_fit(
        exp_kernel(jnp.concatenate([zero, half[..., None]], axis=-1)), "dilator (its scale must be > 0)"
    )


def transversion(a: VectorLike) -> Float[Array, "*batch 16"]:
    """e4 T(a) e4 = 1 - a n_o for vectors (..., 3): inversion in the unit sphere, translation by a, inversion.

    Moves x to (x + x² a) / (1 + 2 a·x + a² x²); it moves infinity. Same range as `translator`.
    """
    half = 0.5 * coefficients(a, 3, "a")
    x, y, z = (half[..., i] for i in range(3))
    zero = jnp.zeros_like(x)
    bivector = jnp.stack([zero, zero, x, -x, zero, y, -y, z, -z, zero], axis=-1)
    return _require_fit(_assemble(jnp.ones_like(x), bivector), "transversion")


def motor_from_points(source: VectorLike, target: VectorLike) -> Float[Array, "*batch 16"]:
    """The translator that carries the point of `source` (..., 3) to the point of `target` (..., 3)."""
    a, b = broadcast_batch((coefficients(source, 3, "source"), "source"), (coefficients(target, 3, "target"), "target"))
    return translator(b - a)


def _require_frames(source: Float[Array, "*batch 3 3"], target: Float[Array, "*batch 3 3"]) -> Array:
    """Flags of frames that are orthonormal and of one handedness; `NotAVersorError` where that is known to fail."""
    usable = jnp.linalg.det(source) * jnp.linalg.det(target) > 0.0
    for axes in (source, target):
        gram = jnp.einsum("...ij,...kj->...ik", axes, axes)
        identity = jnp.broadcast_to(np.eye(3), gram.shape)
        usable = usable & (jnp.max(jnp.abs(gram - identity), axis=(-2, -1)) < _FRAME_TOLERANCE)
    if is_concrete(usable) and (place := first_failure(~usable)) is not None:
        raise NotAVersorError(
            f"the frames at batch index {place} are not orthonormal, or of different handedness: no motor joins them"
        )
    return usable


def _rotor_from_matrix(q: Float[Array, "*batch 3 3"]) -> Float[Array, "*batch 16"]:
    """The rotor, of scalar part >= 0, of a rotation matrix (Shepperd, "Quaternion from rotation matrix", 1978).

    Four forms of the same quaternion, of which the one with the largest norm has no cancellation.
    """
    (a, b, c), (d, e, f), (g, h, i) = ([q[..., row, column] for column in range(3)] for row in range(3))
    forms = jnp.stack(
        [
            jnp.stack([1.0 + a + e + i, h - f, c - g, d - b], axis=-1),
            jnp.stack([h - f, 1.0 + a - e - i, b + d, c + g], axis=-1),
            jnp.stack([c - g, b + d, 1.0 - a + e - i, f + h], axis=-1),
            jnp.stack([d - b, c + g, f + h, 1.0 - a - e + i], axis=-1),
        ],
        axis=-2,
    )
    best = jnp.argmax(jnp.diagonal(forms, axis1=-2, axis2=-1), axis=-1)
    chosen = jnp.take_along_axis(forms, best[..., None, None], axis=-2)[..., 0, :]
    chosen = chosen * jnp.where(chosen[..., :1] < 0.0, -1.0, 1.0)
    w, x, y, z = (chosen[..., k] / jnp.sqrt(jnp.sum(chosen * chosen, axis=-1)) for k in range(4))
    zero = jnp.zeros_like(w)
    return _assemble(w, jnp.stack([-z, y, zero, zero, -x, zero, zero, zero, zero, zero], axis=-1))


def motor_from_frames(
    source_origin: VectorLike, source_axes: MatrixLike, target_origin: VectorLike, target_axes: MatrixLike
) -> Float[Array, "*batch 16"]:
    """The motor that carries one frame to another: origins (..., 3), axes (..., 3, 3) whose rows are unit vectors.

    T(target origin) R T(-source origin), with R of scalar part >= 0. Raises `NotAVersorError` for axes that are not
    orthonormal to 1e-9 or differ in handedness (while tracing: NaN), `OperatorRangeError` as `translator`.
    """
    matrices = [_matrix(source_axes, "source_axes"), _matrix(target_axes, "target_axes")]
    a, b = broadcast_batch((matrices[0], "source_axes"), (matrices[1], "target_axes"), core=2)
    usable = _require_frames(a, b)
    turn = _rotor_from_matrix(jnp.einsum("...ki,...kj->...ij", b, a))
    start = translator(-coefficients(source_origin, 3, "source_origin"))
    motor = even_product(translator(target_origin), even_product(turn, start))
    return _require_fit(jnp.where(usable[..., None], motor, jnp.nan), "motor from frames")


def _matrix(value: object, name: str) -> Array:
    array = coefficients(value, 3, name)
    if array.ndim < 2 or array.shape[-2] != 3:
        raise ShapeError(f"{name} has shape {array.shape}; its last two axes must have 3 entries each")
    return array
