"""Logarithm of a motor: the inverse of `exp`, on every branch of Cl(4,1); derivation in docs/derivations/exp-log.md.

A motor is m = μ + m2 with μ = m0 + m4 in the ring R[m4], and log m = h(μ) m2 with h(μ) = arccos μ / √(1 - μ²). The
function h is singular only where a value of μ is -1, that is where an angle sum of the two planes reaches π. Motors
near there are taken apart first:

* two planes of rotation far from a single one (m4² > ¼): in each of the two ideals of ½(1 ± m4 / |m4|) the motor is a
  unit quaternion, whose logarithm is an angle by `atan2` times a direction;
* otherwise, for m0 < 0: log m = b + π P with b = log(-m) and P a plane of rotation that commutes with b.

Where a direction is arbitrary (log -1, for instance) a fixed one is taken, so that exp(log m) = m for every motor.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from engine.algebra import tables
from engine.algebra.arguments import MotorLike, coefficients, first_failure, is_concrete
from engine.algebra.exponential import bivector_to_even, quadvector_square, scalar_square, wedge_half
from engine.algebra.layout import in_full_blocks
from engine.algebra.motor import CLOSURE_TOLERANCE
from engine.algebra.product import even_product_kernel, residual_kernel, scale_constant, turn_kernel
from engine.algebra.ring import RingElement, Scalars, angle_over_sine
from engine.base.errors import NoLogarithmError, NotAVersorError

Bivectors = Float[Array, "*batch 10"]
Quadvectors = Float[Array, "*batch 5"]

_NOISE = 1e-13
"""Relative size below which a direction is taken to be rounding error: some hundred units in the last place."""

_SPLIT = 1e-10
"""Squares of two planes, relative to the squared size, whose difference is more than rounding: below it the rotation
of a screw about a far axis cannot be told from its translation."""

_TINY = 1e-90
"""Squared size of a bivector that is zero for every purpose; _NOISE² times its cube still is a normal number."""


def _guarded_root(x: Scalars, usable: Array) -> Scalars:
    """√x where usable, else 1, with a finite gradient in both cases."""
    return jnp.sqrt(jnp.where(usable, x, 1.0))


def _size(b: Bivectors) -> Scalars:
    return jnp.sum(b * b, axis=-1, keepdims=True)


def _scalar_product(a: Bivectors, b: Bivectors) -> Scalars:
    """Scalar part of a b."""
    return jnp.sum(scale_constant(a * b, tables.EVEN_GEOMETRIC.signs[tables.BIVECTORS, 0]), axis=-1, keepdims=True)


def _regular(scalar: Scalars, bivector: Bivectors, quad: Quadvectors) -> Bivectors:
    """h(μ) m2 for a motor whose values of μ are at least -½."""
    square = quadvector_square(quad)
    factor = angle_over_sine(RingElement(scalar, jnp.ones_like(scalar)), square)
    return factor.mean * bivector + factor.slope * turn_kernel(bivector, quad)


# --- two ideals: e with e² = +1 splits what commutes with it into two copies of the quaternions, by ½(1 ± e) ---
# In this section bivectors have an axis of length 2 before the last, one entry for each ideal.

_BOTH_SIGNS = np.array([[1.0], [-1.0]])


def _in_ideals(b: Float[Array, "*batch #2 10"], unit: Quadvectors) -> Float[Array, "*batch 2 10"]:
    """b ½(1 ± unit), of a bivector that commutes with the unit."""
    signs = _BOTH_SIGNS.reshape((1,) * (unit.ndim - 1) + (2, 1))
    units = jnp.broadcast_to(unit[..., None, :], (*unit.shape[:-1], b.shape[-2], 5))
    return 0.5 * (b + signs * turn_kernel(b, units))


def _commuting_part(b: Bivectors, unit: Quadvectors) -> Bivectors:
    """What of b commutes with the unit: <<b unit>_2 unit>_2, since the rest has no bivector in its product."""
    return turn_kernel(turn_kernel(b, unit), unit)


def _length(part: Bivectors) -> tuple[Scalars, Array]:
    """Length l of a part in an ideal, part² = -l² ½(1 ± unit), and whether it is clear of zero."""
    square = -2.0 * scalar_square(part)
    clear = square > _TINY
    return jnp.where(clear, _guarded_root(square, clear), 0.0), clear


def _canonical_directions(unit: Quadvectors) -> Float[Array, "*batch 2 10"]:
    """A unit bivector of each ideal: the first basis plane that keeps at least half of the largest length there."""
    batch = unit.shape[:-1]
    units = jnp.broadcast_to(unit[..., None, :], (*batch, 10, 5))
    planes = _commuting_part(jnp.broadcast_to(np.eye(10), (*batch, 10, 10)), units)
    parts = jnp.swapaxes(_in_ideals(planes[..., None, :], units), -2, -3)
    squares = -2.0 * scalar_square(parts)[..., 0]
    first = jnp.argmax(squares >= 0.5 * jnp.max(squares, axis=-1, keepdims=True), axis=-1)
    chosen = jnp.take_along_axis(parts, first[..., None, None], axis=-2)[..., 0, :]
    length, clear = _length(chosen)
    return jax.lax.stop_gradient(chosen / jnp.where(clear, length, 1.0))


def _directions(parts: Float[Array, "*batch 2 10"], unit: Quadvectors, scale: Scalars) -> Float[Array, "*batch 2 10"]:
    """Unit directions of the parts; projected once more after scaling, so that their error stays inside the ideal."""
    length, clear = _length(parts)
    clear = clear & (length > _NOISE * scale[..., None])
    units = jnp.broadcast_to(unit[..., None, :], (*unit.shape[:-1], 2, 5))
    again = _commuting_part(jnp.where(clear, parts, 0.0) / jnp.where(clear, length, 1.0), units)
    signs = _BOTH_SIGNS.reshape((1,) * (unit.ndim - 1) + (2, 1))
    again = 0.5 * (again + signs * turn_kernel(again, units))
    length, clear = _length(again)
    return jnp.where(clear, again / jnp.where(clear, length, 1.0), _canonical_directions(unit))


def _two_rotations(scalar: Scalars, bivector: Bivectors, quad: Quadvectors) -> Bivectors:
    """Logarithm of a motor with m4² > ¼, ideal by ideal."""
    root = jnp.sqrt(quadvector_square(quad))
    unit = quad / root
    parts = _in_ideals(bivector[..., None, :], unit)
    cosine = jnp.stack([scalar + root, scalar - root], axis=-2)
    beyond = cosine < 0.0
    zero = jnp.zeros_like(cosine)
    near = angle_over_sine(RingElement(jnp.where(beyond, 1.0, cosine), zero), zero)
    sine, _ = _length(parts)
    angle = jnp.arctan2(jnp.where(beyond, sine, 1.0), jnp.where(beyond, cosine, 1.0))
    far = angle * _directions(parts, unit, jnp.ones_like(scalar))
    return jnp.sum(jnp.where(beyond, far, near.mean * parts), axis=-2)


# --- the other sheet: log m = b + π P for b = log(-m) ---


def _opposite_in_ideals(b: Bivectors, half: Quadvectors) -> Bivectors:
    """b + π P for two rotations of comparable size: each ideal's part turns on by π against its own direction."""
    unit = half / jnp.sqrt(quadvector_square(half))
    directions = _directions(_in_ideals(b[..., None, :], unit), unit, jnp.sqrt(_size(b)))
    return b - jnp.pi * jnp.sum(directions, axis=-2)


