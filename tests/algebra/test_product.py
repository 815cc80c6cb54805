"""Products and sandwiches against the dense structure constants, the doors, and what the kernels trace to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from engine import algebra
from engine.algebra import product, tables
from engine.base.errors import NotAVersorError, PrecisionError, ShapeError

EPS = float(np.finfo(np.float64).eps)
DENSE = tables.dense_table()
ARITHMETIC = {"mul", "add", "sub", "neg", "reduce_sum"}
MOVEMENT = {"gather", "slice", "concatenate", "reshape", "transpose", "rev", "squeeze", "broadcast_in_dim"}


def random(*shape: int, seed: int = 0) -> NDArray:
    return np.random.default_rng(seed).normal(size=shape)


def dense_product(a: NDArray, b: NDArray) -> NDArray:
    return np.einsum("ijk,...i,...j->...k", DENSE, a, b)


def close(actual: object, expected: NDArray, terms: int) -> None:
    """Equal to the rounding of `terms` products of numbers of the size of the largest."""
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=0.0, atol=terms * EPS * np.abs(expected).max())


def test_geometric_product_is_the_dense_table() -> None:
    a, b = random(40, 32), random(40, 32, seed=1)
    close(algebra.geometric_product(a, b), dense_product(a, b), 32)


@pytest.mark.parametrize(
    ("function", "grade_of"),
    [
        (algebra.outer_product, lambda r, s: r + s),
        (algebra.left_contraction, lambda r, s: s - r),
        (algebra.right_contraction, lambda r, s: r - s),
    ],
)
def test_products_that_keep_one_grade(function: object, grade_of: object) -> None:
    assert callable(function)
    assert callable(grade_of)
    a, b = random(32), random(32, seed=1)
    expected = np.zeros(32)
    for r in range(6):
        for s in range(6):
            whole = dense_product(a * (r == tables.GRADES), b * (s == tables.GRADES))
            expected += whole * (grade_of(r, s) == tables.GRADES)
    close(function(a, b), expected, 32)


def test_even_product_sandwich_and_apply_agree_with_the_full_algebra() -> None:
    v, f, x = random(40, 16), random(40, 16, seed=1), random(40, 32, seed=2)
    full_v = np.asarray(algebra.to_multivector(v))
    full_f = np.asarray(algebra.to_multivector(f))
    reverse = full_v * tables.REVERSE_SIGNS
    close(algebra.to_multivector(algebra.even_product(v, f)), dense_product(full_v, full_f), 16)
    close(algebra.to_multivector(algebra.sandwich(v, f)), dense_product(dense_product(full_v, full_f), reverse), 256)
    close(algebra.apply(v, x), dense_product(dense_product(full_v, x), reverse), 256)


def test_closure_residual_is_the_norm_of_the_whole_product() -> None:
    f = random(40, 16)
    full = np.asarray(algebra.to_multivector(f))
    whole = dense_product(full, full * tables.REVERSE_SIGNS)
    whole[:, 0] -= 1.0
    close(algebra.closure_residual(f), np.linalg.norm(whole, axis=-1), 64)


def test_residual_of_what_is_no_number_is_none() -> None:
    assert float(algebra.closure_residual(algebra.identity_motor())) == 0.0
    assert np.isnan(float(algebra.closure_residual(np.full(16, np.nan))))
    assert not float(algebra.closure_residual(np.full(16, np.inf))) < 1e-6
    assert not float(algebra.closure_residual(np.full(16, 1e200))) < 1e-6


def test_product_by_one_is_exact() -> None:
    one, f = algebra.identity_motor((40,)), random(40, 16)
    assert np.array_equal(algebra.even_product(one, f), f)
    assert np.array_equal(algebra.even_product(f, one), f)
    assert np.array_equal(algebra.sandwich(one, f), f)


def test_involutions() -> None:
    a, b = random(32), random(32, seed=1)
    close(
        algebra.reverse(algebra.geometric_product(a, b)),
        np.asarray(algebra.geometric_product(algebra.reverse(b), algebra.reverse(a))),
        64,
    )
    close(
        algebra.grade_involution(algebra.geometric_product(a, b)),
        np.asarray(algebra.geometric_product(algebra.grade_involution(a), algebra.grade_involution(b))),
        64,
    )
    assert np.array_equal(algebra.clifford_conjugate(a), algebra.reverse(algebra.grade_involution(a)))
    assert np.array_equal(
        algebra.even_reverse(a[:16]), algebra.to_even(algebra.reverse(algebra.to_multivector(a[:16])))
    )


def test_grades_add_up_to_the_whole() -> None:
    a = random(32)
    assert np.array_equal(sum(np.asarray(algebra.grade_projection(a, grade)) for grade in range(6)), a)
    with pytest.raises(ShapeError, match="grade 6"):
        algebra.grade_projection(a, 6)


def test_inner_is_the_symmetric_scalar_part() -> None:
    a, b = random(32), random(32, seed=1)
    close(algebra.inner(a, b), np.asarray(dense_product(a, b)[0]), 32)
    assert float(algebra.inner(a, b)) == float(algebra.inner(b, a))


def test_to_even_refuses_odd_content() -> None:
    motor = random(3, 16)
    full = algebra.to_multivector(motor)
    assert np.array_equal(algebra.to_even(full), motor)
    for odd in (1e-300, np.nan):
        broken = np.asarray(full).copy()
        broken[1, tables.BLADE_INDEX["e123"]] = odd
        with pytest.raises(NotAVersorError, match=r"\(1,\)"):
            algebra.to_even(broken)
        traced = np.asarray(jax.jit(algebra.to_even)(broken))
        assert np.isnan(traced[1]).all()
        assert np.array_equal(traced[[0, 2]], motor[[0, 2]])


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (np.zeros(16, np.float32), PrecisionError),
        (np.zeros(16, np.int64), PrecisionError),
        (np.zeros(16, np.complex128), PrecisionError),
        (np.zeros(15), ShapeError),
        (np.zeros(32), ShapeError),
        (np.float64(1.0), ShapeError),
        (np.zeros((3, 16)), ShapeError),
    ],
)
def test_doors_refuse_what_does_not_fit(bad: object, error: type[Exception]) -> None:
    good = np.zeros((2, 16))
    for function in (algebra.even_product, algebra.sandwich):
        with pytest.raises(error):
            function(bad, good)
        with pytest.raises(error):
            function(good, bad)


def test_x64_off_is_refused() -> None:
    with jax.enable_x64(False), pytest.raises(PrecisionError, match="64-bit"):
        algebra.even_product(np.zeros(16), np.zeros(16))


@pytest.mark.parametrize("batch", [(), (1,), (0,), (3, 0), (2, 3), (33,)])
def test_any_batch_and_broadcasting(batch: tuple[int, ...]) -> None:
    v, f = random(*batch, 16), random(16, seed=1)
    result = algebra.even_product(v, f)
    assert result.shape == (*batch, 16)
    if result.size:
        close(result, np.einsum("ijk,...i,j->...k", tables.dense_table(tables.EVEN_NAMES), v, f), 16)


@pytest.mark.parametrize("function", [algebra.even_product, algebra.sandwich])
def test_a_scalar_case_equals_its_row_of_a_batch_bitwise(function: object) -> None:
    assert callable(function)
    v, f = random(70, 16), random(70, 16, seed=1)
    whole = np.asarray(function(v, f))
    for row in (0, 41, 69):
        assert np.array_equal(function(v[row], f[row]), whole[row])
        assert np.array_equal(function(v[row : row + 1], f[row : row + 1])[0], whole[row])
    close(jax.vmap(function)(v, f), whole, 256)


@pytest.mark.parametrize("batch", [(), (5,), (40,)])
def test_kernels_trace_to_sums_products_and_data_movement(batch: tuple[int, ...]) -> None:
    m, x = jnp.zeros((*batch, 16)), jnp.zeros((*batch, 32))
    traced = [
        jax.make_jaxpr(product.even_product_kernel)(m, m),
        jax.make_jaxpr(product.sandwich_kernel)(m, m),
        jax.make_jaxpr(product.apply_kernel)(m, x),
        jax.make_jaxpr(product.geometric_product_kernel)(x, x),
        jax.make_jaxpr(product.closure_kernel)(m),
    ]
    for jaxpr in traced:
        assert {equation.primitive.name for equation in jaxpr.eqns} <= ARITHMETIC | MOVEMENT


def test_gradient_of_the_residual_is_finite_where_it_vanishes() -> None:
    gradient = jax.grad(lambda f: algebra.closure_residual(f))(algebra.identity_motor())
    assert np.array_equal(gradient, np.zeros(16))
    v, f = random(16), random(16, seed=1)
    value, tangent = jax.jvp(lambda w: algebra.sandwich(w, f), (v,), (f,))
    step = 1e-6
    difference = (algebra.sandwich(v + step * f, f) - algebra.sandwich(v - step * f, f)) / (2 * step)
    # A sandwich is quadratic in v: central differences are exact up to the rounding divided by the step.
    np.testing.assert_allclose(tangent, difference, atol=float(jnp.abs(value).max()) * 64 * EPS / step)
