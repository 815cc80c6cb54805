"""Arithmetic in the commutative ring R[q], q a 4-vector with scalar square Q; elements are mean + slope * q.

What commutes with a motor's bivector lives here: the scalar and 4-vector parts of a motor, and every function of the
square of a bivector. Docs: docs/derivations/exp-log.md.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

Scalars = Float[Array, "*batch 1"]


class RingElement(NamedTuple):
    """mean + slope * q."""

    mean: Scalars
    slope: Scalars


def ring_product(a: RingElement, b: RingElement, square: Scalars) -> RingElement:
    """a b, with q² = `square`."""
    return RingElement(a.mean * b.mean + a.slope * b.slope * square, a.mean * b.slope + a.slope * b.mean)


def ring_root(a: RingElement, square: Scalars) -> tuple[RingElement, RingElement]:
    """The principal square root of a and its reciprocal (De Keninck and Roelfs, "Normalization, square roots, and the
    exponential and logarithmic maps in geometric algebras of less than 6D", 2022).

    With n = √(mean² − slope² Q), the root is (mean + n + slope q) / √(2 (mean + n)), of norm √n: one formula for
    every sign of Q, without splitting the ring. Undefined where n + mean is zero.
    """
    norm = jnp.sqrt(a.mean * a.mean - a.slope * a.slope * square)
    mean = jnp.sqrt(0.5 * (a.mean + norm))
    slope = 0.5 * a.slope / mean
    return RingElement(mean, slope), RingElement(mean / norm, -slope / norm)


HALVINGS = 5
"""Square roots taken before the series: a rapidity of 20 becomes 0.63, an angle of 120 degrees 4 degrees."""

SERIES_TERMS = 16
"""n! / (2n+1)!! |μ - 1|^n, about (|μ - 1| / 2)^n: at the rapidity 20, |μ - 1| / 2 = 0.1, and 1e-16 at n = 16."""


def angle_over_sine(cosine: RingElement, square: Scalars) -> RingElement:
    """h(μ) = arccos μ / √(1 - μ²), equally arcosh μ / √(μ² - 1): entire near μ = 1, singular only at μ = -1.

    Halving first: cos ½θ = √(½ (1 + μ)), and θ / sin θ = ½θ / (sin ½θ cos ½θ) gives a factor 1 / cos ½θ a time. Near
    μ = 1 the power series h = sum_n n! / (2n + 1)!! (1 - μ)^n. Meant for μ whose real values are at least -½.
    """
    one, zero = jnp.ones_like(cosine.mean), jnp.zeros_like(cosine.mean)
    factor = RingElement(one, zero)
    for _ in range(HALVINGS):
        cosine, reciprocal = ring_root(RingElement(0.5 * (1.0 + cosine.mean), 0.5 * cosine.slope), square)
        factor = ring_product(factor, reciprocal, square)
    step = RingElement(1.0 - cosine.mean, -cosine.slope)
    terms = [math.factorial(n) / math.prod(range(1, 2 * n + 2, 2)) for n in range(SERIES_TERMS)]
    total = RingElement(terms[-1] * one, zero)
    for term in reversed(terms[:-1]):
        product = ring_product(total, step, square)
        total = RingElement(product.mean + term, product.slope)
    return ring_product(total, factor, square)
