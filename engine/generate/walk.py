"""The walk: from a prompt's motor, step from word to word along relations, the persona speaking at every step.

At each step the nearest admissible neighbour of the current word is chosen by exact point distance from the point the
field carries the origin to, and the field moves by `F <- (V M) F reverse(V M)`. Choices are indices; the field itself
is only ever sandwiched with a gathered operator. A row that has stopped gathers the identity motor, so that every row
runs the same fixed number of steps and nothing selects between field values (DESIGN §5).
"""

from enum import IntEnum

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from engine.algebra.product import sandwich_kernel
from engine.field.closure import Closure, Watch, begin, finish, squared_residual, watch
from engine.generate.admissibility import Admissibility, RegionTable
from engine.generate.points import carried_point
from engine.generate.tables import WalkTables


class WalkReason(IntEnum):
    """Why a row's walk ended. `WALKING` never leaves the program."""

    WALKING = 0
    BUDGET = 1
    """All steps were used."""
    SETTLED = 2
    """The field stands nearer to the word just said than to any admissible next one."""
    NO_NEIGHBOUR = 3
    """The word has no relation in the vocabulary."""
    OUTSIDE_REGION = 4
    """The region excludes every neighbour."""
    ALL_RECENT = 5
    """Every neighbour in the region was said within the window."""
    OUTSIDE_FRAME = 6
    """No remaining neighbour's step turns within the frame's angle."""
    AMBIGUOUS = 7
    """The nearest neighbour does not beat the runner-up by the margin."""
    NOT_FINITE = 8
    """The field is not finite, so that no distance can be compared."""
    INACTIVE = 9
    """The row is padding, or its prompt had no known word."""


EXHAUSTED = frozenset(
    {
        WalkReason.NO_NEIGHBOUR,
        WalkReason.OUTSIDE_REGION,
        WalkReason.ALL_RECENT,
        WalkReason.OUTSIDE_FRAME,
        WalkReason.AMBIGUOUS,
    }
)
"""Ends for want of an admissible word."""


class WalkRows(eqx.Module):
    """One row per prompt x identity x seed. `start` is the word the walk begins at, -1 for an inactive row."""

    motor: Float[Array, "rows 16"]
    start: Int[Array, "rows"]
    identity: Int[Array, "rows"]
    regions: Int[Array, "rows steps"]


class WalkPolicy(eqx.Module):
    """Numbers of the stop rule and of admissibility; arrays, so that sweeping them compiles nothing again.

    A walk settles once `min_steps` words are said and the current word is nearer than the best next one by more than
    `settle_margin` (a distance; infinity never settles).
    """

    admissibility: Admissibility
    min_steps: Int[Array, ""]
    settle_margin: Float[Array, ""]


class WalkResult(eqx.Module):
    """Words and edges said (-1 after the end), the final motor, why and after how many steps each row ended.

    `residuals` holds the closure residual of the initial state and of the state after every step; `closure` is their
    summary.
    """

    tokens: Int[Array, "rows steps"]
    edges: Int[Array, "rows steps"]
    motor: Float[Array, "rows 16"]
    reason: Int[Array, "rows"]
    length: Int[Array, "rows"]
    residuals: Float[Array, "rows states"]
    closure: Closure


class _Carry(eqx.Module):
    motor: Float[Array, "rows 16"]
    word: Int[Array, "rows"]
    recent: Int[Array, "rows window"]
    reason: Int[Array, "rows"]
    length: Int[Array, "rows"]
    seen: Watch


class _Choice(eqx.Module):
    edge: Int[Array, "rows"]
    reason: Int[Array, "rows"]


def walk(
    rows: WalkRows,
    operators: Float[Array, "operators 16"],
    tables: WalkTables,
    regions: RegionTable,
    policy: WalkPolicy,
    window: Int[Array, "window"],
) -> WalkResult:
    """Walk every row for `rows.regions.shape[1]` steps. Pure; `walk_program` is its compiled form.

    `operators` is the flat table of `engine.generate.tables.step_operators`; `window` is an array whose length is the
    number of last words that may not be said again (its values are not read).
    """
    stride = tables.edge_tails.shape[0]
    active = rows.start >= 0
    word = jnp.where(active, rows.start, 0)
    recent = jnp.full((word.shape[0], window.shape[0]), -1, word.dtype).at[:, 0].set(word)
    start = jnp.where(active, WalkReason.WALKING, WalkReason.INACTIVE).astype(word.dtype)
    square, norm = squared_residual(rows.motor)
    first = _Carry(rows.motor, word, recent, start, jnp.zeros_like(word), begin(square, norm))

    def step(carry: _Carry, row: tuple[Array, Array]) -> tuple[_Carry, tuple[Array, Array, Array]]:
        number, region = row
        choice = _choose(carry, region, tables, regions, policy)
        moves = choice.reason == WalkReason.WALKING
        edge = jnp.where(moves, choice.edge, tables.stay)
        # Every index lies in the table by construction; the plain mode keeps a fill value off the state's path.
        operator = operators.at[rows.identity * stride + edge].get(mode="promise_in_bounds")
        motor = sandwich_kernel(operator, carry.motor)
        said = jnp.where(moves, tables.edge_tails[edge], carry.word)
        shifted = jnp.concatenate([said[:, None], carry.recent[:, :-1]], axis=1)
        square, norm = squared_residual(motor)
        after = _Carry(
            motor=motor,
            word=said,
            recent=jnp.where(jnp.broadcast_to(moves[:, None], shifted.shape), shifted, carry.recent),
            reason=choice.reason,
            length=carry.length + moves.astype(carry.length.dtype),
            seen=watch(carry.seen, number, square, norm),
        )
        return after, (jnp.where(moves, said, -1), jnp.where(moves, edge, -1), square)

    steps = rows.regions.shape[1]
    last, (tokens, edges, squares) = jax.lax.scan(step, first, (jnp.arange(1, steps + 1), rows.regions.T))
    return WalkResult(
        tokens=tokens.T,
        edges=edges.T,
        motor=last.motor,
        reason=jnp.where(last.reason == WalkReason.WALKING, WalkReason.BUDGET, last.reason),
        length=last.length,
        residuals=jnp.sqrt(jnp.concatenate([square[None], squares])).T,
        closure=finish(last.seen, _operator_norm(last.seen, operators)),
    )


