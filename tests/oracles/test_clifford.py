"""The `clifford` library as an independent oracle: ten thousand random cases, and every special case by name."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine import algebra
from engine.algebra import tables
from tests.algebra.cases import PRINCIPAL

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

CASES = 10_000
RELATIVE = 1e-12
"""Agreed accuracy, relative to the product of the norms: 32 terms of eps, twice for a sandwich, leave a factor 100."""


@pytest.fixture(scope="module")
def oracle() -> Any:
    """The layout of Cl(4,1); importing and compiling it warns in ways that are not ours."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", module=r"(numba|sparse|clifford)(\.|$)")
        import clifford

        layout, _ = clifford.Cl(4, 1)
        one = layout.randomMV(rng=np.random.default_rng(0))
        for warm_up in (one * one, one ^ one, one << one, ~one, one.dual()):
            assert warm_up is not None
    return layout


@pytest.fixture(scope="module")
def pairs() -> tuple[NDArray, NDArray]:
    random = np.random.default_rng(41)
    # Sizes over six decades, so that a mistake in one small coefficient cannot hide.
    scale = 10.0 ** random.uniform(-3.0, 3.0, size=(2, CASES, 1))
    a, b = scale * random.normal(size=(2, CASES, 32))
    return a, b


def agree(actual: object, expected: NDArray, *factors: NDArray) -> None:
    scale = np.prod([np.linalg.norm(factor, axis=-1) for factor in factors], axis=0)
    error = np.abs(np.asarray(actual) - expected).max(axis=-1) / scale
    assert float(error.max()) < RELATIVE


def table_of(function: Callable[[NDArray, NDArray], NDArray], a: NDArray, b: NDArray) -> NDArray:
    return np.array([function(left, right) for left, right in zip(a, b, strict=True)])


def test_the_oracle_orders_its_blades_as_we_do(oracle: Any) -> None:
    ours = [tuple(axis + 1 for axis in range(5) if mask >> axis & 1) for mask in tables.BLADES]
    assert ours == [tuple(blade) for blade in oracle.bladeTupList]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (algebra.geometric_product, "gmt_func"),
        (algebra.outer_product, "omt_func"),
        (algebra.left_contraction, "lcmt_func"),
    ],
)
def test_products(oracle: Any, pairs: tuple[NDArray, NDArray], ours: Any, theirs: str) -> None:
    a, b = pairs
    agree(ours(a, b), table_of(getattr(oracle, theirs), a, b), a, b)


def test_reverse_dual_and_the_other_involutions(oracle: Any, pairs: tuple[NDArray, NDArray]) -> None:
    for value in pairs[0][:100]:
        mv = oracle.MultiVector(value)
        assert np.array_equal(algebra.reverse(value), (~mv).value)
        assert np.array_equal(algebra.grade_involution(value), mv.gradeInvol().value)
        assert np.array_equal(algebra.clifford_conjugate(value), mv.conjugate().value)
        inverse_pseudoscalar = oracle.MultiVector(-np.eye(32)[31])
        assert np.array_equal(algebra.dual(value), (mv * inverse_pseudoscalar).value)


def test_even_products_sandwiches_and_closure(oracle: Any, pairs: tuple[NDArray, NDArray]) -> None:
    v, f = pairs[0][:, tables.EVEN], pairs[1][:, tables.EVEN]
    full_v, full_f = np.asarray(algebra.to_multivector(v)), np.asarray(algebra.to_multivector(f))
    reverse = full_v * tables.REVERSE_SIGNS
    product = table_of(oracle.gmt_func, full_v, full_f)
    agree(algebra.to_multivector(algebra.even_product(v, f)), product, v, f)
    agree(algebra.to_multivector(algebra.sandwich(v, f)), table_of(oracle.gmt_func, product, reverse), v, f, v)
    x = pairs[1]
    moved = table_of(oracle.gmt_func, table_of(oracle.gmt_func, full_v, x), reverse)
    agree(algebra.apply(v, x), moved, v, x, v)
    square = table_of(oracle.gmt_func, full_v, reverse)
    square[:, 0] -= 1.0
    expected = np.linalg.norm(square, axis=-1)
    error = np.abs(np.asarray(algebra.closure_residual(v)) - expected) / (1.0 + np.sum(v * v, axis=-1))
    assert float(error.max()) < RELATIVE


def oracle_exp(oracle: Any, b: NDArray, halvings: int = 12) -> NDArray:
    """exp by the oracle's product alone: a Taylor polynomial of b / 2^12, squared twelve times."""
    small = np.zeros(32)
    small[tables.EVEN[1:11]] = b / 2.0**halvings
    term, total = np.eye(32)[0], np.eye(32)[0].copy()
    for order in range(1, 30):
        term = oracle.gmt_func(term, small) / order
        total = total + term
    for _ in range(halvings):
        total = oracle.gmt_func(total, total)
    return total


@pytest.mark.parametrize("name", PRINCIPAL)
def test_exp_and_log_of_special_cases(oracle: Any, name: str) -> None:
    b = PRINCIPAL[name]
    expected = oracle_exp(oracle, b)
    m = np.asarray(algebra.exp(b))
    # Twelve squarings amplify the rounding of the oracle by 4096, and each multiplies numbers of the size of m.
    scale = float(np.sum(m * m))
    np.testing.assert_allclose(algebra.to_multivector(m), expected, rtol=0, atol=RELATIVE * scale * 4)
    for sign in (1.0, -1.0):
        logarithm = np.asarray(algebra.log(sign * m))
        size = scale + float(np.sum(logarithm**2))
        back = oracle_exp(oracle, logarithm)
        np.testing.assert_allclose(
            back, sign * np.asarray(algebra.to_multivector(m)), rtol=0, atol=RELATIVE * size * 16
        )


def test_random_exponentials(oracle: Any) -> None:
    b = np.random.default_rng(5).normal(size=(300, 10))
    expected = np.array([oracle_exp(oracle, row) for row in b])
    m = np.asarray(algebra.exp(b))
    error = np.abs(np.asarray(algebra.to_multivector(m)) - expected).max(axis=-1) / np.sum(m * m, axis=-1)
    assert float(error.max()) < RELATIVE * 4


def test_points_and_versors_are_those_of_the_oracle(oracle: Any) -> None:
    """X = x + n_o + ½x² n_inf and T(t) = 1 - ½ t n_inf, built from the oracle's generators."""
    e1, e2, e3, e4, e5 = (oracle.blades[f"e{i}"] for i in range(1, 6))
    origin, infinity = 0.5 * (e5 - e4), e4 + e5
    x, t = np.random.default_rng(2).normal(size=(2, 3))
    vector, shift = x[0] * e1 + x[1] * e2 + x[2] * e3, t[0] * e1 + t[1] * e2 + t[2] * e3
    point = vector + origin + 0.5 * float(x @ x) * infinity
    translator = 1 - 0.5 * shift * infinity
    np.testing.assert_allclose(algebra.embed_point(x), point.value, atol=RELATIVE)
    np.testing.assert_allclose(algebra.to_multivector(algebra.translator(t)), translator.value, atol=RELATIVE)
    np.testing.assert_allclose(algebra.embed_point(x + t), (translator * point * ~translator).value, atol=RELATIVE)
    assert float(algebra.inner(point.value, point.value)) == pytest.approx(0.0, abs=RELATIVE)