def _commutator(a: Bivectors, b: Bivectors) -> Bivectors:
    """½ (a b - b a), which is the bivector part of a b."""
    return even_product_kernel(bivector_to_even(a), bivector_to_even(b))[..., 1:11]


def _unit_plane(p: Bivectors) -> Bivectors:
    """The simple bivector of square -1 next to p, which is nearly one: its plane of the lower square, scaled."""
    half, s = wedge_half(p), scalar_square(p)
    gap_squared = s * s - 4.0 * quadvector_square(half)
    usable = gap_squared > 0.0
    gap = _guarded_root(gap_squared, usable)
    plane = (turn_kernel(p, half) - 0.5 * (s - gap) * p) / gap
    square = -scalar_square(plane)
    return jnp.where(usable, plane, p) / _guarded_root(square, square > 0.0)


def _plane_beside(b: Bivectors, named: Quadvectors, boosts: Array) -> Bivectors:
    """A unit plane of rotation orthogonal to the simple bivector b: the bivector part of b x I for a vector x.

    For a boost, `named` is tried first for x I; then the five basis 4-vectors, the first of the larger planes.
    """
    batch = b.shape[:-1]
    basis = jnp.broadcast_to(np.eye(5), (*batch, 5, 5))
    candidates = jnp.concatenate([named[..., None, :], basis], axis=-2)
    planes = turn_kernel(jnp.broadcast_to(b[..., None, :], (*batch, 6, 10)), candidates)
    squares = -scalar_square(planes)[..., 0]
    sizes = jnp.sum(planes * planes, axis=-1)
    given = boosts & (squares[..., :1] > _SPLIT * sizes[..., :1]) & (sizes[..., :1] > _NOISE**2 * _size(b) ** 3)
    best = 1 + jnp.argmax(squares[..., 1:] >= 0.5 * jnp.max(squares[..., 1:], axis=-1, keepdims=True), axis=-1)
    chosen = jnp.take_along_axis(planes, jnp.where(given[..., 0], 0, best)[..., None, None], axis=-2)[..., 0, :]
    square = -scalar_square(chosen)
    return _unit_plane(chosen / _guarded_root(square, square > 0.0))


