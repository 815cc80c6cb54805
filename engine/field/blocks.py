"""Propagation many steps at a time: by versors that all samples share, or by few samples' own.

The versors of a block of steps are composed, in order, to the versor of each prefix of the block. The prefixes act on
the state that enters the block, all at once, and give the states after each of its steps, of which the closure is
measured, and the last of which enters the next block. So a few samples fill lanes that a step alone would leave empty.

A versor that is shared acts on every sample by the same matrix. For many samples each prefix becomes the 16 x 16 matrix
of its sandwich in the resident basis (engine.algebra.resident), and one matrix product gives the states of a block. It
runs at the arithmetic peak, where a step that is written out is bound by the loop around it.

No state is skipped and none is repaired: the states are those of `propagate_parallel` within a block, and those of the
step-by-step form between blocks. Rounding goes with the norm of the composed versors of one block
(docs/decisions/0025-shared-versors-in-blocks.md). Translators and similarities keep their exact zero, since composing
and applying them multiplies it by numbers and adds zeros.

Arrays are entries first, (16, rows): a row of the matrix is an entry, a column a sample.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from engine.algebra.lanes import compose, squares_of_entries, step_lanes
from engine.algebra.resident import enter, leave
from engine.field.closure import Watch, begin, watch_all

BLOCK = 32
"""Steps of a block: states of a block and of a chunk of samples, 2 MiB, stay in a second-level cache."""

BLOCKS = range(40, 19, -1)
"""Steps of a block where they divide the number of steps, the first that does; otherwise some steps are left over."""

SUPERBLOCK = 1_024
"""Steps whose matrices are made at once: 2 MiB, whatever the number of steps."""

CHUNK = 512
"""Samples that take the steps of a superblock together."""

AT_ONCE = 384
"""From so many samples on, each block's residuals are reduced at once; below, those of a superblock are."""

FEW = 16
"""Below so many samples the matrices, 16 columns each, cost more than they save: prefixes act as versors."""

Columns = Float[Array, "16 rows"]
Chunk = tuple[Columns, Watch]
State = tuple[Float[Array, "chunks 16 rows"], Watch]
Versors = Float[Array, "steps _ 16"]
Prefixes = Float[Array, "blocks 4 2 2 within _"]


def move_in_blocks(motor: Float[Array, "*batch 16"], versors: Versors) -> tuple[Float[Array, "*batch 16"], Watch]:
    """The states (*batch, 16) after all versors, and what was seen of each state on the way, (*batch).

    `versors` are (steps, 1, 16) for all samples, or (steps, samples, 16) for at most CHUNK samples, in their order.
    """
    batch, count = motor.shape[:-1], math.prod(motor.shape[:-1])
    chunks, size = _chunks(count)
    columns = enter(motor.reshape(count, 16).T)
    columns = jnp.pad(columns, ((0, 0), (0, chunks * size - count))).reshape(16, chunks, size).swapaxes(0, 1)
    state = columns, begin(*squares_of_entries(columns))
    state = _all_steps(state, versors)
    moved = leave(jnp.swapaxes(state[0], 0, 1).reshape(16, -1))[:, :count].T
    seen = jax.tree.map(lambda leaf: leaf.ravel()[:count].reshape(batch), state[1])
    return moved.reshape(*batch, 16), seen


def block_for(steps: int) -> int:
    """Steps of a block when `steps` are to be made."""
    return next((block for block in BLOCKS if steps % block == 0), BLOCK)


