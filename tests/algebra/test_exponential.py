"""exp on every branch: against trigonometry, many turns, gradients, and a single case against its batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from engine import algebra
from engine.algebra import tables
from tests.algebra.cases import PI, PRINCIPAL, bivector

EPS = float(np.finfo(np.float64).eps)
_jacobian = jax.jit(jax.jacobian(algebra.exp))


def motor(**blades: float) -> NDArray:
    coefficients = np.zeros(16)
    for name, value in blades.items():
        coefficients[tables.EVEN_INDEX["1" if name == "one" else name]] = value
    return coefficients


def close(actual: object, expected: NDArray, units: float) -> None:
    """Equal to `units` roundings of the largest coefficient."""
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=0.0, atol=units * EPS * np.abs(expected).max())


@pytest.mark.parametrize("turns", [0.0, 0.1, 0.5, 1.0, 2.5, 10.0])
def test_rotations_up_to_twenty_pi(turns: float) -> None:
    angle = 2 * PI * turns
    # The angle is squared and rooted: one rounding of it, which moves cos and sin by eps times the angle.
    expected = motor(one=np.cos(angle), e13=np.sin(angle))
    close(algebra.exp(bivector(e13=angle)), expected, 2 + 2 * angle)
    close(algebra.exp(bivector(e13=-angle)), motor(one=np.cos(angle), e13=-np.sin(angle)), 2 + 2 * angle)


@pytest.mark.parametrize(
    ("a", "b"), [(1.0, 1.0), (1.0, 1.0 + 1e-9), (0.3, 2.7), (31.0, 31.0), (1.0, 1e-9), (50.0, 0.3)]
)
def test_two_planes_of_rotation(a: float, b: float) -> None:
    expected = motor(
        one=np.cos(a) * np.cos(b),
        e12=np.sin(a) * np.cos(b),
        e34=np.cos(a) * np.sin(b),
        e1234=np.sin(a) * np.sin(b),
    )
    close(algebra.exp(bivector(e12=a, e34=b)), expected, 4 + 4 * (a + b))


@pytest.mark.parametrize(("phi", "theta"), [(1.0, 1.0), (3.0, 0.0), (1e-5, 2.0), (8.0, 2.0), (1e-3, 1e-3), (0.2, 20.0)])
def test_boosts_and_boosts_with_rotations(phi: float, theta: float) -> None:
    expected = motor(
        one=np.cosh(phi) * np.cos(theta),
        e45=np.sinh(phi) * np.cos(theta),
        e12=np.cosh(phi) * np.sin(theta),
        e1245=np.sinh(phi) * np.sin(theta),
    )
    close(algebra.exp(bivector(e12=theta, e45=phi)), expected, 4 + 4 * (phi + theta))


def test_null_bivectors_end_after_the_linear_term() -> None:
    b = bivector(e14=-3.0, e15=-3.0, e24=1e4, e25=1e4)
    assert np.array_equal(algebra.exp(b), np.concatenate([[1.0], b, np.zeros(5)]))
    assert np.array_equal(algebra.exp(np.zeros(10)), algebra.identity_motor())


def test_screw_is_the_product_of_its_commuting_parts() -> None:
    turn, slide = algebra.exp(bivector(e12=1.3)), algebra.exp(bivector(e34=2.0, e35=2.0))
    close(algebra.exp(bivector(e12=1.3, e34=2.0, e35=2.0)), np.asarray(algebra.even_product(turn, slide)), 8)


@pytest.mark.parametrize("name", PRINCIPAL)
def test_forms_agree_and_gradients_are_finite(name: str) -> None:
    """exp(b) = exp(b/2)², the halves often falling on another form of the same function."""
    b = PRINCIPAL[name]
    half, whole = np.asarray(algebra.exp(0.5 * b)), algebra.exp(b)
    size = float(np.sum(half * half))
    np.testing.assert_allclose(whole, algebra.even_product(half, half), rtol=0.0, atol=32 * EPS * max(size, 1.0))
    derivative = _jacobian(b)
    assert bool(jnp.all(jnp.isfinite(derivative)))
    if name.startswith("far"):
        return  # the third derivative is too large for a difference to say anything
    step = 1e-6 * max(1.0, float(np.abs(b).max()) * 1e-3)
    direction = np.random.default_rng(1).normal(size=10)
    slope = (algebra.exp(b + step * direction) - algebra.exp(b - step * direction)) / (2 * step)
    scale = float(jnp.abs(whole).max() + jnp.abs(derivative).max())
    # Central difference: rounding over the step, plus the third derivative times its square (1e-12 of the scale).
    np.testing.assert_allclose(derivative @ direction, slope, rtol=0.0, atol=scale * (1e-9 + 64 * EPS / step))


def test_a_single_case_equals_its_row_of_a_batch_bitwise() -> None:
    b = np.stack([PRINCIPAL[name] for name in PRINCIPAL] + list(np.random.default_rng(0).normal(size=(40, 10))))
    whole = np.asarray(algebra.exp(b))
    for row in range(0, len(b), 6):
        assert np.array_equal(algebra.exp(b[row]), whole[row])
        assert np.array_equal(algebra.exp(b[row : row + 1])[0], whole[row])
    assert algebra.exp(np.zeros((0, 10))).shape == (0, 16)


def test_what_is_no_number_stays_none() -> None:
    assert not bool(jnp.isfinite(algebra.exp(np.full(10, np.nan))).any())
    assert not bool(jnp.isfinite(algebra.exp(np.full(10, np.inf))).all())
