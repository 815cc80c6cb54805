"""Blocks of lanes: a batch of coefficient vectors as an array of structures of arrays.

With coefficients last, every product would mix neighbours in memory. In blocks (..., blocks, coefficients, lanes) the
lanes are neighbours, all do the same arithmetic, and one block of every operand stays in the first-level cache.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

LANES = 32
"""Lanes of a full block: 16 coefficients of it are 4 KiB, so that three operands share a first-level cache."""


def lanes_for(batch: tuple[int, ...], most: int = LANES) -> int:
    """Lanes of each block for a batch: all of a small one, `most` otherwise."""
    return min(max(math.prod(batch), 1), most)


def to_blocks(
    x: Float[Array, "..."], lead: int = 0, fill: NDArray | None = None, most: int = LANES
) -> Float[Array, "*lead blocks n lanes"]:
    """(*lead, *batch, n) as (*lead, blocks, n, lanes); the last block is filled up with `fill` (n) or zeros.

    A full block has `most` lanes.
    """
    head, batch, width = x.shape[:lead], x.shape[lead:-1], x.shape[-1]
    total, lanes = math.prod(batch), lanes_for(batch, most)
    flat = x.reshape(*head, total, width)
    missing = -total % lanes
    if missing or not total:
        row = np.zeros(width) if fill is None else fill
        rows = jnp.broadcast_to(row.reshape((1,) * (lead + 1) + (width,)), (*head, missing or lanes, width))
        flat = jnp.concatenate([flat, rows], axis=lead)
    return jnp.swapaxes(flat.reshape(*head, -1, lanes, width), -1, -2)


def from_blocks(x: Float[Array, "*lead blocks n lanes"], batch: tuple[int, ...]) -> Float[Array, "..."]:
    """The inverse of `to_blocks`: (*lead, blocks, n, lanes) to (*lead, *batch, n)."""
    head, width = x.shape[:-3], x.shape[-2]
    flat = jnp.swapaxes(x, -1, -2).reshape(*head, -1, width)
    return flat[..., : math.prod(batch), :].reshape(*head, *batch, width)


def in_full_blocks(program: Callable[..., Array], arrays: tuple[Array, ...], batch: tuple[int, ...]) -> Array:
    """`program(*arrays)` for arrays (*batch, ...).

    A compiler may fuse multiplications and additions differently for one lane than for a block of them. A small batch
    that is known now is therefore repeated up to `LANES` rows, so that a single case equals its row of a batch to the
    last bit, and one compiled program serves all small batches. What is being traced is left as it is.
    """
    total = math.prod(batch)
    if not 0 < total < LANES or any(isinstance(array, jax.core.Tracer) for array in arrays):
        return program(*arrays)
    rows = np.minimum(np.arange(LANES), total - 1)
    full = [array.reshape(total, *array.shape[len(batch) :])[rows] for array in arrays]
    result = program(*full)[:total]
    return result.reshape(*batch, *result.shape[1:])
