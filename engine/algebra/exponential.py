"""Exponential of a bivector in closed form on every branch of Cl(4,1); derivation in docs/derivations/exp-log.md.

B² = z = s + q with a scalar s and q = B ∧ B of grade 4, and q² = Q is a scalar, so that exp B = c(z) + g(z) B with the
entire functions c(z) = cosh √z and g(z) = sinh √z / √z of an element of the commutative ring R[q]. A function of s + q
is its mean over s ± √Q plus q times its divided difference. Three forms of those two numbers are each accurate where
they are selected: a Taylor polynomial in Q (simple, null and nearly simple bivectors; no root of Q), the two real
values (two rotations), and the two commuting planes (a boost and a rotation).
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from engine.algebra.arguments import BivectorLike, coefficients
from engine.algebra.layout import in_full_blocks
from engine.algebra.product import turn_kernel
from engine.algebra.ring import RingElement, Scalars

SERIES_RADIUS = 4.0
"""|z| up to which c, g and their derivatives are summed as power series."""

SERIES_TERMS = 15
"""4^n / (2n)! falls below 1e-20 of its largest term at n = 15, so that the remainder is far below one ulp."""

TAYLOR_ORDER = 8
"""Order in √Q, which the limit below keeps under max(1, √|s|) / 16: terms fall as (1/32)^k / k!, 2e-17 at k = 8."""

TAYLOR_LIMIT = 1.0 / 256.0


def bivector_to_even(b: Float[Array, "*batch 10"]) -> Float[Array, "*batch 16"]:
    """The bivector as an even element."""
    one = jnp.zeros((*b.shape[:-1], 1), b.dtype)
    return jnp.concatenate([one, b, jnp.zeros((*b.shape[:-1], 5), b.dtype)], axis=-1)


def wedge_half(b: Float[Array, "*batch 10"]) -> Float[Array, "*batch 5"]:
    """½ B ∧ B on e1234, e1235, e1245, e1345, e2345.

    The planes that contain e4 or e5 enter through the null combinations b_i5 ± b_i4, one of which vanishes for a
    translator: its square then is zero, not the rounding error of the difference of two squares.
    """
    b12, b13, b14, b15, b23, b24, b25, b34, b35, b45 = jnp.split(b, 10, axis=-1)
    u1, u2, u3 = b15 + b14, b25 + b24, b35 + b34
    v1, v2, v3 = b15 - b14, b25 - b24, b35 - b34
    return jnp.concatenate(
        [
            b12 * b34 - b13 * b24 + b14 * b23,
            b12 * b35 - b13 * b25 + b15 * b23,
            b12 * b45 - 0.5 * (u1 * v2 - v1 * u2),
            b13 * b45 - 0.5 * (u1 * v3 - v1 * u3),
            b23 * b45 - 0.5 * (u2 * v3 - v2 * u3),
        ],
        axis=-1,
    )


def scalar_square(b: Float[Array, "*batch 10"]) -> Scalars:
    """Scalar part of B²."""
    b12, b13, b14, b15, b23, b24, b25, b34, b35, b45 = jnp.split(b, 10, axis=-1)
    mixed = (b15 - b14) * (b15 + b14) + (b25 - b24) * (b25 + b24) + (b35 - b34) * (b35 + b34)
    return b45 * b45 + mixed - (b12 * b12 + b13 * b13 + b23 * b23)


def quadvector_square(w: Float[Array, "*batch 5"]) -> Scalars:
    """w² of a 4-vector on e1234, e1235, e1245, e1345, e2345: always a scalar."""
    a, b, c, d, e = jnp.split(w, 5, axis=-1)
    return (a - b) * (a + b) - (c * c + d * d + e * e)


def _series(z: Float[Array, "..."], k: int) -> Float[Array, "..."]:
    """G_k by its power series, for |z| at most `SERIES_RADIUS`."""
    terms = [
        1.0 / (math.prod(range(2, 2 * n + 1, 2)) * math.prod(range(1, 2 * n + 2 * k, 2))) for n in range(SERIES_TERMS)
    ]
    total = jnp.full_like(z, terms[-1])
    for term in reversed(terms[:-1]):
        total = total * z + term
    return total


def derivative_family(z: Float[Array, "..."], count: int) -> tuple[Float[Array, "..."], ...]:
    """G_0 = c(z), G_1 = g(z), ..., where G_k' = ½ G_{k+1}, that is c^(k) = G_k / 2^k.

    G_k(z) = sum_n z^n / ((2n)!! (2n + 2k - 1)!!) are spherical Bessel functions in disguise: beyond the radius of the
    series, G_{k+1} = (G_{k-1} - (2k - 1) G_k) / z (Abramowitz and Stegun 10.1.19).
    """
    small = ~(jnp.abs(z) > SERIES_RADIUS)
    near = jnp.where(small, z, 0.0)
    far = jnp.where(small, SERIES_RADIUS + 1.0, z)
    turns = far < 0.0
    angle = jnp.sqrt(jnp.where(turns, -far, 1.0))
    rapidity = jnp.sqrt(jnp.where(turns, 1.0, far))
    family = [
        jnp.where(turns, jnp.cos(angle), jnp.cosh(rapidity)),
        jnp.where(turns, jnp.sin(angle) / angle, jnp.sinh(rapidity) / rapidity),
    ]
    for k in range(1, count - 1):
        family.append((family[k - 1] - (2 * k - 1) * family[k]) / far)
    return tuple(jnp.where(small, _series(near, k), family[k]) for k in range(count))


def _by_taylor(s: Scalars, square: Scalars) -> tuple[RingElement, RingElement]:
    """c and g of s + q for a small Q: even orders of the Taylor series make the mean, odd ones the slope."""
    family = derivative_family(s, TAYLOR_ORDER + 1)
    functions = []
    for shift in (0, 1):
        orders = [family[k + shift] / (2.0**k * math.factorial(k)) for k in range(TAYLOR_ORDER)]
        mean, slope = jnp.zeros_like(s), jnp.zeros_like(s)
        for k in range(TAYLOR_ORDER - 2, -1, -2):
            mean = mean * square + orders[k]
            slope = slope * square + orders[k + 1]
        functions.append(RingElement(mean, slope))
    return functions[0], functions[1]


def _two_squares(s: Scalars, square: Scalars) -> tuple[Scalars, Scalars, Scalars]:
    """Squares B1² > 0 > B2² of the commuting planes of B = B1 + B2 for Q < 0, and their difference.

    They are the roots of x² - s x + Q/4; the smaller follows from their product without cancellation.
    """
    gap = jnp.sqrt(s * s - square)
    larger = 0.5 * (jnp.abs(s) + gap)
    smaller = -0.25 * square / larger
    boosts = s > 0.0
    return jnp.where(boosts, larger, smaller), -jnp.where(boosts, smaller, larger), gap


def cosh_and_sinhc(s: Scalars, square: Scalars) -> tuple[RingElement, RingElement]:
    """c and g of s + q with q² = `square`, each form fed safe numbers where it is not the one selected."""
    limit = TAYLOR_LIMIT * jnp.maximum(1.0, jnp.abs(s))
    two_values, two_planes = square > limit, square < -limit
    simple = ~(two_values | two_planes)
    taylor = _by_taylor(jnp.where(simple, s, 0.0), jnp.where(simple, square, 0.0))

    root = jnp.sqrt(jnp.where(two_values, square, 1.0))
    boost, turn, gap = _two_squares(jnp.where(two_planes, s, 0.0), jnp.where(two_planes, square, -1.0))
    center = jnp.where(two_values, s, 0.0)
    arguments = jnp.concatenate(
        [jnp.where(two_values, center + root, boost), jnp.where(two_values, center - root, turn)], axis=-1
    )
    c, g = derivative_family(arguments, 2)
    (c1, c2), (g1, g2) = jnp.split(c, 2, axis=-1), jnp.split(g, 2, axis=-1)
    values = (
        RingElement(0.5 * (c1 + c2), (c1 - c2) / (2.0 * root)),
        RingElement(0.5 * (g1 + g2), (g1 - g2) / (2.0 * root)),
    )
    planes = (
        RingElement(c1 * c2, 0.5 * g1 * g2),
        RingElement((boost * c2 * g1 - turn * c1 * g2) / gap, 0.5 * (c1 * g2 - c2 * g1) / gap),
    )
    chosen = jax.tree.map(lambda t, v, p: jnp.where(two_values, v, jnp.where(two_planes, p, t)), taylor, values, planes)
    return chosen[0], chosen[1]


def exp_kernel(b: Float[Array, "*batch 10"]) -> Float[Array, "*batch 16"]:
    """Exponential of bivectors, without checks."""
    half = wedge_half(b)
    cosh, sinhc = cosh_and_sinhc(scalar_square(b), 4.0 * quadvector_square(half))
    # B q = 2 B half, a pure bivector: what it has of other grades is rounding error.
    turned = turn_kernel(b, half)
    return jnp.concatenate([cosh.mean, sinhc.mean * b + 2.0 * sinhc.slope * turned, 2.0 * cosh.slope * half], axis=-1)


_exp = jax.jit(exp_kernel)


def exp(b: BivectorLike) -> Float[Array, "*batch 16"]:
    """Exponential of a bivector, (..., 10) to (..., 16): rotations, boosts, null bivectors and their commuting sums.

    A closed form, not a truncated series: the error is a few units in the last place of the angle, also after many
    turns. exp(0) is exactly 1. Gradients are finite everywhere. `PrecisionError` and `ShapeError` as usual.
    """
    bivector = coefficients(b, 10, "b")
    return in_full_blocks(_exp, (bivector,), bivector.shape[:-1])
