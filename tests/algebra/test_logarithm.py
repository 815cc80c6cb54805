"""log on every branch and both sheets: exp(log m) = m, the principal branch, gradients, refusals; powers and slerp."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from engine import algebra
from engine.algebra import tables
from engine.base.errors import NoLogarithmError, NotAVersorError
from tests.algebra.cases import AMBIGUOUS, PI, PRINCIPAL, bivector

EPS = float(np.finfo(np.float64).eps)
_jacobian = jax.jit(jax.jacobian(algebra.log))


def size(m: object) -> float:
    return float(jnp.sum(jnp.square(jnp.asarray(m))))


def round_trip(m: NDArray, units: float = 64.0) -> NDArray:
    """log m, after a check that exp brings m back to rounding of the squared size of its numbers.

    A far plane is a conjugate by a translator of norm n: it is handled with numbers of size n and comes back with
    errors of n² roundings.
    """
    b = algebra.log(m)
    scale = size(m) + size(b)
    np.testing.assert_allclose(algebra.exp(b), m, rtol=0.0, atol=units * EPS * max(scale, 1.0))
    return np.asarray(b)


@pytest.mark.parametrize("name", PRINCIPAL)
def test_log_inverts_exp_on_both_sheets(name: str) -> None:
    b = PRINCIPAL[name]
    m = np.asarray(algebra.exp(b))
    logarithm = round_trip(m)
    if name not in AMBIGUOUS:
        # Within 1e-9 of π the angle is read from a sine of that size: eps / 1e-9 of it.
        slack = 1e-6 if "nearly all around" in name else 64 * EPS * max(size(m) + size(b), 1.0)
        np.testing.assert_allclose(logarithm, b, rtol=0.0, atol=slack)
    round_trip(-m)
    for sign in (1.0, -1.0):
        assert bool(jnp.all(jnp.isfinite(_jacobian(sign * m))))


# A boost by 10 or a translation by 1e4 leaves no room for another factor of 20 within the closure tolerance.
@pytest.mark.parametrize("name", [name for name in PRINCIPAL if not name.startswith("far")])
def test_log_of_conjugates(name: str) -> None:
    """The same motions about an axis somewhere else: the ideals and planes then are not those of the basis."""
    turn = algebra.rotor(bivector(e13=1.0, e23=-0.3), 1.7)
    place = algebra.even_product(algebra.translator([3.0, -2.0, 5.0]), turn)
    m = np.asarray(algebra.sandwich(place, algebra.exp(PRINCIPAL[name])))
    # Conjugating costs ‖place‖⁴, about 20², roundings, and the reading as many again.
    round_trip(m, 400.0)
    round_trip(-m, 4000.0)


def test_minus_one_turns_by_pi_in_the_first_plane() -> None:
    one = algebra.identity_motor()
    assert np.array_equal(algebra.log(one), np.zeros(10))
    assert np.array_equal(algebra.log(-one), bivector(e12=PI))
    np.testing.assert_allclose(algebra.exp(bivector(e12=PI)), -one, atol=2 * EPS)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_log_of_a_unit_4_vector(sign: float) -> None:
    m = sign * np.eye(16)[tables.EVEN_INDEX["e1234"]]
    b = round_trip(m)
    assert np.linalg.norm(b) == pytest.approx(PI / np.sqrt(2.0))


def test_random_motors_of_both_signs() -> None:
    b = np.random.default_rng(3).normal(size=(2000, 10))
    m = np.asarray(algebra.exp(b))
    for motors in (m, -m):
        logs = np.asarray(algebra.log(motors))
        scale = np.sum(m * m, axis=-1) + np.sum(logs * logs, axis=-1)
        error = np.abs(np.asarray(algebra.exp(logs)) - motors).max(axis=-1)
        assert float((error / scale).max()) < 256 * EPS


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (2.0 * np.eye(16)[0], NotAVersorError),
        (np.zeros(16), NotAVersorError),
        (np.full(16, np.nan), NotAVersorError),
        (np.ones(16), NotAVersorError),
        (np.eye(16)[tables.EVEN_INDEX["e45"]], NoLogarithmError),
        (np.eye(16)[tables.EVEN_INDEX["e15"]], NoLogarithmError),
    ],
)
def test_refusals_name_the_row_and_are_nan_when_traced(bad: NDArray, error: type[Exception]) -> None:
    batch = np.stack([np.eye(16)[0], bad])
    for function in (algebra.log, algebra.square_root):
        with pytest.raises(error, match=r"\(1,\)"):
            function(batch)
    traced = np.asarray(jax.jit(algebra.log)(batch))
    assert np.array_equal(traced[0], np.zeros(10))
    assert np.isnan(traced[1]).all()


def test_a_single_case_equals_its_row_of_a_batch_bitwise() -> None:
    m = np.array(algebra.exp(np.random.default_rng(0).normal(size=(40, 10))))
    m[::3] *= -1.0
    whole = np.asarray(algebra.log(m))
    for row in range(0, 40, 7):
        assert np.array_equal(algebra.log(m[row]), whole[row])
    assert algebra.log(np.zeros((0, 16))).shape == (0, 10)


@pytest.mark.parametrize("name", ["rotation", "boost", "translation", "screw", "two rotations", "isoclinic by pi"])
def test_powers_and_roots(name: str) -> None:
    m = np.asarray(algebra.exp(PRINCIPAL[name]))
    root = algebra.square_root(m)
    tolerance = 256 * EPS * size(m)
    np.testing.assert_allclose(algebra.even_product(root, root), m, rtol=0.0, atol=tolerance)
    np.testing.assert_allclose(algebra.motor_power(m, 1.0), m, rtol=0.0, atol=tolerance)
    np.testing.assert_allclose(algebra.motor_power(m, -1.0), algebra.even_reverse(m), rtol=0.0, atol=tolerance)
    assert np.array_equal(algebra.motor_power(m, 0.0), algebra.identity_motor())
    third = algebra.motor_power(m, np.array([0.25, 0.75]))
    np.testing.assert_allclose(algebra.even_product(third[0], third[1]), m, rtol=0.0, atol=tolerance)


def test_root_of_a_square_is_the_motor_up_to_half_a_turn() -> None:
    m = algebra.exp(bivector(e12=1.2, e34=0.1, e35=0.1))
    np.testing.assert_allclose(algebra.square_root(algebra.even_product(m, m)), m, atol=64 * EPS)


def test_power_of_the_identity_is_exactly_the_identity() -> None:
    one = algebra.identity_motor((3,))
    assert np.array_equal(algebra.motor_power(one, 0.37), one)


def test_slerp_goes_the_shorter_way_at_constant_speed() -> None:
    start = algebra.even_product(algebra.translator([1.0, 2.0, 3.0]), algebra.exp(bivector(e12=0.3)))
    end = algebra.even_product(algebra.translator([-1.0, 0.5, 2.0]), algebra.exp(bivector(e12=1.1)))
    times = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    for other in (end, -end):
        path = algebra.slerp(start, other, times)
        assert np.array_equal(path[0], start)
        np.testing.assert_allclose(path[-1], end, atol=256 * EPS * size(end))
        steps = algebra.even_product(algebra.even_reverse(path[:-1]), path[1:])
        np.testing.assert_allclose(steps, np.broadcast_to(steps[0], steps.shape), atol=1024 * EPS * size(end) ** 2)