def _operator_norm(seen: Watch, operators: Float[Array, "operators 16"]) -> Float[Array, "rows"]:
    """Largest coefficient norm of an operator, needed only to say why a state failed and computed only then."""

    def measure() -> Array:
        return jnp.sqrt(jnp.max(jnp.sum(operators * operators, axis=-1)))

    worst = jax.lax.cond(jnp.any(seen.first >= 0), measure, lambda: jnp.asarray(1.0, operators.dtype))
    return jnp.broadcast_to(worst, seen.first.shape)


walk_program = jax.jit(walk)


def _choose(
    carry: _Carry, region: Int[Array, "rows"], tables: WalkTables, regions: RegionTable, policy: WalkPolicy
) -> _Choice:
    """Judge the neighbours of each row's word and choose one, or say why there is none. Indices only."""
    point = carried_point(jax.lax.stop_gradient(carry.motor))
    slot = jnp.arange(tables.width, dtype=carry.word.dtype)
    shape = (carry.word.shape[0], tables.width)
    exists = jnp.broadcast_to(slot, shape) < jnp.broadcast_to(tables.degrees[carry.word][:, None], shape)
    edges = jnp.broadcast_to(tables.starts[carry.word][:, None], shape) + jnp.broadcast_to(slot, shape)
    edges = jnp.where(exists, edges, tables.stay)
    tails, kinds = tables.edge_tails[edges], tables.edge_relations[edges]
    rows_region = jnp.broadcast_to(region[:, None], shape)
    inside = exists & regions.words[rows_region, tails] & regions.relations[rows_region, kinds]
    repeated = jnp.any(tails[:, :, None] == carry.recent[:, None, :], axis=-1)
    fresh = inside & ~repeated
    turn = jnp.sum(tables.edge_rotors[edges] * regions.frames[region][:, None, :], axis=-1)
    framed = fresh & (jnp.abs(turn) >= policy.admissibility.frame_cosine)

    distance = _distance(tables.points[tails], point[:, None, :])
    ranked = jnp.where(framed, distance, jnp.inf)
    best = jnp.argmin(ranked, axis=1)
    nearest = jnp.take_along_axis(ranked, best[:, None], axis=1)[:, 0]
    others = jnp.where(jnp.broadcast_to(slot, shape) == best[:, None].astype(slot.dtype), jnp.inf, ranked)
    clear = jnp.min(others, axis=1) - nearest >= policy.admissibility.margin
    here = _distance(tables.points[carry.word], point)
    settled = (carry.length >= policy.min_steps) & (here + policy.settle_margin < nearest)

    reason = jnp.full_like(carry.reason, WalkReason.WALKING)
    for failed, code in (
        (settled, WalkReason.SETTLED),
        (~clear, WalkReason.AMBIGUOUS),
        (~jnp.isfinite(nearest), WalkReason.NOT_FINITE),
        (~jnp.any(framed, axis=1), WalkReason.OUTSIDE_FRAME),
        (~jnp.any(fresh, axis=1), WalkReason.ALL_RECENT),
        (~jnp.any(inside, axis=1), WalkReason.OUTSIDE_REGION),
        (~jnp.any(exists, axis=1), WalkReason.NO_NEIGHBOUR),
        (~jnp.all(jnp.isfinite(point), axis=1), WalkReason.NOT_FINITE),
        (carry.reason != WalkReason.WALKING, None),
    ):
        reason = jnp.where(failed, carry.reason if code is None else jnp.full_like(reason, code), reason)
    return _Choice(jnp.take_along_axis(edges, best[:, None], axis=1)[:, 0], reason)


def _distance(x: Float[Array, "*batch 3"], y: Float[Array, "*#batch 3"]) -> Float[Array, "*batch"]:
    """Exact Euclidean distance of points given by their coordinates (X . Y = -|x - y|^2 / 2)."""
    return jnp.sqrt(jnp.sum((x - jnp.broadcast_to(y, x.shape)) ** 2, axis=-1))
