"""Laws of the algebra on generated multivectors and motors, one reusable check each."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from engine import algebra
from engine.algebra import tables

EPS = float(np.finfo(np.float64).eps)

_entry = st.floats(-8.0, 8.0, allow_subnormal=False)
multivectors = hnp.arrays(np.float64, 32, elements=_entry)
even_elements = hnp.arrays(np.float64, 16, elements=_entry)
points = hnp.arrays(np.float64, 3, elements=_entry)
bivectors = hnp.arrays(np.float64, 10, elements=st.floats(-1.5, 1.5, allow_subnormal=False))


def check(actual: object, expected: object, *factors: NDArray, terms: float = 64.0) -> None:
    """Equal to `terms` roundings of the product of the norms of the factors."""
    scale = float(np.prod([max(float(np.linalg.norm(factor)), 1e-150) for factor in factors]))
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=0, atol=terms * EPS * scale)


def motor(b: NDArray) -> NDArray:
    return np.asarray(algebra.exp(b))


@given(multivectors, multivectors, multivectors)
def test_geometric_product_is_associative(a: NDArray, b: NDArray, c: NDArray) -> None:
    left = algebra.geometric_product(algebra.geometric_product(a, b), c)
    check(left, algebra.geometric_product(a, algebra.geometric_product(b, c)), a, b, c)


@given(multivectors, multivectors, multivectors)
def test_outer_product_is_associative(a: NDArray, b: NDArray, c: NDArray) -> None:
    left = algebra.outer_product(algebra.outer_product(a, b), c)
    check(left, algebra.outer_product(a, algebra.outer_product(b, c)), a, b, c)


@given(even_elements, even_elements, even_elements)
def test_even_product_is_associative(a: NDArray, b: NDArray, c: NDArray) -> None:
    left = algebra.even_product(algebra.even_product(a, b), c)
    check(left, algebra.even_product(a, algebra.even_product(b, c)), a, b, c)


@given(multivectors, multivectors)
def test_reverse_is_an_anti_automorphism(a: NDArray, b: NDArray) -> None:
    both = algebra.geometric_product(algebra.reverse(b), algebra.reverse(a))
    check(algebra.reverse(algebra.geometric_product(a, b)), both, a, b)
    assert np.array_equal(algebra.reverse(algebra.reverse(a)), a)


@given(multivectors, multivectors, multivectors)
def test_contraction_is_the_adjoint_of_the_outer_product(a: NDArray, b: NDArray, c: NDArray) -> None:
    """(a ∧ b) ⌋ c = a ⌋ (b ⌋ c), and a ⌊ b is the reverse of reverse(b) ⌋ reverse(a)."""
    left = algebra.left_contraction(algebra.outer_product(a, b), c)
    check(left, algebra.left_contraction(a, algebra.left_contraction(b, c)), a, b, c)
    other = algebra.reverse(algebra.left_contraction(algebra.reverse(b), algebra.reverse(a)))
    check(algebra.right_contraction(a, b), other, a, b)


@given(multivectors, multivectors)
def test_dual_turns_outer_products_into_contractions(a: NDArray, b: NDArray) -> None:
    """dual(a ∧ b) = a ⌋ dual(b)."""
    check(algebra.dual(algebra.outer_product(a, b)), algebra.left_contraction(a, algebra.dual(b)), a, b)


@given(multivectors, multivectors)
def test_inner_is_the_scalar_part_of_the_product(a: NDArray, b: NDArray) -> None:
    check(algebra.inner(a, b), algebra.geometric_product(a, b)[0], a, b)
    assert float(algebra.inner(a, b)) == float(algebra.inner(b, a))


@given(bivectors, multivectors, st.integers(0, 5))
def test_versors_preserve_grades(b: NDArray, x: NDArray, grade: int) -> None:
    m = motor(b)
    one_grade = np.asarray(algebra.grade_projection(x, grade))
    turned = np.asarray(algebra.apply(m, one_grade))
    check(np.where(grade == tables.GRADES, 0.0, turned), np.zeros(32), m, m, x, terms=1024.0)


@given(bivectors, multivectors, multivectors)
def test_versors_are_automorphisms(b: NDArray, x: NDArray, y: NDArray) -> None:
    m = motor(b)
    apart = algebra.geometric_product(algebra.apply(m, x), algebra.apply(m, y))
    check(algebra.apply(m, algebra.geometric_product(x, y)), apart, m, m, m, m, x, y, terms=1024.0)


@given(bivectors)
def test_exponentials_are_motors_and_log_inverts_exp(b: NDArray) -> None:
    m = motor(b)
    check(algebra.closure_residual(m), 0.0, m, m, terms=1024.0)
    for sign in (1.0, -1.0):
        logarithm = np.asarray(algebra.log(sign * m))
        scale = np.append(m, np.linalg.norm(logarithm))
        check(algebra.exp(logarithm), sign * m, scale, scale, terms=4096.0)


@given(bivectors)
def test_reverse_of_a_motor_is_its_inverse_power(b: NDArray) -> None:
    check(algebra.exp(-b), algebra.even_reverse(motor(b)), motor(b), terms=512.0)


@given(points, points)
def test_distance_identity(x: NDArray, y: NDArray) -> None:
    """X·Y = -½ |x - y|²."""
    X, Y = np.asarray(algebra.embed_point(x)), np.asarray(algebra.embed_point(y))
    check(algebra.inner(X, Y), -0.5 * np.sum((x - y) ** 2), X, Y)
    check(algebra.squared_distance(X, Y), np.sum((x - y) ** 2), np.append(x, 1.0), np.append(y, 1.0), X)


@given(points, points, points)
def test_translators_commute_and_add(x: NDArray, s: NDArray, t: NDArray) -> None:
    both = algebra.even_product(algebra.translator(s), algebra.translator(t))
    check(both, algebra.translator(s + t), np.append(s, 1.0), np.append(t, 1.0))
    moved = algebra.point_coordinates(algebra.apply(both, algebra.embed_point(x)))
    check(moved, x + s + t, np.append(x, 9.0), np.append(s, 9.0), np.append(t, 9.0))
