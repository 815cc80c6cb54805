"""Exact recall: the nearest entries of a table, ties by the lowest index, without sorting it.

The k nearest entries lie in the k blocks whose nearest entries come first: any other block is preceded by k blocks that
each hold an entry before all of its own. So one pass finds the first entry of every block, chunk by chunk in cache and
for all queries at once, and a second orders the entries of those blocks. float64 `lax.top_k` sorts the table on CPU.

The query's own motor comes before every other entry, however many share its point. The first pass finds it by a 64-bit
mark of the motor, the second compares coefficients; one block more than k is kept, so that a block that a foreign motor
with the same mark put forward displaces none. Where several did, the first pass is repeated with all coefficients.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt64

BLOCK = 256
"""Entries per block. Of a million entries the second pass sees k·256, the first keeps 4,000 numbers."""

CHUNK = 32 * BLOCK
"""Entries that the first pass reads at a time: 200 kB of coordinates, within a core's cache."""

MANY = 4
"""Queries from which a chunk is read entry by entry of all its blocks at once, with the first of each kept in cache."""

AT_ONCE = 16
"""Entries of each block that are compared in one kernel, where there are many queries."""

SELF_MATCH = -1.0
"""Rank of an entry that is the query itself: before every squared distance, which is at least 0."""

ABSENT = float(np.finfo(np.float64).max)
"""Rank of what cannot be recalled: after every other, but before what has been taken (infinity)."""


class Table(eqx.Module):
    """What a recall reads: coordinates by columns, motors by rows with their marks, which entries may be recalled."""

    coordinates: Float[Array, "3 entries"]
    motors: Float[Array, "entries 16"]
    marks: UInt64[Array, "entries"]
    eligible: Bool[Array, "entries"]


class Query(eqx.Module):
    """One query or a batch: points, and motors with their marks if they have any."""

    point: Float[Array, "*batch 3"]
    motor: Float[Array, "*batch 16"] | None = None
    mark: UInt64[Array, "*batch 1"] | None = None