def _chunks(count: int) -> tuple[int, int]:
    """Number of chunks and samples of each; the last is filled up with zeros."""
    chunks = max(-(-count // CHUNK), 1)
    size = max(-(-count // chunks), 1)
    return chunks, size if chunks == 1 else -(-size // 8) * 8


def _all_steps(state: State, versors: Versors) -> State:
    """Whole superblocks in a loop, then the blocks that are left, then the steps that are left."""
    steps = versors.shape[0]
    block = block_for(steps)
    long = SUPERBLOCK // block * block
    repeated, whole = steps // long, steps // block * block
    if repeated:

        def step(carry: State, row: tuple[Int[Array, ""], Array]) -> tuple[State, None]:
            return _superblock(carry, *row, block), None

        numbers = jnp.arange(repeated) * long
        state, _ = lax.scan(
            step, state, (numbers, versors[: repeated * long].reshape(repeated, long, *versors.shape[1:]))
        )
    if whole > repeated * long:
        state = _superblock(state, jnp.asarray(repeated * long), versors[repeated * long : whole], block)
    if steps > whole:
        state = _superblock(state, jnp.asarray(whole), versors[whole:], steps - whole)
    return state


def _superblock(state: State, start: Int[Array, ""], versors: Versors, block: int) -> State:
    """All chunks moved by blocks of `block` versors; `start` steps were made before."""
    prefixes = _prefixes(versors, block)
    if state[0].shape[-1] < FEW or versors.shape[1] > 1:
        return _lifted(lambda chunk: _move_few(chunk, start, prefixes), state)
    matrices = _matrices(prefixes)
    return _lifted(lambda chunk: _move_many(chunk, start, matrices, block), state)


def _lifted(move: Callable[[Chunk], Chunk], state: State) -> State:
    """`move` of each chunk, without a loop around a single one."""
    if state[0].shape[0] > 1:
        return lax.map(move, state)
    return jax.tree.map(lambda leaf: leaf[None], move(jax.tree.map(lambda leaf: leaf[0], state)))


def _move_many(chunk: Chunk, start: Int[Array, ""], matrices: Float[Array, "blocks entries 16"], block: int) -> Chunk:
    rows = chunk[0].shape[-1]

    def states_of(motor: Columns, matrix: Float[Array, "entries 16"]) -> Float[Array, "within 16 rows"]:
        states = lax.dot_general(matrix, motor, (((1,), (0,)), ((), ())), precision=lax.Precision.HIGHEST)
        return states.reshape(block, 16, rows)

    def look(carry: Chunk, row: tuple[Int[Array, ""], Array]) -> tuple[Chunk, None]:
        (motor, seen), (number, matrix) = carry, row
        states = states_of(motor, matrix)
        return (states[-1], watch_all(seen, number, *squares_of_entries(states))), None

    def keep(motor: Columns, matrix: Array) -> tuple[Columns, tuple[Array, Array]]:
        states = states_of(motor, matrix)
        return states[-1], squares_of_entries(states)

    if rows >= AT_ONCE:
        return lax.scan(look, chunk, (start + 1 + jnp.arange(matrices.shape[0]) * block, matrices))[0]
    motor, squares = lax.scan(keep, chunk[0], matrices)
    return motor, watch_all(chunk[1], start + 1, *(square.reshape(-1, rows) for square in squares))


def _move_few(chunk: Chunk, start: Int[Array, ""], prefixes: Prefixes) -> Chunk:
    motor, seen = chunk
    rows, block = motor.shape[-1], prefixes.shape[-2]
    shape, lanes = (4, 2, 2, block, rows), (4, 2, 2, block * rows)

    def step(motor: Columns, versors: Float[Array, "4 2 2 within _"]) -> tuple[Columns, Float[Array, "within 16 rows"]]:
        spread = jnp.broadcast_to(versors, shape).reshape(lanes)
        motors = jnp.broadcast_to(motor.reshape(4, 2, 2, 1, rows), shape).reshape(lanes)
        states = jnp.swapaxes(step_lanes(spread, motors).reshape(16, block, rows), 0, 1)
        return states[-1], states

    motor, states = lax.scan(step, motor, prefixes)
    squares = squares_of_entries(states)
    return motor, watch_all(seen, start + 1, *(square.reshape(-1, rows) for square in squares))


def _prefixes(versors: Versors, block: int) -> Prefixes:
    """The versors of steps 1, 1 and 2, ..., 1 to `block` of each block."""
    rows = versors.shape[1]
    blocks = versors.shape[0] // block
    entries = enter(versors.reshape(-1, 16).T).reshape(16, blocks, block, rows)
    steps = jnp.moveaxis(entries, 2, 0).reshape(block, 4, 2, 2, blocks * rows)

    def step(earlier: Array, later: Array) -> tuple[Array, Array]:
        composed = compose(later, earlier)
        return composed, composed

    _, rest = lax.scan(step, steps[0], steps[1:])
    prefixes = jnp.concatenate([steps[:1], rest]).reshape(block, 4, 2, 2, blocks, rows)
    return jnp.transpose(prefixes, (4, 1, 2, 3, 0, 5))


def _matrices(prefixes: Prefixes) -> Float[Array, "blocks entries 16"]:
    """The matrix of each prefix's sandwich, one below the other: what it makes of 16 unit states, in blocks of 16."""
    blocks, block = prefixes.shape[0], prefixes.shape[-2]
    shape = (blocks, block, 4, 2, 2, 16)
    versors = jnp.broadcast_to(jnp.moveaxis(prefixes, -2, 1), shape)
    units = jnp.broadcast_to(np.eye(16).reshape(4, 2, 2, 16), shape)
    return step_lanes(versors, units).reshape(blocks, block * 16, 16)
