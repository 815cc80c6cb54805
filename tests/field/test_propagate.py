"""Propagation moves states by sandwich products, sequentially and by an associative scan."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine.algebra import closure_residual, sandwich
from engine.algebra.lanes import squares_of_lanes, step_lanes
from engine.algebra.resident import from_resident, to_resident
from engine.base.errors import PrecisionError, ShapeError
from engine.field import FieldState, propagate, propagate_parallel, run
from tests.field.motors import BATCH, STEPS, motors

FORMS = pytest.mark.parametrize("form", [propagate, propagate_parallel])
ROUNDING = 64 * STEPS * np.finfo(np.float64).eps * 100
"""Two products of 16 terms a step, with coefficient norms up to 10 on these walks (norm² = 100)."""


@pytest.fixture(scope="module")
def state():
    return FieldState(motors(1, BATCH))


@pytest.fixture(scope="module")
def shared():
    return motors(2, STEPS)


@pytest.fixture(scope="module")
def per_sample():
    return motors(3, STEPS, BATCH)


def stepwise(state, versors):
    """The specification: one public sandwich after another, with the residual of each state."""
    motor, residuals = state.motor, [closure_residual(state.motor)]
    for versor in versors:
        motor = sandwich(versor, motor)
        residuals.append(closure_residual(motor))
    return motor, jnp.max(jnp.stack(residuals), axis=0)


@FORMS
def test_equals_one_sandwich_after_another(form, state, shared, per_sample):
    for versors in (shared, per_sample):
        moved, closure = form(state, versors)
        motor, residual = stepwise(state, versors)
        np.testing.assert_allclose(moved.motor, motor, rtol=0, atol=ROUNDING)
        np.testing.assert_allclose(closure.max_residual, residual, rtol=0, atol=ROUNDING)
        assert closure.ok.all()
        assert (closure.first_violation == -1).all()
        assert closure.max_residual.shape == closure.first_violation.shape == closure.ok.shape == (BATCH,)


@FORMS
def test_versors_broadcast_against_the_state(form, state, shared, per_sample):
    plain = form(state, shared)[0].motor
    for versors in (shared[:, None], jnp.broadcast_to(shared[:, None], (STEPS, BATCH, 16))):
        np.testing.assert_allclose(form(state, versors)[0].motor, plain, rtol=0, atol=ROUNDING)
    single, closure = form(FieldState(state.motor[0]), per_sample)
    assert single.motor.shape == (BATCH, 16)
    assert closure.ok.shape == (BATCH,)
    scalar, closure = form(FieldState(state.motor[0]), shared)
    assert scalar.motor.shape == (16,)
    assert closure.ok.shape == ()
    np.testing.assert_allclose(scalar.motor, plain[0], rtol=0, atol=ROUNDING)


@FORMS
def test_zero_steps_and_empty_batch_are_defined(form, state, shared):
    still, closure = form(state, shared[:0])
    np.testing.assert_array_equal(still.motor, state.motor)
    np.testing.assert_allclose(closure.max_residual, closure_residual(state.motor), rtol=1e-12, atol=1e-300)
    assert closure.ok.all()
    off = FieldState(1.1 * state.motor)
    assert (form(off, shared[:0])[1].first_violation == 0).all()
    for versors in (shared, motors(4, STEPS, 0)):
        nothing, closure = form(FieldState(state.motor[:0]), versors)
        assert nothing.motor.shape == (0, 16)
        assert closure.ok.shape == closure.max_residual.shape == (0,)
    assert run(FieldState(state.motor[:0]), shared).motor.shape == (0, 16)


@FORMS
def test_works_under_jit_vmap_and_grad(form, state, per_sample):
    plain, _ = form(state, per_sample)
    jitted, _ = jax.jit(form)(state, per_sample)
    mapped, closure = jax.vmap(form, in_axes=(0, 1))(state, per_sample)
    assert closure.ok.shape == (BATCH,)
    for moved in (jitted, mapped):
        np.testing.assert_allclose(moved.motor, plain.motor, rtol=0, atol=ROUNDING)

    def final(motor):
        moved, closure = form(FieldState(motor), per_sample)
        return jnp.sum(moved.motor * moved.motor), closure

    gradient, closure = jax.grad(final, has_aux=True)(state.motor)
    assert closure.ok.all()
    direction = motors(9, BATCH)
    slope = (final(state.motor + 1e-6 * direction)[0] - final(state.motor - 1e-6 * direction)[0]) / 2e-6
    # Central differences of a quadratic are exact; what is left is cancellation, eps / 1e-6 of a value near 1e3.
    np.testing.assert_allclose(jnp.sum(gradient * direction), slope, rtol=1e-6)


def test_resident_step_equals_the_readable_one():
    """The step in lanes against `sandwich_kernel` and `squared_residual`, on a batch that does not fill its lanes."""
    batch = 40
    state, versor = motors(5, batch), motors(6, batch)
    lanes = step_lanes(to_resident(versor, fill=None), to_resident(state, fill=None))
    moved = from_resident(lanes, (batch,))
    # Two products of 16 terms of coefficients below 2, and the entering and leaving sums.
    np.testing.assert_allclose(moved, sandwich(versor, state), rtol=0, atol=32 * 16 * np.finfo(np.float64).eps)
    off = 1.01 * state
    square, norm = (x.ravel()[:batch] for x in squares_of_lanes(to_resident(off, fill=None)))
    np.testing.assert_allclose(jnp.sqrt(square), closure_residual(off), rtol=1e-12)
    np.testing.assert_allclose(norm, jnp.sum(off * off, axis=-1), rtol=1e-14)


def test_gradient_of_closed_states_is_finite_through_the_check():
    """The root in the residual has an infinite slope at 0; the residual is taken where no gradient flows."""
    one = FieldState(jnp.zeros(16).at[0].set(1.0))
    versors = jnp.broadcast_to(one.motor, (3, 16))

    def value(versors):
        moved, closure = propagate(one, versors)
        return jnp.sum(moved.motor) + jnp.sum(closure.max_residual)

    assert jnp.isfinite(jax.grad(value)(versors)).all()


@FORMS
def test_wrong_dtypes_and_shapes_are_refused_at_the_door(form, state, shared):
    for versors in (np.asarray(shared, np.float32), np.ones((2, 16), np.int64), np.ones((2, 16), bool)):
        with pytest.raises(PrecisionError):
            form(state, versors)
    for versors in (shared[0], shared[:, :15], motors(1, STEPS, BATCH + 1), jnp.zeros(())):
        with pytest.raises(ShapeError):
            form(state, versors)


def test_one_compilation_serves_every_value(state, shared):
    count = 0

    @jax.jit
    def counted(state, versors):
        nonlocal count
        count += 1
        return propagate(state, versors)

    for scale in (1.0, 2.0, 3.0):
        counted(FieldState(state.motor * scale), shared)
    assert count == 1