def padded_capacity(capacity: int) -> int:
    """The capacity rounded up so that blocks and chunks divide it."""
    unit = 1 if capacity <= BLOCK else BLOCK if capacity <= CHUNK else CHUNK
    return -(-capacity // unit) * unit


def nearest(table: Table, query: Query, count: int) -> tuple[Int[Array, "queries k"], Float[Array, "queries k"]]:
    """Indices and ranks of the first `count` entries for each query of a batch (queries, ...).

    The order is: the query itself, then by squared distance, ties by the lowest index. A rank is the squared distance,
    `SELF_MATCH` or `ABSENT`. Needs 1 <= `count` <= entries, and entries from `padded_capacity`.
    """
    found = _entries_of(table, query, _block_firsts(table, query, verified=False), count)
    if query.motor is None:
        return found.index, found.rank
    # Marks are a shortcut for what nearly never differs. Where they misled, every coefficient of every entry is read.
    found = lax.cond(
        jnp.any(found.foreign > 1),
        lambda: _entries_of(table, query, _block_firsts(table, query, verified=True), count),
        lambda: found,
    )
    return found.index, found.rank


class _Found(eqx.Module):
    index: Int[Array, "*queries k"]
    rank: Float[Array, "*queries k"]
    foreign: Int[Array, "*queries"]
    """Blocks that were read for a motor that has the query's mark and is another."""


def _entries_of(table: Table, query: Query, firsts: Float[Array, "queries blocks"], count: int) -> _Found:
    """The second pass: the first `count` entries of the blocks whose first entries come first."""
    block = min(BLOCK, table.eligible.shape[0])

    def for_one(one: tuple[Query, Array]) -> _Found:
        alone, first = one
        # Blocks in the order of the table make the lowest position among equals the lowest index.
        chosen = jnp.sort(_first_of(first, min(count + 1, first.shape[0])))
        places = (chosen[:, None] * block + jnp.arange(block)[None]).ravel()
        ranks = _ranks(_rows(table, places), alone, verified=True)
        order = _first_of(ranks, count)
        marked = first[chosen] == SELF_MATCH
        own = jnp.any(ranks.reshape(chosen.shape[0], block) == SELF_MATCH, axis=-1)
        return _Found(places[order], ranks[order], jnp.sum(marked & ~own))

    return lax.map(for_one, (query, firsts))


def _block_firsts(table: Table, query: Query, *, verified: bool) -> Float[Array, "queries blocks"]:
    """The lowest rank in every block, for each query; own motors by their mark, or `verified` by every coefficient."""
    entries = table.eligible.shape[0]
    chunk, block = min(CHUNK, entries), min(BLOCK, entries)
    many = query.point.shape[0] >= MANY and chunk == CHUNK and not verified

    def first_pass(_: None, start: Array) -> tuple[None, Array]:
        part = Table(
            lax.dynamic_slice_in_dim(table.coordinates, start, chunk, axis=1),
            lax.dynamic_slice_in_dim(table.motors, start, chunk, axis=0),
            lax.dynamic_slice_in_dim(table.marks, start, chunk, axis=0),
            lax.dynamic_slice_in_dim(table.eligible, start, chunk, axis=0),
        )
        return None, _firsts_for_many(part, query, block) if many else _firsts_for_few(part, query, block, verified)

    _, firsts = lax.scan(first_pass, None, jnp.arange(0, entries, chunk))
    return jnp.moveaxis(firsts, 0, 1).reshape(firsts.shape[1], entries // block)


def _firsts_for_few(part: Table, query: Query, block: int, verified: bool) -> Float[Array, "queries blocks"]:
    """Every rank of a chunk, then the lowest of each block."""
    ranks = jax.vmap(lambda alone: _ranks(part, alone, verified=verified))(query)
    return jnp.min(ranks.reshape(ranks.shape[0], part.eligible.shape[0] // block, block), axis=-1)


def _firsts_for_many(part: Table, query: Query, block: int) -> Float[Array, "queries blocks"]:
    """The lowest ranks so far of all blocks and queries, against the next few entries of every block.

    Ranks are never written down: the numbers that are kept, queries x blocks, stay in cache, and each entry that is
    read serves all queries. The same numbers as `_firsts_for_few`, since the lowest of a block needs no order.
    """
    # At infinity, or NaN from there, what cannot be recalled is before nothing.
    coordinates = jnp.where(part.eligible, part.coordinates, jnp.inf)
    entries = (coordinates, part.marks[None], part.eligible[None])
    rows = jax.tree.map(lambda value: _by_entry(value, block), entries)
    x, y, z = (query.point[:, axis, None] for axis in range(3))

    def step(lowest: Array, row: tuple[Array, Array, Array]) -> tuple[Array, None]:
        for place, mark, eligible in zip(*row, strict=True):
            across, along, up = place[0][None] - x, place[1][None] - y, place[2][None] - z
            square = across * across + along * along + up * up
            lowest = jnp.where(square < lowest, square, lowest)
            if query.mark is not None:
                lowest = jnp.where(eligible & (mark == query.mark), SELF_MATCH, lowest)
        return lowest, None

    absent = jnp.full((query.point.shape[0], part.eligible.shape[0] // block), ABSENT)
    return lax.scan(step, absent, rows)[0]


def _by_entry(values: Array, block: int) -> Array:
    """Rows of a chunk (n, entries) as (steps, AT_ONCE, n, blocks): the same entry of every block side by side."""
    return jnp.transpose(values.reshape(values.shape[0], -1, block // AT_ONCE, AT_ONCE), (2, 3, 0, 1))


def _rows(table: Table, places: Int[Array, "n"]) -> Table:
    return Table(table.coordinates[:, places], table.motors[places], table.marks[places], table.eligible[places])


def _ranks(table: Table, query: Query, *, verified: bool) -> Float[Array, "entries"]:
    """Ranks of the entries of a table for one query; own motors by their mark, or `verified` by every coefficient."""
    difference = table.coordinates - query.point[:, None]
    square = difference[0] * difference[0] + difference[1] * difference[1] + difference[2] * difference[2]
    # Written so that NaN is absent.
    ranks = jnp.where(table.eligible & (square < ABSENT), square, ABSENT)
    if query.motor is None or query.mark is None:
        return ranks
    own = is_same_motion(table.motors, query.motor) if verified else table.marks == query.mark
    return jnp.where(table.eligible & own, SELF_MATCH, ranks)


def is_same_motion(motors: Float[Array, "entries 16"], motor: Float[Array, "16"]) -> Bool[Array, "entries"]:
    """Whether a motor or its negative equals `motor` in every coefficient."""
    return jnp.all(motors == motor[None], axis=-1) | jnp.all(motors == -motor[None], axis=-1)


def motor_marks(motors: Float[Array, "*batch 16"]) -> UInt64[Array, "*batch"]:
    """A 64-bit mark of each motor, the same for its negative and for either sign of a zero.

    The bits of each coefficient, mixed with a number of its place, added up and mixed again (the finaliser of Steele,
    Lea and Flood's SplitMix64, 2014). Without the first mixing, coefficients whose low bits are all zero, such as
    halves and quarters, would leave the low bits of a sum empty.
    """
    leading = jnp.take_along_axis(motors, jnp.argmax(motors != 0.0, axis=-1, keepdims=True), axis=-1)
    canonical = jnp.where(leading < 0.0, -motors, motors) + 0.0
    bits = lax.bitcast_convert_type(canonical, jnp.uint64)
    places = np.random.default_rng(41).integers(0, 2**63, 16, dtype=np.uint64)
    return _mixed(jnp.sum(_mixed(bits ^ jnp.broadcast_to(jnp.asarray(places), bits.shape)), axis=-1))


def _mixed(bits: UInt64[Array, "*any"]) -> UInt64[Array, "*any"]:
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> jnp.uint64(shift))) * jnp.uint64(factor)
    return bits ^ (bits >> jnp.uint64(31))


def _first_of(ranks: Float[Array, "n"], count: int) -> Int[Array, "count"]:
    """Positions of the `count` lowest ranks, the lowest position first among equals: one pass for each."""

    def take(left: Array, _: None) -> tuple[Array, Array]:
        place = jnp.argmin(left)
        return left.at[place].set(jnp.inf), place

    return lax.scan(take, ranks, length=count)[1]
