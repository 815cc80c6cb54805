"""The hot-path proof on the engine's own programs: the traces that are compiled and called."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine.field import FieldState, propagate
from engine.field.propagate import COMPOSITIONS, parallel_program, propagate_program
from engine.safety.hotpath import prove_traced
from engine.vault import Vault
from engine.vault.vault import grow_program, store_program
from tests.field.motors import BATCH, STEPS, motors

PICK = {
    "state": lambda args: args[0].motor,
    "operators": lambda args: args[1],
    "outputs": lambda result: result[0].motor,
}


@pytest.fixture(scope="module")
def arguments():
    return FieldState(motors(1, BATCH)), motors(2, STEPS, BATCH)


def test_propagate_moves_by_two_operator_factors_a_step(arguments):
    report = prove_traced(propagate_program.trace(*arguments), **PICK, steps=STEPS)
    assert report, str(report)
    assert report.degrees == (f"state^1 operator^{2 * STEPS}",)


def test_parallel_form_composes_operators_and_moves_once(arguments):
    report = prove_traced(parallel_program.trace(*arguments), **PICK, steps=1, compositions=COMPOSITIONS)
    assert report, str(report)


def test_the_public_function_under_transformations(arguments):
    mesh = jax.make_mesh((2,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
    rows, columns = jax.sharding.PartitionSpec("batch"), jax.sharding.PartitionSpec(None, "batch")
    for transformed in (
        propagate,
        jax.vmap(propagate, in_axes=(0, 1)),
        jax.shard_map(propagate, mesh=mesh, in_specs=(rows, columns), out_specs=rows),
        jax.checkpoint(propagate),
    ):
        report = prove_traced(jax.jit(transformed).trace(*arguments), **PICK, steps=STEPS)
        assert report, str(report)


def test_a_repair_around_the_real_step_is_caught(arguments):
    def repaired(state, versors):
        moved, closure = propagate(state, versors)
        scale = jnp.where(closure.ok, 1.0, 1.0 / (1.0 + closure.max_residual))
        return FieldState(moved.motor * scale[:, None]), closure

    report = prove_traced(jax.jit(repaired).trace(*arguments), **PICK)
    assert not report
    assert {"select_n", "div"} & {finding.primitive for finding in report.findings}
    assert any("test_hotpath_engine.py" in finding.source for finding in report.findings)


def test_vault_stores_states_as_they_are():
    vault, entries = Vault.empty(8), motors(3, 2)
    others = (jnp.zeros((2, 3)), jnp.zeros(2, np.int64), jnp.zeros(2, np.int64))
    pick = {
        "state": lambda args: (args[0].motors, args[1]),
        "operators": lambda args: (),
        "outputs": lambda result: result.motors,
    }
    assert prove_traced(store_program.trace(vault, entries, *others), **pick, steps=0)
    pick["state"] = lambda args: args[0].motors
    assert prove_traced(grow_program.trace(vault, 16), **pick, steps=0)

    def rounded(vault, entries, *others):
        return store_program(vault, jnp.round(entries, 9), *others)

    pick["state"] = lambda args: (args[0].motors, args[1])
    assert not prove_traced(jax.jit(rounded).trace(vault, entries, *others), **pick)
