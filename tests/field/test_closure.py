"""The closure check fires under every transformation, names the sample, and never hangs."""

import os
import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from engine.algebra import closure_residual, even_product, translator
from engine.base.errors import MissingClosureError, TracedCheckError, VersorClosureError
from engine.field import (
    TOLERANCE,
    FieldState,
    assert_closed,
    checked,
    checked_value_and_grad,
    measure_closure,
    propagate,
    propagate_parallel,
    run,
)
from tests.field.motors import BATCH, E15, E25, E35, STEPS, motors, unit_vectors

SAMPLE, STEP = 5, 4
LONG = 2_000
FORMS = pytest.mark.parametrize("form", [propagate, propagate_parallel])


def planted(fault):
    """Versors of a batch, one of which is none: sample 5 leaves the manifold at step 4."""
    versors = np.array(motors(1, STEPS, BATCH))
    versors[STEP - 1, SAMPLE] = fault(versors[STEP - 1, SAMPLE])
    return jnp.asarray(versors)


FAULTS = {
    "scaled": lambda v: v * (1 + 1e-5),
    "barely": lambda v: v * (1 + 2.6e-7),
    "nan": lambda v: np.where(np.arange(16) == 3, np.nan, v),
    "all nan": lambda v: v * np.nan,
    "infinite": lambda v: np.where(np.arange(16) == 0, np.inf, v),
    "zero": lambda v: 0 * v,
    "overflow": lambda v: v * 1e200,
}


@pytest.fixture(scope="module")
def state():
    return FieldState(motors(2, BATCH))


def assert_names_the_sample(closure):
    expected = np.where(np.arange(BATCH) == SAMPLE, STEP, -1)
    np.testing.assert_array_equal(closure.first_violation, expected)
    np.testing.assert_array_equal(closure.ok, expected < 0)
    others = np.delete(np.asarray(closure.max_residual), SAMPLE)
    assert (others < 1e-12).all()
    assert closure.max_residual[SAMPLE] >= TOLERANCE


@FORMS
@pytest.mark.parametrize("name", FAULTS)
def test_names_the_sample_and_the_step_and_keeps_the_others(form, name, state):
    versors = planted(FAULTS[name])
    moved, closure = form(state, versors)
    assert_names_the_sample(closure)
    assert np.isinf(closure.max_residual[SAMPLE]) == (name in ("nan", "all nan", "infinite", "overflow"))
    keep = np.arange(BATCH) != SAMPLE
    good, _ = form(FieldState(state.motor[keep]), versors[:, keep])
    np.testing.assert_allclose(moved.motor[keep], good.motor, rtol=0, atol=1e-13)
    with pytest.raises(VersorClosureError) as caught:
        assert_closed(closure)
    error = caught.value
    assert (error.sample, error.step) == (SAMPLE, STEP)
    assert error.residual >= TOLERANCE
    assert error.cause == ("coefficients too large for this precision" if name == "overflow" else "not a versor")
    assert f"sample {SAMPLE}, step {STEP}" in str(error)
    assert pickle.loads(pickle.dumps(error)).step == STEP


def test_run_raises_and_returns(state):
    with pytest.raises(VersorClosureError):
        run(state, planted(FAULTS["scaled"]))
    good = motors(1, STEPS, BATCH)
    moved, closure = run(state, good)
    np.testing.assert_array_equal(moved.motor, propagate(state, good)[0].motor)
    np.testing.assert_array_equal(run(state, good).motor, moved.motor)
    assert closure.ok.all()


def test_residual_just_below_the_bound_is_closed(state):
    """The check has the bound it says: (1 + 2.4e-7)⁴ - 1 is below 1e-6, (1 + 2.6e-7)⁴ - 1 is not."""
    _, closure = propagate(state, planted(lambda v: v * (1 + 2.4e-7)))
    assert closure.ok.all()


def test_initial_state_is_step_zero(state):
    off = FieldState(state.motor.at[SAMPLE].multiply(1.001))
    for form in (propagate, propagate_parallel):
        assert form(off, motors(1, STEPS, BATCH))[1].first_violation[SAMPLE] == 0


@pytest.mark.parametrize("kind", ["translators", "boosts"])
@FORMS
def test_large_coefficients_are_told_from_no_versor(form, kind):
    """Far translations lead beyond what float64 holds in the blade basis, boosts one way beyond any format."""
    directions = unit_vectors(np.random.default_rng(3), LONG)
    versors = (
        boosts(np.tile(directions[:1], (LONG, 1))) if kind == "boosts" else translator(jnp.asarray(1e4 * directions))
    )
    assert measure_closure(versors).ok.all()
    _, closure = form(FieldState(motors(4)), versors)
    with pytest.raises(VersorClosureError, match="too large") as caught:
        assert_closed(closure)
    assert caught.value.cause == "coefficients too large for this precision"