def _opposite(b: Bivectors) -> Bivectors:
    """b + π P with P² = -1, P commuting with b; P is opposite to b's own rotation if it has one."""
    half, s, size = wedge_half(b), scalar_square(b), _size(b)
    turned = turn_kernel(b, half)  # λ2 B1 + λ1 B2 for the squares λ1 >= 0 >= λ2 of the planes B1, B2 of b
    product = quadvector_square(half)  # λ1 λ2
    zero = ~(size > _TINY)
    comparable = (product > (s * s) / 64.0) & (product > (_SPLIT * size) ** 2) & ~zero
    first_quad = np.eye(5)[0].reshape((1,) * (b.ndim - 1) + (5,))
    ideals = _opposite_in_ideals(b, jnp.where(comparable, half, first_quad))

    gap_squared = s * s - 4.0 * product
    split = gap_squared > (_SPLIT * size) ** 2
    gap = jnp.where(split, _guarded_root(gap_squared, split), 0.0)
    low, high = 0.5 * (s - gap), 0.5 * (s + gap)
    rotation = jnp.where(split, (turned - low * b) / jnp.where(split, gap, 1.0), 0.0)
    first_plane = jnp.broadcast_to(np.eye(10)[0], b.shape)
    turning = -low > jnp.maximum(1e-2 * jnp.abs(high), _SPLIT * size)
    own_plane = _unit_plane(jnp.where(turning, -rotation / _guarded_root(-low, turning), first_plane))

    # What is left is a boost or null, perhaps with a rotation too small to show in s: beside a null part it shows in
    # λ2 B1, whose size is then the square of the rotation times that of b.
    boosts = split & (high > _SPLIT * size)
    usable = _size(turned) > _TINY
    squared_turn = _guarded_root(_size(turned) / jnp.where(zero, 1.0, size), usable & ~zero)
    screw = usable & ~zero & ~turning & ~boosts & (squared_turn > _NOISE * size)
    null_part = jnp.where(screw, turned / jnp.where(screw, squared_turn, 1.0), b - rotation)
    last_plane = jnp.roll(first_plane, 9, axis=-1)
    beside = _plane_beside(jnp.where(zero | turning, last_plane, null_part), half, boosts)
    beside = jnp.where(_scalar_product(beside, b) < 0.0, -beside, beside)

    # Next to a null part the plane may be about a wrong axis. Two commutators with b measure that error, times the
    # square of the rotation.
    parabolic = turning & (jnp.abs(high) < 1e-3 * -low)
    plane = jnp.where(turning, own_plane, beside)
    square = jnp.where(parabolic, -low, jnp.where(screw, squared_turn, 1.0))
    error = _commutator(b, plane)
    centered = _unit_plane(plane + _commutator(b, error) / square)
    better = (parabolic | screw) & (_size(_commutator(b, centered)) < _size(error))
    plane = jnp.where(zero, first_plane, jnp.where(better, centered, plane))
    return jnp.where(comparable, ideals, b + jnp.pi * plane)


