"""The walk against a slow oracle, its ends, its determinism, its closure and the proof that it never repairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import engine.generate.walk as walk_module
from engine.base.errors import VersorClosureError
from engine.field.closure import assert_closed
from engine.generate.admissibility import Region
from engine.generate.walk import WalkReason, walk
from engine.runtime.programs import WalkPrograms, prove_walk
from tests.generate.vocabulary import (
    LONELY,
    RELATIONS,
    ROWS,
    STEPS,
    WINDOW,
    make_arguments,
    make_policy,
    make_world,
    slow_walk,
)

WORLD = make_world()
PROGRAM = jax.jit(walk)


def run(*arguments):
    return jax.tree.map(np.asarray, PROGRAM(*arguments))


def first_step(region):
    schedule = np.zeros((ROWS, STEPS))
    schedule[:, 0] = region
    return schedule


def neighbours(word, kinds=None):
    return {int(t) for h, r, t in WORLD.edges if h == word and (kinds is None or r in kinds)}


def test_every_row_walks_as_the_slow_oracle_does():
    *arguments, personas = make_arguments(WORLD)
    rows, result = arguments[0], run(*arguments)
    for row in range(ROWS):
        said, motor = slow_walk(WORLD, personas[int(rows.identity[row])], rows.motor[row], int(rows.start[row]))
        assert result.tokens[row][: len(said)].tolist() == said
        assert (result.tokens[row][len(said) :] == -1).all()
        assert result.length[row] == len(said)
        # Eight steps of products of 16 terms, coefficients up to about ten.
        assert np.abs(result.motor[row] - motor).max() < 1e-11


def test_reruns_are_bit_identical():
    *arguments, _ = make_arguments(WORLD, seed=5)
    first = run(*arguments)
    for _ in range(4):
        again = run(*arguments)
        assert jax.tree.all(jax.tree.map(lambda a, b: np.array_equal(a, b, equal_nan=True), first, again))


def test_nothing_is_said_twice_within_the_window():
    *arguments, _ = make_arguments(WORLD, policy=make_policy(settle_margin=np.inf))
    result = run(*arguments)
    for start, tokens in zip(arguments[0].start.tolist(), result.tokens.tolist(), strict=True):
        path = [start, *[token for token in tokens if token >= 0]]
        for place, word in enumerate(path):
            assert word not in path[max(0, place - WINDOW) : place]


def test_a_stopped_or_padded_row_keeps_its_state_bit_for_bit():
    starts = np.full(ROWS, -1)
    starts[0] = LONELY
    *arguments, _ = make_arguments(WORLD, starts=starts)
    result = run(*arguments)
    assert np.array_equal(result.motor, np.asarray(arguments[0].motor))
    assert result.reason.tolist() == [WalkReason.NO_NEIGHBOUR, *[WalkReason.INACTIVE] * (ROWS - 1)]
    assert (result.tokens == -1).all()


def test_a_region_bounds_the_step_that_it_is_scheduled_for():
    word = int(np.bincount(WORLD.edges[:, 0]).argmax())
    kinds = sorted({int(r) for h, r, _ in WORLD.edges if h == word})
    allowed = Region("one kind", relations=frozenset(kinds[:1]))
    nothing = Region("elsewhere", words=frozenset({LONELY}))
    schedule = first_step(1)
    schedule[ROWS // 2 :] = first_step(2)[ROWS // 2 :]
    *arguments, _ = make_arguments(WORLD, regions=[allowed, nothing], schedule=schedule, starts=np.full(ROWS, word))
    result = run(*arguments)
    assert {int(token) for token in result.tokens[: ROWS // 2, 0]} <= neighbours(word, kinds[:1])
    assert (result.reason[ROWS // 2 :] == WalkReason.OUTSIDE_REGION).all()
    assert (result.length[: ROWS // 2] > 1).all(), "later steps are unconstrained"


def test_every_neighbour_recently_said_ends_the_walk():
    edges = np.array([[0, 0, 1], [1, RELATIONS, 0]])
    pair = walk_module  # the module under test; a two-word world uses its own tables
    from engine.generate.tables import build_tables
    from tests.generate.vocabulary import World

    tables, motors, order = build_tables(WORLD.words, WORLD.points, WORLD.relations, edges)
    world = World(WORLD.words, WORLD.points, WORLD.relations, edges[order], tables, motors)
    *arguments, _ = make_arguments(world, starts=np.zeros(ROWS))
    result = jax.tree.map(np.asarray, jax.jit(pair.walk)(*arguments))
    assert (result.reason == WalkReason.ALL_RECENT).all()
    assert (result.length == 1).all()


def test_a_margin_that_no_candidate_has_is_ambiguous():
    *arguments, _ = make_arguments(WORLD, policy=make_policy(mode="ranked", margin=50.0))
    result = run(*arguments)
    several = np.array([len(neighbours(int(start))) > 1 for start in arguments[0].start])
    assert (result.reason[several] == WalkReason.AMBIGUOUS).all()
    assert several.any()
    *arguments, _ = make_arguments(WORLD, policy=make_policy(mode="ranked", margin=0.0))
    assert not (run(*arguments).reason == WalkReason.AMBIGUOUS).any()


def test_a_narrow_frame_admits_only_steps_that_turn_like_it():
    *arguments, _ = make_arguments(WORLD, policy=make_policy(mode="frame", frame_angle=1e-6))
    assert (run(*arguments).reason == WalkReason.OUTSIDE_FRAME).all()
    edge = 3
    rotor = tuple(np.asarray(WORLD.tables.edge_rotors[edge]).tolist())
    frame = (rotor[0], rotor[1], rotor[2], 0.0, 0.0, rotor[3], *[0.0] * 10)
    head, _, tail = WORLD.edges[edge]
    region = Region("like one step", frame=(frame,))
    *arguments, _ = make_arguments(
        WORLD,
        regions=[region],
        schedule=first_step(1),
        starts=np.full(ROWS, head),
        policy=make_policy(mode="frame", frame_angle=1e-3),
    )
    assert (run(*arguments).tokens[:, 0] == tail).all()


def test_a_walk_settles_only_after_its_least_number_of_words():
    *arguments, _ = make_arguments(WORLD, policy=make_policy(min_steps=2))
    result = run(*arguments)
    settled = result.reason == WalkReason.SETTLED
    assert settled.any()
    assert (result.length[settled] >= 2).all()
    *arguments, _ = make_arguments(WORLD, policy=make_policy(min_steps=2, settle_margin=np.inf))
    assert not (run(*arguments).reason == WalkReason.SETTLED).any()


def test_a_state_that_is_not_finite_is_named_and_the_others_are_kept():
    *arguments, _ = make_arguments(WORLD)
    clean = run(*arguments)
    spoiled = np.asarray(arguments[0].motor).copy()
    spoiled[5] = np.nan
    *arguments, _ = make_arguments(WORLD, motors=spoiled)
    result = run(*arguments)
    assert result.reason[5] == WalkReason.NOT_FINITE
    assert result.closure.first_violation[5] == 0
    assert result.closure.max_residual[5] == np.inf
    others = np.arange(ROWS) != 5
    assert np.array_equal(result.motor[others], clean.motor[others])
    assert result.closure.ok[others].all()


def test_an_operator_off_the_manifold_is_found_at_its_step_and_not_repaired():
    rows, operators, *rest, _ = make_arguments(WORLD)
    stretched = operators.at[:-1].multiply(1.0 + 1e-5)
    result = PROGRAM(rows, stretched, *rest)
    assert np.asarray(result.closure.first_violation).tolist() == [1] * ROWS
    # Each step scales F reverse(F) by (1 + 1e-5)^4: about 4e-5 a step, growing because nothing mends it.
    residuals = np.asarray(result.residuals)
    assert np.allclose(residuals[:, 1], 4e-5, rtol=1e-3)
    walked = np.asarray(result.length) == STEPS
    assert np.allclose(residuals[walked, STEPS], STEPS * 4e-5, rtol=1e-2)
    with pytest.raises(VersorClosureError):
        assert_closed(result.closure)


def test_one_trace_serves_packs_prompts_and_swept_numbers():
    programs = WalkPrograms()
    for seed, margin in ((1, 0.0), (2, 0.3), (3, np.inf)):
        *arguments, _ = make_arguments(WORLD, seed=seed, policy=make_policy(settle_margin=margin, mode="ranked"))
        program = programs.get(*arguments)
        assert program.report.upheld, str(program.report)
        program.compiled(*arguments)
    assert programs.traces == 1


def _normalised(operator, motor):
    moved = SANDWICH(operator, motor)
    return moved / jnp.sqrt(jnp.sum(moved * moved, axis=-1, keepdims=True))


def _newton_schulz(operator, motor):
    moved = SANDWICH(operator, motor)
    return moved * (1.5 - 0.5 * jnp.sum(moved * moved, axis=-1, keepdims=True))


def _kept_where_good(operator, motor):
    moved = SANDWICH(operator, motor)
    return jnp.where(jnp.isfinite(moved), moved, motor)


SANDWICH = walk_module.sandwich_kernel


@pytest.mark.parametrize("repair", [_normalised, _newton_schulz, _kept_where_good])
def test_the_proof_finds_a_repair_planted_in_the_walk(monkeypatch, repair):
    *arguments, _ = make_arguments(WORLD)
    assert prove_walk(jax.jit(walk_module.walk).trace(*arguments)).upheld
    monkeypatch.setattr(walk_module, "sandwich_kernel", repair)
    # A new function object: JAX would otherwise answer from the trace it already has.
    planted = jax.jit(lambda *values: walk_module.walk(*values)).trace(*arguments)
    assert not prove_walk(planted).upheld


def test_ties_go_to_the_lowest_word():
    from engine.generate.tables import build_tables
    from tests.generate.vocabulary import World

    points, words = WORLD.points.copy(), WORLD.words.copy()
    points[[4, 9]], words[[4, 9]] = points[4], words[4]
    edges = np.array([[0, 1, 9], [0, 0, 9], [0, 2, 4], [9, 0, 1], [4, 0, 1]])
    tables, motors, order = build_tables(words, points, WORLD.relations, edges)
    world = World(words, points, WORLD.relations, edges[order], tables, motors)
    *arguments, _ = make_arguments(world, starts=np.zeros(ROWS))
    assert (run(*arguments).tokens[:, 0] == 4).all()