def boosts(directions):
    """Boosts of e5 by a rapidity of 0.1: cosh 0.05 + sinh 0.05 a e5."""
    motor = np.zeros((*directions.shape[:-1], 16))
    motor[..., 0] = np.cosh(0.05)
    motor[..., [E15, E25, E35]] = np.sinh(0.05) * directions
    return jnp.asarray(motor)


@FORMS
def test_what_is_handed_out_is_what_was_measured(form):
    """The state is measured once more after it left the resident layout: a closed result is closed by the book too."""
    versors = translator(jnp.broadcast_to(jnp.array([1e3, 0.0, 0.0]), (50, 3)))
    moved, closure = form(FieldState(motors(4)), versors)
    assert closure.max_residual >= closure_residual(moved.motor)


@FORMS
def test_fires_under_jit_vmap_and_as_auxiliary_of_grad(form, state):
    versors = planted(FAULTS["nan"])
    assert_names_the_sample(jax.jit(form)(state, versors)[1])
    assert_names_the_sample(jax.vmap(form, in_axes=(0, 1))(state, versors)[1])

    def loss(motor):
        moved, closure = form(FieldState(motor), versors)
        return jnp.sum(moved.motor), closure

    assert_names_the_sample(jax.grad(loss, has_aux=True)(state.motor)[1])
    assert_names_the_sample(jax.jvp(lambda m: form(FieldState(m), versors)[1], (state.motor,), (state.motor,))[0])


@pytest.mark.parametrize("devices", [1, 2, 4, 8])
def test_fires_on_a_mesh_and_under_shard_map(devices, state):
    mesh = jax.make_mesh((devices,), ("batch",), axis_types=(AxisType.Auto,))
    rows, columns = PartitionSpec("batch"), PartitionSpec(None, "batch")
    placed = jax.device_put(state, NamedSharding(mesh, rows))
    versors = jax.device_put(planted(FAULTS["nan"]), NamedSharding(mesh, columns))
    _, closure = propagate(placed, versors)
    assert_names_the_sample(closure)
    with pytest.raises(VersorClosureError):
        assert_closed(closure)
    mapped = jax.jit(jax.shard_map(propagate, mesh=mesh, in_specs=(rows, columns), out_specs=rows))
    assert_names_the_sample(mapped(placed, versors)[1])


def test_checked_functions_raise_on_the_host(state):
    def loss(motor, versors):
        moved, closure = propagate(FieldState(motor), versors)
        return jnp.sum(moved.motor**2), closure

    step = checked_value_and_grad(loss)
    (value, closure), gradient = step(state.motor, motors(1, STEPS, BATCH))
    assert jnp.isfinite(value)
    assert closure.ok.all()
    assert gradient.shape == state.motor.shape
    with pytest.raises(VersorClosureError):
        step(state.motor, planted(FAULTS["scaled"]))
    with pytest.raises(VersorClosureError):
        checked(propagate)(state, planted(FAULTS["nan"]))


def test_dropping_the_closure_in_a_checked_function_is_refused(state):
    versors = motors(1, STEPS, BATCH)
    with pytest.raises(MissingClosureError):
        checked(lambda s: propagate(s, versors)[0])(state)
    with pytest.raises(MissingClosureError):
        checked_value_and_grad(lambda m: (jnp.sum(m), {"norm": jnp.sum(m)}))(state.motor)


def test_asserting_while_tracing_is_an_error_and_not_silence(state):
    versors = planted(FAULTS["nan"])
    for transformed in (
        lambda: jax.jit(run)(state, versors),
        lambda: jax.vmap(run, in_axes=(0, 1))(state, versors),
        lambda: jax.jit(lambda s: assert_closed(measure_closure(s.motor)))(state),
    ):
        with pytest.raises(TracedCheckError, match="checked"):
            transformed()


def test_run_checks_under_an_eager_grad(state):
    """There the closure is a value, since no gradient flows through it: run need not refuse, and raises."""
    gradient = jax.grad(lambda m, v: jnp.sum(run(FieldState(m), v).motor))
    assert gradient(state.motor, motors(1, STEPS, BATCH)).shape == state.motor.shape
    with pytest.raises(VersorClosureError):
        gradient(state.motor, planted(FAULTS["nan"]))


def test_operators_are_measured_as_they_are():
    good = even_product(motors(1, 3), motors(2, 3))
    assert measure_closure(good).ok.all()
    closure = measure_closure(good.at[1].multiply(2.0))
    np.testing.assert_array_equal(closure.first_violation, [-1, 0, -1])


PROGRAM = """
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
from engine.base.errors import VersorClosureError
from engine.field import FieldState, run
try:
    run(FieldState(jnp.eye(16)[0]), 2.0 * jnp.eye(16)[:1])
except VersorClosureError:
    print("raised")
"""


@pytest.mark.parametrize(
    "variables",
    [{"EQX_ON_ERROR": "off", "JAX_ENABLE_CHECKS": "0"}, {"EQX_ON_ERROR": "nan", "PYTHONOPTIMIZE": "2"}],
    ids=["off", "nan"],
)
def test_no_environment_variable_switches_the_check_off(variables):
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.stdout.strip() == "raised", result.stderr