# --- the whole ---


def log_kernel(m: Float[Array, "*batch 16"]) -> Bivectors:
    """Logarithm of unit motors, without checks: of anything else it is meaningless."""
    scalar, bivector, quad = m[..., :1], m[..., 1:11], m[..., 11:]
    two = quadvector_square(quad) > 0.25
    first = np.eye(5)[0].reshape((1,) * (m.ndim - 1) + (5,))
    ideals = _two_rotations(scalar, bivector, jnp.where(two, quad, first))
    negative = ~two & (scalar < 0.0)
    sign = jnp.where(negative, -1.0, 1.0)
    regular = _regular(
        jnp.where(two, 1.0, sign * scalar), jnp.where(two, 0.0, sign * bivector), jnp.where(two, 0.0, sign * quad)
    )
    opposite = _opposite(jnp.where(negative, regular, 0.0))
    return jnp.where(two, ideals, jnp.where(negative, opposite, regular))


_log = jax.jit(log_kernel)
_residual = jax.jit(residual_kernel)


def is_unit_motor(m: Float[Array, "*batch 16"]) -> Array:
    """Whether the closure residual is below the tolerance (NaN is not)."""
    return _residual(m) < CLOSURE_TOLERANCE


def require_motor(m: Float[Array, "*batch 16"], name: str) -> None:
    """Raise `NotAVersorError`, or `NoLogarithmError` for the versors with m reverse(m) = -1; silent while tracing."""
    unit = is_unit_motor(m)
    if not is_concrete(unit) or (place := first_failure(~unit)) is None:
        return
    square = even_product_kernel(m[place], m[place] * np.where(np.arange(16) % 11 == 0, 1.0, -1.0))
    if abs(float(square[0]) + 1.0) < CLOSURE_TOLERANCE and float(jnp.max(jnp.abs(square[11:]))) < CLOSURE_TOLERANCE:
        raise NoLogarithmError(
            f"{name} at batch index {place} has F reverse(F) = −1: it reverses time and space, and no exponential does"
        )
    raise NotAVersorError(
        f"{name} at batch index {place} is no unit motor: ‖F reverse(F) − 1‖ is {float(_residual(m[place])):.3g}"
    )


def log(m: MotorLike) -> Float[Array, "*batch 10"]:
    """Logarithm of motors, (..., 16) to (..., 10): a bivector b with exp(b) = m.

    The principal one: the sum and the difference of its two rotation angles (halves, as in `exp`) lie in [-π, π], so
    that log(1) = 0, log(-1) = π e12, and log(-m) ≠ log(m) although both are the same motion. Gradients are finite.
    Raises `NotAVersorError` for input that is no unit motor and `NoLogarithmError` for versors with m reverse(m) = -1;
    while tracing these cannot be raised and the result is NaN.
    """
    motor = coefficients(m, 16, "m")
    require_motor(motor, "m")
    result = in_full_blocks(_log, (motor,), motor.shape[:-1])
    return jnp.where(is_unit_motor(motor)[..., None], result, jnp.nan)
