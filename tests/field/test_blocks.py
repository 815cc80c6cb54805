"""Versors in blocks, shared or of few samples: the states and the closure of one step after another."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine.algebra import even_reverse, identity_motor, translator
from engine.field import FieldState, propagate
from engine.field.blocks import AT_ONCE, BLOCK, BLOCKS, CHUNK, FEW, SUPERBLOCK, block_for
from engine.field.closure import TOLERANCE, begin, watch, watch_all
from engine.field.propagate import COMPOSITIONS, FEW_SAMPLES, MANY, blocks_program, program_for, propagate_program
from engine.safety.hotpath import prove_traced
from tests.field.motors import motors

LONG = SUPERBLOCK
EPS = float(np.finfo(np.float64).eps)

PICK = {
    "state": lambda args: args[0].motor,
    "operators": lambda args: args[1],
    "outputs": lambda result: result[0].motor,
}


def rotors(seed: int, *shape: int) -> jax.Array:
    """Motors without translations: their norms stay 1, and so does the tolerance below."""
    unit = np.random.default_rng(seed).normal(size=(*shape, 4))
    unit /= np.linalg.norm(unit, axis=-1, keepdims=True)
    found = np.zeros((*shape, 16))
    found[..., [0, 1, 2, 5]] = unit
    return jnp.asarray(found)


def rounding(steps: int) -> float:
    """Two products of 16 terms a step, in each of the two forms that are compared."""
    return 2 * 2 * 16 * EPS * steps


@pytest.mark.parametrize(
    ("rows", "steps"),
    [
        (1, 1),
        (1, 3 * BLOCK + 5),
        (FEW - 1, BLOCK),
        (FEW, BLOCK - 1),
        (FEW + 1, 3 * BLOCK + 5),
        (AT_ONCE, BLOCK + MANY),
        (CHUNK, BLOCK),
        (2 * CHUNK + 77, 2 * BLOCK + 5),
    ],
)
def test_the_states_are_those_of_one_step_after_another(rows: int, steps: int) -> None:
    state, versors = FieldState(rotors(1, rows)), rotors(2, steps, 1)
    moved, closure = blocks_program(state, versors)
    expected, seen = propagate_program(state, versors)
    np.testing.assert_allclose(moved.motor, expected.motor, rtol=0, atol=rounding(steps))
    np.testing.assert_allclose(closure.max_residual, seen.max_residual, rtol=0, atol=rounding(steps))
    np.testing.assert_allclose(closure.norm, seen.norm, rtol=rounding(steps))
    assert closure.ok.all()
    assert jax.tree.map(jnp.shape, (moved, closure)) == jax.tree.map(jnp.shape, (expected, seen))


@pytest.mark.parametrize(
    ("batch", "versors", "steps"),
    [((2,), (2,), 1), ((3,), (3,), 3 * BLOCK + 5), ((2, 3), (2, 3), BLOCK + MANY), ((2, 3), (1, 3), BLOCK)],
)
def test_the_states_of_few_samples_by_versors_of_their_own(batch: tuple, versors: tuple, steps: int) -> None:
    state, moves = FieldState(rotors(1, *batch)), rotors(2, steps, *versors)
    moved, closure = blocks_program(state, moves)
    expected, seen = propagate_program(state, moves)
    np.testing.assert_allclose(moved.motor, expected.motor, rtol=0, atol=rounding(steps))
    np.testing.assert_allclose(closure.max_residual, seen.max_residual, rtol=0, atol=rounding(steps))
    np.testing.assert_allclose(closure.norm, seen.norm, rtol=rounding(steps))
    assert closure.ok.all()
    assert jax.tree.map(jnp.shape, (moved, closure)) == jax.tree.map(jnp.shape, (expected, seen))


@pytest.mark.parametrize(("step", "damage"), [(BLOCK, 1.001), (BLOCK + 1, np.nan), (LONG + BLOCK + 2, np.inf)])
def test_a_violation_by_one_sample_s_own_versor_is_its_own(step: int, damage: float) -> None:
    versors = rotors(5, LONG + BLOCK + 2, 3).at[step - 1, 1].multiply(damage)
    _, closure = blocks_program(FieldState(rotors(6, 3)), versors)
    np.testing.assert_array_equal(closure.first_violation, [-1, step, -1])
    _, seen = propagate_program(FieldState(rotors(6, 3)), versors)
    np.testing.assert_array_equal(closure.versors_closed, seen.versors_closed)


@pytest.mark.parametrize("steps", [LONG, 2 * LONG + BLOCK + 3])
def test_superblocks_join_without_a_seam(steps: int) -> None:
    state, versors = FieldState(rotors(3, FEW)), rotors(4, steps, 1)
    moved, closure = blocks_program(state, versors)
    expected, seen = propagate_program(state, versors)
    np.testing.assert_allclose(moved.motor, expected.motor, rtol=0, atol=rounding(steps))
    assert closure.ok.all()
    assert seen.ok.all()


@pytest.mark.parametrize("rows", [3, FEW + 3, CHUNK + 3])
@pytest.mark.parametrize(
    ("step", "damage"),
    [(BLOCK, 1.001), (BLOCK + 1, np.nan), (LONG, np.inf), (LONG + BLOCK + 2, 1.001)],
)
def test_a_violation_is_named_at_its_step(rows: int, step: int, damage: float) -> None:
    versors = rotors(5, LONG + BLOCK + 2, 1).at[step - 1].multiply(damage)
    state = FieldState(rotors(6, rows))
    _, closure = blocks_program(state, versors)
    _, seen = propagate_program(state, versors)
    assert (closure.first_violation == step).all()
    for name in ("first_violation", "ok", "versors_closed"):
        np.testing.assert_array_equal(getattr(closure, name), getattr(seen, name))
    if np.isfinite(damage):
        np.testing.assert_allclose(closure.norm, seen.norm, rtol=rounding(step))


def test_one_bad_sample_is_named_and_the_others_are_kept() -> None:
    state = FieldState(rotors(7, CHUNK + 9).at[CHUNK + 4].multiply(1.5))
    moved, closure = propagate(state, rotors(8, BLOCK + 1))
    assert closure.first_violation[CHUNK + 4] == 0
    assert int((~closure.ok).sum()) == 1
    expected = propagate_program(state, rotors(8, BLOCK + 1)[:, None])[0].motor
    np.testing.assert_allclose(moved.motor, expected, rtol=0, atol=2 * rounding(BLOCK))


def test_motors_with_translations_agree_to_their_norm() -> None:
    state, versors = FieldState(motors(9, 40)), motors(10, 200)
    moved, closure = propagate(state, versors)
    expected, seen = propagate_program(state, versors[:, None])
    # Norms of states and of prefixes, squared: what two products err by goes with both.
    scale = float(jnp.max(seen.norm)) ** 2 * float(jnp.max(jnp.sum(versors**2, axis=-1)))
    np.testing.assert_allclose(moved.motor, expected.motor, rtol=0, atol=rounding(200) * scale)
    assert closure.ok.all()


@pytest.mark.parametrize("distance", [1.0, 1e2, 1e4])
def test_going_and_coming_back_does_not_lose_the_null_direction(distance: float) -> None:
    there = translator(jnp.asarray([distance, 0.0, 0.0]))
    versors = jnp.tile(jnp.stack([there, even_reverse(there)]), (LONG, 1))
    for rows in (1, FEW):
        moved, closure = propagate(FieldState(identity_motor((rows,))), versors)
        assert closure.ok.all()
        assert float(closure.max_residual.max()) < 64 * EPS * max(distance, 1.0) ** 2
        np.testing.assert_allclose(moved.motor, identity_motor((rows,)), rtol=0, atol=64 * EPS * distance)


@pytest.mark.parametrize("rows", [2, FEW])
def test_the_gradient_is_that_of_one_step_after_another(rows: int) -> None:
    motor, versors, weights = rotors(11, rows), rotors(12, BLOCK + 3), rotors(13, rows)

    def height(program):
        return lambda motor, versors: jnp.sum(weights * program(FieldState(motor), versors[:, None])[0].motor)

    for which in (0, 1):
        found = jax.grad(height(blocks_program), which)(motor, versors)
        expected = jax.grad(height(propagate_program), which)(motor, versors)
        np.testing.assert_allclose(found, expected, rtol=0, atol=rows * rounding(BLOCK + 3))


def test_a_residual_at_rest_has_no_nan_gradient() -> None:
    def height(motor):
        moved, closure = propagate(FieldState(motor), identity_motor((BLOCK,)))
        return jnp.sum(moved.motor) + jnp.sum(closure.max_residual)

    assert jnp.isfinite(jax.grad(height)(identity_motor((FEW,)))).all()


def test_under_vmap_and_over_devices() -> None:
    state, versors = rotors(14, 4, FEW), rotors(15, BLOCK + 2)
    expected = propagate(FieldState(state), versors)[0].motor

    def move(motor):
        return propagate(FieldState(motor), versors)[0].motor

    mesh = jax.make_mesh((4,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("rows")
    for moved in (jax.vmap(move)(state), jax.shard_map(move, mesh=mesh, in_specs=spec, out_specs=spec)(state)):
        np.testing.assert_allclose(moved, expected, rtol=0, atol=rounding(BLOCK + 2))


@pytest.mark.parametrize(
    ("rows", "own", "blocks"),
    [(1, 1, 1), (FEW, 1, 3), (CHUNK + 1, 1, SUPERBLOCK // BLOCK + 2), (3, 3, 2), (3, 3, SUPERBLOCK // BLOCK + 2)],
)
def test_nothing_repairs_a_state(rows: int, own: int, blocks: int) -> None:
    left_over = next(rest for rest in range(1, BLOCK) if block_for(blocks * BLOCK + rest) == BLOCK)
    traced = blocks_program.trace(FieldState(rotors(1, rows)), rotors(2, blocks * BLOCK + left_over, own))
    report = prove_traced(traced, **PICK, steps=blocks + 1, compositions=COMPOSITIONS)
    assert report, str(report)


def test_the_program_is_chosen_by_shape() -> None:
    def names(state, versors):
        return {eqn.params.get("name") for eqn in jax.make_jaxpr(program_for)(state, versors).eqns}

    few = FEW_SAMPLES["cpu"]
    state = FieldState(rotors(1, few + 1))
    assert names(state, rotors(2, MANY, 1)) == {"_propagate_blocks"}
    assert names(state, rotors(2, MANY - 1, 1)) == {"_propagate"}
    assert names(FieldState(rotors(1, few)), rotors(2, MANY, few)) == {"_propagate_blocks"}
    assert names(FieldState(rotors(1, few + 1)), rotors(2, MANY, few + 1)) == {"_propagate"}
    assert names(FieldState(rotors(1, 0)), rotors(2, MANY, 1)) == {"_propagate"}


def test_watching_all_is_watching_one_after_another() -> None:
    random = np.random.default_rng(16)
    squares = jnp.asarray(random.choice([0.0, 0.5 * TOLERANCE**2, TOLERANCE**2, 1.0, np.inf], (7, 200)))
    norms = jnp.asarray(random.uniform(1, 9, (7, 200)))
    start = begin(squares[0] * 1e-13, norms[0])
    one_by_one = start
    for number in range(7):
        one_by_one = watch(one_by_one, jnp.asarray(5 + number), squares[number], norms[number])
    for found, expected in zip(
        jax.tree.leaves(watch_all(start, jnp.asarray(5), squares, norms)), jax.tree.leaves(one_by_one), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_blocks_divide_the_steps_where_they_can() -> None:
    assert [block_for(steps) for steps in (1_000, 1_024, 40, 31, 7, 97)] == [40, 32, 40, 31, BLOCK, BLOCK]
    assert all(steps % block_for(steps) == 0 or not any(steps % block == 0 for block in BLOCKS) for steps in range(500))
