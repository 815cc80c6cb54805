"""The vault recalls exactly: against a NumPy oracle with adversarial ties, masks, growth and devices."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import AxisType

from engine.base.errors import (
    ConfigError,
    DeviceError,
    PointAtInfinityError,
    PrecisionError,
    ShapeError,
    TracedCheckError,
    VersorClosureError,
)
from engine.vault import Status, Vault
from engine.vault.recall import BLOCK, CHUNK, MANY, Query, Table, motor_marks, nearest
from tests.field.motors import E14, E15, E24, E25, E34, E35, PRODUCT, rotors
from tests.vault import oracle

K = 7


def carrying(points, seed=None):
    """Motors that carry the origin to `points`; with a seed each turns differently about its point."""
    points = np.asarray(points, np.float64)
    motor = np.zeros((*points.shape[:-1], 16))
    motor[..., 0] = 1.0
    motor[..., [E14, E24, E34]] = motor[..., [E15, E25, E35]] = -0.5 * points
    if seed is not None:
        motor = np.einsum("...i,...j,ijk->...k", motor, np.asarray(rotors(seed, *points.shape[:-1])), PRODUCT)
    return jnp.asarray(motor)


def lattice(count, size, seed):
    """Points on a half-integer lattice: exact in float64, with many equal distances."""
    return np.random.default_rng(seed).integers(-size, size + 1, (count, 3)) / 2.0


def assert_recalls(vault, query, k, **options):
    found = vault.recall(query, k, **options)
    count = len(vault)
    eligible = np.asarray(vault.statuses)[:count] == Status.COHERENT if options.get("coherent_only") else [True] * count
    points, motors = np.asarray(vault.points)[:count], np.asarray(vault.motors)[:count]
    whole = np.asarray(query)
    for place in np.ndindex(whole.shape[:-1]):
        one = whole[place]
        motor = one if one.shape == (16,) else None
        point = one if motor is None else -2.0 * one[[E14, E24, E34]]
        index, distance = oracle.recall(points, motors, point, motor, eligible, k)
        np.testing.assert_array_equal(found.index[place], index)
        # One square root of a sum that is exact on the lattice.
        np.testing.assert_allclose(found.distance[place], distance, rtol=4e-16)


@pytest.mark.parametrize(("count", "size"), [(1, 2), (BLOCK + 1, 2), (CHUNK + 5, 2), (CHUNK + 5, 6)])
def test_equals_the_oracle_on_ties(count, size):
    points = lattice(count, size, seed=count)
    vault = Vault.empty(count).store(carrying(points))
    np.testing.assert_array_equal(np.asarray(vault.points)[:count], points)
    queries = np.concatenate([lattice(2, size, seed=1), points[-1:]])
    assert_recalls(vault, jnp.asarray(queries), K)
    assert_recalls(vault, carrying(queries), K)


@pytest.mark.parametrize("coherent_only", [False, True])
def test_many_queries_of_whole_chunks_equal_the_oracle_on_ties(coherent_only):
    count = CHUNK + 5
    points = lattice(count, 2, seed=3)
    vault = Vault.empty(count).store(carrying(points[:CHUNK]), status="coherent").store(carrying(points[CHUNK:]))
    vault = vault.review(0, "incoherent").review(CHUNK - 1, "incoherent")
    queries = np.concatenate([lattice(MANY, 2, seed=1), points[-1:], points[:1], [[50.0, 0.5, -50.0]]])
    assert_recalls(vault, jnp.asarray(queries), K, coherent_only=coherent_only)
    assert_recalls(vault, carrying(queries), K, coherent_only=coherent_only)


def test_many_queries_recall_what_each_recalls_alone():
    points = np.random.default_rng(5).normal(size=(2 * CHUNK, 3))
    vault = Vault.empty(2 * CHUNK).store(carrying(points, seed=6))
    queries = jnp.asarray(np.concatenate([points[: MANY + 1], np.random.default_rng(7).normal(size=(MANY, 3))]))
    for asked in (queries, carrying(queries, seed=8).at[:2].set(vault.motors[:2])):
        found = vault.recall(asked, K)
        for place, query in enumerate(asked):
            for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(vault.recall(query, K)), strict=True):
                np.testing.assert_array_equal(one[place], other)
    gone = jax.jit(lambda v, q: v.recall(q, K))(vault, queries.at[1].set(jnp.nan).at[2].set(jnp.inf))
    np.testing.assert_array_equal(gone.index[1:3], -1)
    np.testing.assert_array_equal(gone.index[3:], vault.recall(queries[3:], K).index)


@settings(max_examples=25)
@given(st.integers(0, 2**31), st.integers(1, 60), st.integers(0, 1))
def test_equals_the_oracle_on_generated_lattices(seed, count, size):
    """Lattices of one or 27 points: nearly everything ties."""
    points = np.zeros((60, 3))
    points[:count] = lattice(count, size, seed)
    vault = Vault.empty(60).store(carrying(points))
    short = Vault(vault.motors, vault.marks, vault.coordinates, vault.statuses, vault.steps, jnp.asarray(count))
    assert_recalls(short, carrying(points[:2]), K)


def test_exact_self_match_comes_before_all_that_share_its_point():
    count = 20 * BLOCK
    motors = np.array(carrying(np.zeros((count, 3)), seed=3))
    vault = Vault.empty(count).store(jnp.asarray(motors))
    for place in (count - 1, 11 * BLOCK + 3, 0):
        for sign in (1.0, -1.0):
            found = vault.recall(jnp.asarray(sign * motors[place]), K)
            assert found.index[0] == place
            np.testing.assert_array_equal(found.exact, np.arange(K) == 0)
            np.testing.assert_array_equal(found.motor[0], motors[place])
    twice = vault.store(jnp.asarray(-motors[5]))
    np.testing.assert_array_equal(twice.recall(jnp.asarray(motors[5]), K).index[:2], [5, count])
    assert not vault.recall(jnp.zeros(3), K).exact.any()


def test_a_foreign_motor_with_the_same_mark_is_not_taken_for_the_query():
    motors = carrying(np.arange(12.0).reshape(4, 3))
    marks = motor_marks(motors)
    forged = Table(jnp.arange(12.0).reshape(4, 3).T, motors, marks.at[0].set(marks[3]), jnp.ones(4, bool))
    query = Query(jnp.array([[9.0, 10.0, 11.0]]), motors[3:], marks[3:, None])
    np.testing.assert_array_equal(nearest(forged, query, 4)[0], [[3, 2, 1, 0]])


@pytest.mark.parametrize("queries", [1, MANY])
def test_any_number_of_foreign_motors_with_the_same_mark_displace_nothing(queries):
    """Marks that all agree, as a hostile table might have them: the nearest entries stand last, in the last block."""
    count = 2 * CHUNK
    points = np.arange(float(count))[:, None] * np.array([[1.0, 0.0, 0.0]])
    motors = carrying(points)
    forged = Table(jnp.asarray(points.T), motors, jnp.zeros(count, jnp.uint64), jnp.ones(count, bool))
    asked = np.arange(count - 2, count - 2 - queries, -1)
    query = Query(jnp.asarray(points[asked]), motors[asked], jnp.zeros((queries, 1), jnp.uint64))
    expected = [[place, place - 1, place + 1] for place in asked]
    np.testing.assert_array_equal(nearest(forged, query, 3)[0], expected)


def test_marks_of_motors_with_empty_low_bits_differ():
    points = np.stack(np.meshgrid(*[np.arange(-10, 11) / 2.0] * 3), axis=-1).reshape(-1, 3)
    assert len(set(np.asarray(motor_marks(carrying(points))).tolist())) == len(points)


def test_marks_tell_motors_apart_but_not_from_their_negatives():
    motors = carrying(lattice(500, 4, seed=2), seed=5)
    marks = np.asarray(motor_marks(motors))
    assert len(set(marks.tolist())) == 500
    np.testing.assert_array_equal(marks, motor_marks(-motors))


def test_only_coherent_entries_count_as_evidence_when_asked_so():
    points = lattice(40, 1, seed=4)
    vault = Vault.empty(40)
    for part, status in ((points[:10], "coherent"), (points[10:25], Status.INCOHERENT), (points[25:], "unreviewed")):
        vault = vault.store(carrying(part), status=status)
    query = jnp.asarray(points[20:22])
    assert_recalls(vault, query, K, coherent_only=True)
    assert_recalls(vault, query, K)
    assert (vault.recall(query, K, coherent_only=True).status == Status.COHERENT).all()
    promoted = vault.review(20, "coherent")
    assert promoted.recall(query[0], 40, coherent_only=True).index.tolist().count(20) == 1
    assert_recalls(promoted, query, 12, coherent_only=True)


def test_fewer_entries_than_asked_for():
    assert Vault.empty(3).recall(jnp.zeros(3), 5).index.tolist() == [-1] * 5
    vault = Vault.empty(3).store(carrying([[1.0, 0, 0], [2.0, 0, 0]]), step=jnp.array([4, 5]), status="coherent")
    found = vault.recall(jnp.zeros((2, 3)), 5)
    np.testing.assert_array_equal(found.index, [[0, 1, -1, -1, -1]] * 2)
    np.testing.assert_array_equal(found.distance, [[1, 2, np.inf, np.inf, np.inf]] * 2)
    np.testing.assert_array_equal(found.step, [[4, 5, 0, 0, 0]] * 2)
    np.testing.assert_array_equal(found.motor[:, 2:], 0.0)
    assert found.point.shape == (2, 5, 3)


def test_storing_leaves_the_old_vault_alone_and_doubles_the_capacity():
    vault, points = Vault.empty(2), lattice(9, 3, seed=6)
    history = [vault]
    for point in points:
        history.append(history[-1].store(carrying(point)))
    assert [v.capacity for v in history] == [2, 2, 2, 4, 4, 8, 8, 8, 8, 16]
    assert [len(v) for v in history] == list(range(10))
    assert_recalls(history[-1], jnp.asarray(points[:2]), K)
    assert Vault.empty(2).store(carrying(points)).capacity == 16


def test_a_donated_vault_is_the_new_one_and_cannot_be_used_again():
    points = np.random.default_rng(3).normal(size=(40, 3))
    kept = Vault.empty(8)
    donated = Vault.empty(8)
    for number, motor in enumerate(carrying(points)):
        last = donated
        kept = kept.store(motor, status="coherent", step=number)
        donated = donated.store(motor, status="coherent", step=number, donate=True)
    for one, other in zip(jax.tree.leaves(kept), jax.tree.leaves(donated), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(RuntimeError, match="deleted"):
        last.recall(jnp.zeros(3), 1)


def test_what_is_refused_donates_nothing():
    vault = Vault.empty(4)
    with pytest.raises(VersorClosureError):
        vault.store(jnp.full(16, 2.0), donate=True)
    assert len(vault.store(carrying([[1.0, 0.0, 0.0]]))) == 1


def test_growth_leaves_a_vault_that_is_not_donated_alone():
    full = Vault.empty(1)
    full = full.store(carrying(np.ones((full.capacity, 3))))
    grown = full.store(carrying([[2.0, 0.0, 0.0]]))
    assert len(full) == full.capacity == len(grown) - 1
    np.testing.assert_array_equal(full.recall(jnp.ones(3), 1).index, [0])


def test_growth_recompiles_nothing_smaller(caplog):
    def cycle():
        vault = Vault.empty(3)
        for point in lattice(7, 3, seed=8):
            vault = vault.store(carrying(point))
            vault.recall(jnp.zeros(3), 2)

    cycle()
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        cycle()
        Vault.empty(3).recall(jnp.ones(3), 2, coherent_only=True)
        assert "Compiling" not in caplog.text
        Vault.empty(5).recall(jnp.zeros(3), 2)
        assert "Compiling" in caplog.text


def test_storing_any_number_compiles_a_program_for_each_power_of_two(caplog):
    def stored(counts):
        vault, points = Vault.empty(512), lattice(600, 5, seed=9)
        for count in counts:
            vault = vault.store(carrying(points[len(vault) : len(vault) + count]), step=np.arange(count))
        return vault

    powers, others = stored([1, 2, 4, 8, 16, 32, 64, 128, 255]), [3, 5, 6, 7, 9, 21, 63, 100, 41]
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        vault = stored(others)
    assert not [line for line in caplog.text.splitlines() if "Compiling jit(_" in line]
    assert len(vault) == sum(others) == 255
    for name in ("motors", "marks", "points"):
        np.testing.assert_array_equal(getattr(powers, name)[:255], getattr(vault, name)[:255])
    expected = np.concatenate([np.arange(count) for count in others])
    np.testing.assert_array_equal(vault.steps[:255], expected)


def test_the_message_about_a_bad_entry_counts_what_was_given():
    motors = np.array(carrying(lattice(5, 3, seed=10)))
    motors[3] *= 1.1
    with pytest.raises(VersorClosureError, match=r"sample 3, .* 1 of 5 samples"):
        Vault.empty(8).store(motors)


def test_refuses_at_the_door():
    vault, good = Vault.empty(4), carrying([1.0, 0, 0])
    for bad in (1.001 * good, jnp.nan * good, jnp.zeros(16)):
        with pytest.raises(VersorClosureError):
            vault.store(bad)
        with pytest.raises(VersorClosureError):
            vault.recall(bad, 1)
    with pytest.raises(PointAtInfinityError):
        vault.store(swap_origin_and_infinity())
    with pytest.raises(PointAtInfinityError):
        vault.recall(jnp.array([0.0, jnp.nan, 0.0]), 1)
    with pytest.raises(PrecisionError):
        vault.store(np.asarray(good, np.float32))
    for shape in ((15,), (2, 2, 16)):
        with pytest.raises(ShapeError):
            vault.store(np.zeros(shape))
    with pytest.raises(ShapeError):
        vault.recall(jnp.zeros(5), 1)
    for k in (0, -1, True):
        with pytest.raises(ConfigError):
            vault.recall(good, k)
    for capacity in (0, -3, True):
        with pytest.raises(ConfigError):
            Vault.empty(capacity)
    with pytest.raises(ConfigError):
        vault.store(good, status="agreeable")
    with pytest.raises(ConfigError):
        vault.review(0, "coherent")
    with pytest.raises(TracedCheckError):
        jax.jit(lambda motor: vault.store(motor).motors)(good)


def swap_origin_and_infinity():
    """e14: it turns e4 about, hence n_o = (e5 - e4) / 2 into n_inf / 2."""
    return jnp.zeros(16).at[E14].set(1.0)


def test_recall_inside_jit_finds_nothing_for_a_query_that_is_not_finite():
    vault = Vault.empty(4).store(carrying([[1.0, 0, 0]]))
    found = jax.jit(lambda v, q: v.recall(q, 2))(vault, jnp.array([[0.0, 0.0, 0.0], [jnp.nan, 0.0, 0.0]]))
    np.testing.assert_array_equal(found.index, [[0, -1], [-1, -1]])
    assert jax.jit(lambda v, q: v.recall(q, 2))(vault, jnp.zeros((0, 3))).index.shape == (0, 2)


@pytest.mark.parametrize(("devices", "entries"), [(2, 4 * BLOCK), (8, 4 * BLOCK), (2, 2 * CHUNK)])
def test_sharded_over_devices(devices, entries):
    points = lattice(entries, 3, seed=9)
    vault = Vault.empty(entries).store(carrying(points))
    mesh = jax.make_mesh((devices,), ("entries",), axis_types=(AxisType.Auto,))
    spread = vault.spread(mesh, "entries")
    assert len(spread.motors.devices()) == devices
    queries = carrying(points[: MANY + 1])
    plain, found = vault.recall(queries, K), spread.recall(queries, K)
    for one, other in zip(jax.tree.leaves(plain), jax.tree.leaves(found), strict=True):
        np.testing.assert_array_equal(one, other)
    for call in (lambda: Vault.empty(3).spread(mesh, "entries"), lambda: vault.spread(mesh, "rows")):
        with pytest.raises(DeviceError):
            call()
