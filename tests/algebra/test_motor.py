"""Elementary versors: what they do to points, what they refuse, and frames."""

import jax
import numpy as np
import pytest
from numpy.typing import NDArray

from engine import algebra
from engine.base.errors import NotAVersorError, OperatorRangeError, ShapeError
from tests.algebra.cases import PI, bivector

EPS = float(np.finfo(np.float64).eps)
RANDOM = np.random.default_rng(0)
X, T = RANDOM.normal(size=(2, 8, 3))


def moved(motor: object, x: NDArray) -> NDArray:
    return np.asarray(algebra.point_coordinates(algebra.apply(motor, algebra.embed_point(x))))


def test_translator_adds() -> None:
    np.testing.assert_allclose(moved(algebra.translator(T), X), X + T, atol=64 * EPS * 10)
    assert np.array_equal(algebra.closure_residual(algebra.translator(1e3 * T)), np.zeros(8))


def test_rotor_turns_from_the_first_to_the_second_axis() -> None:
    quarter = algebra.rotor(bivector(e12=2.0), PI / 2)
    np.testing.assert_allclose(moved(quarter, np.array([1.0, 0.0, 3.0])), [0.0, 1.0, 3.0], atol=16 * EPS)
    np.testing.assert_allclose(quarter[:2], [np.sqrt(0.5), -np.sqrt(0.5)], atol=2 * EPS)


def test_rotor_in_a_plane_that_contains_time_boosts() -> None:
    boost = algebra.rotor(bivector(e15=0.5), 0.8)
    np.testing.assert_allclose(boost[np.array([0, 4])], [np.cosh(0.4), -np.sinh(0.4)], atol=4 * EPS)


def test_dilator_scales_and_transversion_inverts() -> None:
    scale = np.array([0.5, 2.0, 3.0, 1.0, 1e-3, 7.0, 1.5, 1e3])
    np.testing.assert_allclose(moved(algebra.dilator(scale), X), X * scale[:, None], rtol=1e3 * 64 * EPS)
    squared = np.sum(X * X, axis=-1, keepdims=True)
    below = 1 + 2 * np.sum(X * T, axis=-1, keepdims=True) + np.sum(T * T, axis=-1, keepdims=True) * squared
    # Up to two digits go where the denominator is small against its terms.
    np.testing.assert_allclose(moved(algebra.transversion(T), X), (X + squared * T) / below, rtol=0, atol=1e4 * EPS)


def test_all_are_motors() -> None:
    for m in (algebra.translator(T), algebra.dilator(np.exp(T[:, 0])), algebra.transversion(T)):
        assert float(np.max(algebra.closure_residual(m))) < 64 * EPS
    assert np.array_equal(algebra.identity_motor((2, 3))[1, 2], np.eye(16)[0])


@pytest.mark.parametrize("length", [9.6e4, 1e5, 1e9, np.inf, np.nan])
def test_translators_that_float64_cannot_hold_are_refused(length: float) -> None:
    with pytest.raises(OperatorRangeError, match=r"\(1,\)"):
        algebra.translator(np.array([[1.0, 0.0, 0.0], [0.0, length, 0.0]]))
    assert np.isnan(jax.jit(algebra.translator)(np.array([0.0, length, 0.0]))).all()


def test_translators_below_the_bound_hold_the_tolerance() -> None:
    far = algebra.translator([5e4, 5e4, 5e4])
    assert float(algebra.closure_residual(far)) < 1e-6


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan, 1e30])
def test_dilators_refuse_what_is_no_scale(scale: float) -> None:
    with pytest.raises(OperatorRangeError, match="dilator"):
        algebra.dilator(scale)


@pytest.mark.parametrize(
    "plane",
    [
        bivector(),
        bivector(e14=1.0, e15=1.0),
        bivector(e12=1.0, e34=1.0),
        bivector(e12=1.0, e34=1e-9),
        bivector(e12=np.nan),
        bivector(e12=np.inf),
    ],
)
def test_rotors_refuse_planes_that_are_none(plane: NDArray) -> None:
    with pytest.raises(NotAVersorError, match="plane"):
        algebra.rotor(plane, 1.0)
    assert np.isnan(jax.jit(algebra.rotor)(plane, 1.0)).all()


def test_rotor_about_a_far_axis() -> None:
    place = algebra.translator([1e3, -2e3, 5.0])
    plane = algebra.sandwich(place, np.concatenate([[0.0], bivector(e12=1.0), np.zeros(5)]))[1:11]
    m = algebra.rotor(plane, PI)
    # About the axis through (1000, -2000): the point goes to its mirror image; rounding is eps |axis|².
    np.testing.assert_allclose(moved(m, np.array([1001.0, -2000.0, 7.0])), [999.0, -2000.0, 7.0], atol=64 * EPS * 5e6)


def test_motor_between_points() -> None:
    np.testing.assert_allclose(moved(algebra.motor_from_points(X, T), X), T, atol=640 * EPS)


def rotation(seed: int) -> NDArray:
    q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    return q * np.linalg.det(q)


HALF_TURNS = [
    np.diag([1.0, 1.0, 1.0]),
    np.diag([1.0, -1.0, -1.0]),
    np.diag([-1.0, 1.0, -1.0]),
    np.diag([-1.0, -1.0, 1.0]),
]


def test_motor_between_frames() -> None:
    source = np.stack([rotation(seed) for seed in range(4)] + [np.eye(3)] * 4)
    target = np.stack([rotation(seed + 10) for seed in range(4)] + HALF_TURNS)
    m = algebra.motor_from_frames(X, source, T, target)
    assert float(np.max(algebra.closure_residual(m))) < 1e3 * EPS
    np.testing.assert_allclose(moved(m, X), T, atol=1e3 * EPS)
    for axis in range(3):
        np.testing.assert_allclose(moved(m, X + source[:, axis]), T + target[:, axis], atol=1e3 * EPS)


@pytest.mark.parametrize(
    "axes", [np.diag([1.0, 1.0, -1.0]), np.diag([1.0, 1.0, 1.1]), np.zeros((3, 3)), np.full((3, 3), np.nan)]
)
def test_frames_that_no_motor_joins_are_refused(axes: NDArray) -> None:
    with pytest.raises(NotAVersorError, match="frames"):
        algebra.motor_from_frames(X[0], np.eye(3), T[0], axes)


def test_frames_of_the_wrong_shape_are_refused() -> None:
    with pytest.raises(ShapeError, match="target_axes"):
        algebra.motor_from_frames(X[0], np.eye(3), T[0], np.eye(3)[0])


def test_gradients_of_constructors_are_finite() -> None:
    assert np.isfinite(jax.jacobian(algebra.translator)(np.zeros(3))).all()
    assert np.isfinite(jax.jacobian(algebra.dilator)(1.0)).all()
    for angle in (0.0, PI):
        for derivative in jax.jacobian(algebra.rotor, argnums=(0, 1))(bivector(e12=1.0), angle):
            assert np.isfinite(derivative).all()
