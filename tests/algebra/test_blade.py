"""Duality and meet: signs, and lines and planes that cross where they should."""

import numpy as np

from engine import algebra
from engine.algebra import tables

EPS = float(np.finfo(np.float64).eps)


def blade(name: str) -> np.ndarray:
    return np.eye(32)[tables.BLADE_INDEX[name]]


def point(*x: float) -> np.ndarray:
    return np.asarray(algebra.embed_point(np.array(x, np.float64)))


INFINITY = blade("e4") + blade("e5")


def wedge(*factors: np.ndarray) -> np.ndarray:
    total = factors[0]
    for factor in factors[1:]:
        total = np.asarray(algebra.outer_product(total, factor))
    return total


def test_dual_is_division_by_the_pseudoscalar() -> None:
    a = np.random.default_rng(0).normal(size=32)
    pseudoscalar = blade("e12345")
    assert np.array_equal(algebra.geometric_product(pseudoscalar, pseudoscalar), -blade("1"))
    assert np.array_equal(algebra.undual(a), algebra.geometric_product(a, pseudoscalar))
    assert np.array_equal(algebra.dual(a), algebra.geometric_product(a, -pseudoscalar))
    assert np.array_equal(algebra.undual(algebra.dual(a)), a)
    assert np.array_equal(algebra.dual(algebra.dual(a)), -a)
    assert np.array_equal(algebra.dual(pseudoscalar), blade("1"))


def test_planes_meet_in_their_line_and_a_line_meets_a_plane_in_its_point() -> None:
    floor = wedge(point(0, 0, 0), point(1, 0, 0), point(0, 1, 0), INFINITY)
    wall = wedge(point(0, 0, 0), point(1, 0, 0), point(0, 0, 1), INFINITY)
    line = np.asarray(algebra.meet(floor, wall))
    axis = wedge(point(0, 0, 0), point(1, 0, 0), INFINITY)
    scale = float(line @ axis) / float(axis @ axis)
    np.testing.assert_allclose(line, scale * axis, atol=64 * EPS)
    assert abs(scale) > 0.5
    pole = wedge(point(2, 3, -1), point(2, 3, 4), INFINITY)
    flat_point = np.asarray(algebra.meet(pole, floor))
    np.testing.assert_allclose(wedge(flat_point, point(2, 3, 0)), np.zeros(32), atol=1e3 * EPS)
    assert float(np.abs(flat_point).max()) > 0.5


def test_blades_that_do_not_span_the_space_meet_in_zero() -> None:
    assert np.array_equal(algebra.meet(blade("e1"), blade("e2")), np.zeros(32))
