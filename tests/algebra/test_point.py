"""Points: null vectors, read-back at any weight and distance, distances far out, gradients."""

import jax
import numpy as np
import pytest

from engine import algebra
from engine.algebra import tables

EPS = float(np.finfo(np.float64).eps)
RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("scale", [0.0, 1e-6, 1.0, 1e4, 1e6, 1e9])
def test_read_back_is_exact_to_rounding(scale: float) -> None:
    x = scale * RANDOM.normal(size=(8, 3))
    X = algebra.embed_point(x)
    np.testing.assert_allclose(algebra.point_coordinates(X), x, rtol=0, atol=8 * EPS * scale)
    np.testing.assert_allclose(algebra.point_coordinates(-3.0 * np.asarray(X)), x, rtol=0, atol=8 * EPS * scale)


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e6])
def test_distance_far_out_where_the_inner_product_has_lost_it(scale: float) -> None:
    a = scale * RANDOM.normal(size=(8, 3))
    b = a + RANDOM.normal(size=(8, 3))
    X, Y = algebra.embed_point(a), algebra.embed_point(b)
    expected = np.linalg.norm(a - b, axis=-1)
    # Each coordinate is read to a few eps of |x|.
    np.testing.assert_allclose(algebra.distance(X, Y), expected, rtol=0, atol=32 * EPS * scale)
    np.testing.assert_allclose(algebra.squared_distance(X, Y), expected**2, rtol=0, atol=320 * EPS * scale)
    # -2 X·Y is a difference of numbers of size |x|², each rounded.
    np.testing.assert_allclose(-2 * algebra.inner(X, Y), expected**2, rtol=0, atol=64 * EPS * max(scale, 1.0) ** 2)


def test_points_are_null_vectors_of_weight_one() -> None:
    X = algebra.embed_point(RANDOM.normal(size=(8, 3)))
    infinity = np.zeros(32)
    infinity[[tables.BLADE_INDEX["e4"], tables.BLADE_INDEX["e5"]]] = 1.0
    np.testing.assert_allclose(algebra.inner(X, X), np.zeros(8), atol=64 * EPS * 10)
    np.testing.assert_allclose(algebra.inner(X, infinity), -np.ones(8), atol=16 * EPS * 10)
    origin = algebra.embed_point(np.zeros(3))
    assert float(algebra.inner(origin, infinity)) == -1.0
    assert float(algebra.inner(origin, origin)) == 0.0


def test_points_stay_points_under_far_motions() -> None:
    x = RANDOM.normal(size=(8, 3))
    there = algebra.apply(algebra.translator([1e4, 0.0, 0.0]), algebra.embed_point(x))
    # The entries of the matrices are of size |x|, and |x|² in the one that is not read.
    np.testing.assert_allclose(
        algebra.point_coordinates(there), x + np.array([1e4, 0.0, 0.0]), rtol=0, atol=64 * EPS * 1e4
    )


def test_distance_of_a_point_to_itself_has_gradient_zero() -> None:
    X = algebra.embed_point([1.0, 2.0, 3.0])
    assert np.array_equal(
        jax.grad(lambda p: algebra.distance(algebra.embed_point(p), X))(np.array([1.0, 2.0, 3.0])), np.zeros(3)
    )
    slope = jax.grad(lambda p: algebra.distance(algebra.embed_point(p), X))(np.array([4.0, 6.0, 3.0]))
    np.testing.assert_allclose(slope, [0.6, 0.8, 0.0], atol=256 * EPS)


def test_infinity_has_no_coordinates() -> None:
    infinity = np.zeros(32)
    infinity[[tables.BLADE_INDEX["e4"], tables.BLADE_INDEX["e5"]]] = 1.0
    assert not np.isfinite(algebra.point_coordinates(infinity)).any()
    assert algebra.embed_point(np.zeros((0, 3))).shape == (0, 32)
