"""The hot-path proof sees every planted repair and passes honest programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec

from engine.base.errors import ConfigError
from engine.safety.hotpath import prove_no_repair, prove_traced
from tests.safety.hot_programs import REPAIRS, hidden, looped, product, residual, sandwich

STATE, VERSORS = jnp.array([1.0, 0.2, 0.3, 0.4]), jnp.ones((5, 4))


def prove(program, *args, **options):
    """State first, operators second; the outgoing state is the first result."""
    traced = jax.jit(program).trace(*(args or (STATE, VERSORS)))
    return prove_no_repair(traced.jaxpr, [0], [1], [0], **options)


@pytest.mark.parametrize("name", REPAIRS)
def test_planted_repair_is_caught_with_its_source(name):
    repair, primitive = REPAIRS[name]
    report = prove(looped(repair))
    assert not report
    assert primitive in {finding.primitive for finding in report.findings}, str(report)
    assert any("hot_programs.py" in finding.source or finding.source == "result" for finding in report.findings)


def test_repair_before_and_after_the_loop_is_caught():
    plain = looped(lambda v, f: f)
    assert not prove(lambda f, v: plain(hidden(f), v))
    assert not prove(lambda f, v: hidden(plain(f, v)[0]))
    assert not prove(lambda f, v: plain(f, v / v[..., :1]))


def test_path_names_the_nesting():
    report = prove(looped(lambda v, f: hidden(f)))
    assert any("scan/jit:hidden" in finding.path for finding in report.findings)


def with_table(choose):
    """A walk: operators are picked from a table by an index that the state chooses."""

    def program(state, table):
        def body(f, _):
            return sandwich(choose(table, jnp.argmin(jnp.abs(table[:, 0] - f[0]))), f), residual(f)

        return lax.scan(body, state, length=6)

    return program


def test_scan_passes_with_exact_degree():
    report = prove(looped(lambda v, f: f), steps=5)
    assert report, str(report)
    assert report.degrees == ("state^1 operator^10",)
    assert report.steps == (5,)
    assert not prove(looped(lambda v, f: f), steps=4)
    assert {"sqrt", "scan"} <= report.primitives


def test_operator_chosen_by_the_state_may_come_only_from_the_table_handed_in():
    assert prove(with_table(lambda table, i: table[i]), steps=6)
    assert not prove(with_table(lambda table, i: (0.999 * table)[i]))
    assert not prove(with_table(lambda table, i: jnp.concatenate([table, table * table])[i]))
    assert not prove(with_table(lambda table, i: jnp.concatenate([table, jnp.ones((1, 4))])[i]))
    assert not prove(with_table(lambda table, i: jnp.asarray(np.ones((5, 4)))[i]))


def test_state_kept_among_candidates_is_not_a_table():
    def program(state, table):
        candidates = jnp.stack([sandwich(row, state) for row in table])
        return candidates[jnp.argmin(jax.vmap(residual)(candidates))]

    assert not prove(program)


def test_honest_programs_pass():
    def unrolled(state, versors):
        for versor in versors:
            state = sandwich(versor, state)
        return state

    def counted(state, versors):
        return lax.fori_loop(0, 5, lambda i, f: sandwich(versors[i], f), state)

    def chunked(state, versors):
        def outer(f, block):
            return lax.scan(lambda g, v: (sandwich(v, g), None), f, block)[0], None

        return lax.scan(outer, state, versors.reshape(5, 1, 4))[0]

    def padded(state, versors):
        wide = jnp.pad(state[None], ((0, 3), (0, 0)))
        return lax.scan(lambda f, v: (jax.vmap(sandwich, (None, 0))(v, f), None), wide, versors)[0][0]

    scaled = looped(lambda v, f: 0.5 * f + 0.5 * lax.stop_gradient(f))
    for program in (unrolled, counted, chunked, padded, scaled, jax.checkpoint(unrolled)):
        report = prove(program, steps=5)
        assert report, f"{program}: {report}"


def test_loop_over_an_argument_passes_and_its_trips_are_counted_by_name():
    def program(state, versors, count):
        return lax.fori_loop(0, count, lambda i, f: sandwich(versors[i], f), state)

    def half(state, versors, count):
        return lax.fori_loop(0, count, lambda i, f: product(versors[i], f), state)

    def chosen(state, versors, count):
        trips = jnp.where(residual(state) > 1.0, 3, 4)
        return lax.fori_loop(0, trips, lambda i, f: sandwich(versors[i], f), state)

    report = prove(program, STATE, VERSORS, 3)
    assert report, str(report)
    assert not prove(program, STATE, VERSORS, 3, steps=3)
    assert not prove(half, STATE, VERSORS, 3)
    assert not prove(chosen, STATE, VERSORS, 3)


def test_argument_that_is_neither_state_nor_operator_may_not_reach_the_state():
    assert not prove(lambda f, v, scale: f * scale, STATE, VERSORS, 0.5)
    assert prove(lambda f, v, row: sandwich(v[row], f), STATE, VERSORS, 2)


def test_one_sided_products_and_missing_state_fail():
    assert not prove(lambda f, v: product(v[0], f))
    assert not prove(lambda f, v: sandwich(f, v[0]))
    assert not prove(lambda f, v: jnp.ones(4))
    assert not prove(lambda f, v: v[0])


@jax.jit
def combine(later, earlier):
    return jnp.einsum("ni,nj,ijk->nk", later, earlier, np.ones((4, 4, 4)))


@jax.jit
def combine_and_repair(later, earlier):
    raw = combine(later, earlier)
    return 1.5 * raw - 0.5 * raw * jnp.sum(raw * raw, axis=-1, keepdims=True)


def parallel(combination):
    def program(state, versors):
        prefixes = lax.associative_scan(lambda a, b: combination(b, a), versors)
        return sandwich(prefixes[-1], state)

    return program


def test_parallel_form_is_proved_by_its_combine_function():
    names = ("combine", "combine_and_repair")
    assert prove(parallel(combine), compositions=names, steps=1)
    report = prove(parallel(combine_and_repair), compositions=names)
    assert not report
    assert "sub" in {finding.primitive for finding in report.findings}
    assert not prove(parallel(combine)), "without naming the combine function its degrees are mixed"
    assert not prove(lambda f, v: sandwich(combine(v, v)[0] + v[0] * v[1], f), compositions=names)
    assert not prove(lambda f, v: combine(f[None], v[:1])[0], compositions=names)


def test_shard_map_is_seen_through():
    mesh = jax.make_mesh((2,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = PartitionSpec("batch")

    def sharded(step):
        mapped = jax.shard_map(step, mesh=mesh, in_specs=(spec, PartitionSpec()), out_specs=spec)
        return prove(mapped, jnp.ones((4, 4)), VERSORS)

    assert sharded(lambda f, v: jax.vmap(lambda g: sandwich(v[0], g))(f))
    assert not sharded(lambda f, v: jax.vmap(hidden)(f))


def test_positions_by_name():
    def program(tree, versors):
        return {"closure": residual(tree["motor"]), "motor": sandwich(versors[0], tree["motor"])}

    traced = jax.jit(program).trace({"age": 0, "motor": STATE}, VERSORS)
    picked = {"state": lambda args: args[0]["motor"], "operators": lambda args: args[1]}
    assert prove_traced(traced, **picked, outputs=lambda result: result["motor"], steps=1)
    assert not prove_traced(traced, **picked, outputs=lambda result: result["closure"])


def test_unknown_positions_are_refused():
    jaxpr = jax.jit(lambda f, v: f).trace(STATE, VERSORS).jaxpr
    for states, operators, outputs in [([2], [1], [0]), ([0], [1], [1]), ([], [1], [0]), ([0], [0], [0])]:
        with pytest.raises(ConfigError):
            prove_no_repair(jaxpr, states, operators, outputs)
