"""Exact recall: the nearest entries of a table, ties by the lowest index, without sorting it.

The k nearest entries lie in the k blocks whose nearest entries come first: any other block is preceded by k blocks that
each hold an entry before all of its own. So one pass finds the first entry of every block, chunk by chunk in cache and
for all queries at once, and a second orders the entries of those blocks. float64 `lax.top_k` sorts the table on CPU.

The query's own motor comes before every other entry, however many share its point. The first pass finds it by a 64-bit
mark of the motor, the second compares coefficients; one block more than k is kept, so that a block that a foreign motor
with the same mark put forward displaces none.
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
    firsts = _block_firsts(table, query)
    block = min(BLOCK, table.eligible.shape[0])

    def second_pass(one: tuple[Query, Array]) -> tuple[Array, Array]:
        alone, first = one
        # Blocks in the order of the table make the lowest position among equals the lowest index.
        chosen = jnp.sort(_first_of(first, min(count + 1, first.shape[0])))
        places = (chosen[:, None] * block + jnp.arange(block)[None]).ravel()
        ranks = _ranks(_rows(table, places), alone, verified=True)
        order = _first_of(ranks, count)
        return places[order], ranks[order]

    return lax.map(second_pass, (query, firsts))


def _block_firsts(table: Table, query: Query) -> Float[Array, "queries blocks"]:
    """The lowest rank in every block, for each query."""
    entries = table.eligible.shape[0]
    chunk, block = min(CHUNK, entries), min(BLOCK, entries)

    def first_pass(_: None, start: Array) -> tuple[None, Array]:
        part = Table(
            lax.dynamic_slice_in_dim(table.coordinates, start, chunk, axis=1),
            lax.dynamic_slice_in_dim(table.motors, start, chunk, axis=0),
            lax.dynamic_slice_in_dim(table.marks, start, chunk, axis=0),
            lax.dynamic_slice_in_dim(table.eligible, start, chunk, axis=0),
        )
        ranks = jax.vmap(lambda alone: _ranks(part, alone, verified=False))(query)
        return None, jnp.min(ranks.reshape(ranks.shape[0], chunk // block, block), axis=-1)

    _, firsts = lax.scan(first_pass, None, jnp.arange(0, entries, chunk))
    return jnp.moveaxis(firsts, 0, 1).reshape(firsts.shape[1], entries // block)


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

    The bits of the coefficients, each times an odd number of its own, added up and mixed (the finaliser of Steele, Lea
    and Flood's SplitMix64, 2014).
    """
    leading = jnp.take_along_axis(motors, jnp.argmax(motors != 0.0, axis=-1, keepdims=True), axis=-1)
    canonical = jnp.where(leading < 0.0, -motors, motors) + 0.0
    bits = lax.bitcast_convert_type(canonical, jnp.uint64)
    odd = np.random.default_rng(41).integers(0, 2**63, 16, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mark = jnp.sum(bits * jnp.broadcast_to(jnp.asarray(odd), bits.shape), axis=-1)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mark = (mark ^ (mark >> jnp.uint64(shift))) * jnp.uint64(factor)
    return mark ^ (mark >> jnp.uint64(31))


def _first_of(ranks: Float[Array, "n"], count: int) -> Int[Array, "count"]:
    """Positions of the `count` lowest ranks, the lowest position first among equals: one pass for each."""

    def take(left: Array, _: None) -> tuple[Array, Array]:
        place = jnp.argmin(left)
        return left.at[place].set(jnp.inf), place

    return lax.scan(take, ranks, length=count)[1]
