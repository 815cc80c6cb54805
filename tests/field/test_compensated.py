"""Compensated states: float64's results to 48 bits, the invariant where float32 breaks it, and the same proof."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine.algebra.lanes import squares_of_lanes, step_lanes
from engine.algebra.pairs import Pair
from engine.algebra.resident import enter
from engine.base.errors import PrecisionError, ShapeError
from engine.field import FieldState, propagate
from engine.field.compensated import (
    PRECISIONS,
    CompensatedState,
    compensated_program,
    propagate_compensated,
)
from engine.safety.hotpath import prove_traced
from tests.field.motors import motors
from tests.field.test_blocks import rotors

UNIT = {"float32x2": 2.0**-48, "float64x2": 2.0**-53}
"""Unit of what a pair keeps of a float64 versor, and of what is left when a state is rounded to float64."""

BOTH = pytest.mark.parametrize("precision", sorted(PRECISIONS))


def rounding(precision: str, steps: int) -> float:
    """Two products of 16 terms a step, of entries up to 2, and the versors' own rounding."""
    return 128 * UNIT[precision] * (steps + 1)


@BOTH
@pytest.mark.parametrize(("rows", "steps"), [(1, 1), (7, 60), (0, 3), (3, 0)])
def test_the_states_are_those_of_float64(precision: str, rows: int, steps: int) -> None:
    state, versors = FieldState(rotors(1, rows)), rotors(2, steps)
    start = CompensatedState.from_state(state, precision)
    moved, closure = propagate_compensated(start, versors)
    expected, seen = propagate(state, versors)
    assert moved.precision == precision
    np.testing.assert_allclose(moved.to_state().motor, expected.motor, rtol=0, atol=rounding(precision, steps))
    np.testing.assert_allclose(closure.max_residual, seen.max_residual, rtol=0, atol=rounding(precision, steps))
    np.testing.assert_allclose(closure.norm, seen.norm, rtol=1e-6)
    np.testing.assert_array_equal(closure.first_violation, seen.first_violation)


def test_it_holds_where_float32_breaks() -> None:
    state, versors = FieldState(rotors(3, 4)), rotors(4, 20_000)
    _, closure = propagate_compensated(CompensatedState.from_state(state, "float32x2"), versors)
    assert closure.ok.all()
    assert float(closure.max_residual.max()) < 1e-10

    plain, single = CompensatedState.from_state(state, "float32x2"), enter(versors[:100].T).astype(jnp.float32)
    motor, worst = plain.high.reshape(4, 2, 2, 4), 0.0
    for number in range(100):
        versor = jnp.broadcast_to(single[:, number].reshape(4, 2, 2, 1), motor.shape)
        motor = step_lanes(versor, motor)
        square, _ = squares_of_lanes(motor.astype(jnp.float64))
        worst = max(worst, float(jnp.sqrt(square.max())))
    assert worst > 1e-6


@BOTH
@pytest.mark.parametrize(("step", "damage"), [(1, 1.001), (5, np.nan), (9, np.inf)])
def test_a_violation_is_named_at_its_step(precision: str, step: int, damage: float) -> None:
    versors = rotors(5, 12).at[step - 1].multiply(damage)
    _, closure = propagate_compensated(CompensatedState.from_state(FieldState(rotors(6, 3)), precision), versors)
    assert (closure.first_violation == step).all()
    assert not closure.ok.any()
    assert (closure.max_residual > 1e-6).all()


@BOTH
def test_far_motors_keep_their_null_direction(precision: str) -> None:
    versors = motors(7, 30)
    state = CompensatedState.from_state(FieldState(motors(8, 5)), precision)
    moved, closure = propagate_compensated(state, versors)
    expected, seen = propagate(FieldState(motors(8, 5)), versors)
    scale = float(jnp.max(seen.norm)) ** 2 * float(jnp.max(jnp.sum(versors**2, axis=-1)))
    np.testing.assert_allclose(moved.to_state().motor, expected.motor, rtol=0, atol=rounding(precision, 30) * scale)
    assert closure.ok.all()


@BOTH
def test_nothing_repairs_a_state(precision: str) -> None:
    state = CompensatedState.from_state(FieldState(rotors(1, 2)), precision)
    versors = CompensatedState.from_state(FieldState(rotors(2, 5)), precision)
    traced = compensated_program.trace(state, Pair(versors.high, versors.low))
    report = prove_traced(
        traced,
        state=lambda args: (args[0].high, args[0].low),
        operators=lambda args: args[1],
        outputs=lambda result: (result[0].high, result[0].low),
        steps=5,
    )
    assert report, str(report)


def test_the_gradient_is_float64_s() -> None:
    motor, versors, weights = rotors(9, 3), rotors(10, 6), rotors(11, 3)

    def height(motor: jax.Array) -> jax.Array:
        state = CompensatedState.from_state(FieldState(motor), "float64x2")
        return jnp.sum(weights * propagate_compensated(state, versors)[0].to_state().motor)

    expected = jax.grad(lambda motor: jnp.sum(weights * propagate(FieldState(motor), versors)[0].motor))(motor)
    np.testing.assert_allclose(jax.grad(height)(motor), expected, rtol=0, atol=1e-12)


def test_refusals_at_the_door() -> None:
    state = FieldState(rotors(1, 2))
    with pytest.raises(PrecisionError, match="float16x2"):
        CompensatedState.from_state(state, "float16x2")
    with pytest.raises(ShapeError):
        CompensatedState.from_state(FieldState(rotors(1, 2, 3)), "float32x2")
    start = CompensatedState.from_state(state, "float32x2")
    with pytest.raises(ShapeError):
        propagate_compensated(start, rotors(2, 3, 2))
    with pytest.raises(PrecisionError):
        propagate_compensated(start, rotors(2, 3).astype(jnp.float32))
