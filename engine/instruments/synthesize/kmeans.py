"""Spherical k-means in JAX, keyed, for several numbers of themes at once.

Seeding after Arthur and Vassilvitskii (2007), "k-means++", with the distance 1 - cosine; iterations after Dhillon and
Modha (2001), "Concept decompositions for large sparse text data using clustering". The number of themes is chosen by
the simplified silhouette (distances to centroids instead of members; Hruschka et al. 2004).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64, Int

from engine.base.precision import require_float64

_ITERATIONS = 30


class Themes(NamedTuple):
    """A clustering: the theme of each row and how well the rows sit in their themes (simplified silhouette)."""

    labels: Int[np.ndarray, " rows"]
    silhouette: float


def unit_rows(vectors: Float64[np.ndarray, "rows dimensions"]) -> Float64[np.ndarray, "rows dimensions"]:
    """Return the rows scaled to length 1; each is first scaled by its largest entry. A zero row stays zero."""
    largest = np.max(np.abs(vectors), axis=1, keepdims=True, initial=0.0)
    scaled = np.divide(vectors, largest, out=np.zeros_like(vectors), where=largest > 0)
    norms = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.divide(scaled, norms, out=np.zeros_like(scaled), where=norms > 0)


def cluster(key: int, unit: Float64[np.ndarray, "rows dimensions"], counts: tuple[int, ...]) -> Themes:
    """Return the clustering of unit rows with the best silhouette among `counts` themes; ties go to the fewest.

    Equal keys and rows give equal themes. Labels are numbered by falling size, then by the theme's first row.
    """
    largest = max(counts)
    keys = jax.random.split(jax.random.key(key), len(counts))
    rows = require_float64(unit, "vectors")
    labels, silhouettes = _cluster_all(keys, rows, jnp.asarray(counts), largest)
    best = int(np.argmax(np.asarray(silhouettes)))
    return Themes(_renumber(np.asarray(labels[best])), float(silhouettes[best]))


@partial(jax.jit, static_argnums=3)
def _cluster_all(
    keys: Array, rows: Float64[Array, "rows dimensions"], counts: Int[Array, " choices"], largest: int
) -> tuple[Int[Array, "choices rows"], Float64[Array, " choices"]]:
    return jax.vmap(lambda key, count: _cluster(key, rows, count, largest))(keys, counts)


def _cluster(
    key: Array, rows: Float64[Array, "rows dimensions"], count: Int[Array, ""], largest: int
) -> tuple[Int[Array, " rows"], Float64[Array, ""]]:
    absent = jnp.where(jnp.arange(largest) < count, 0.0, -jnp.inf)

    def step(_: Array, centres: Float64[Array, "themes dimensions"]) -> Float64[Array, "themes dimensions"]:
        labels = jnp.argmax(rows @ centres.T + absent[None, :], axis=1)
        sums = jax.nn.one_hot(labels, largest, dtype=rows.dtype).T @ rows
        norms = jnp.linalg.norm(sums, axis=1, keepdims=True)
        return jnp.where(norms > 0, sums / jnp.where(norms > 0, norms, 1.0), centres)

    centres = jax.lax.fori_loop(0, _ITERATIONS, step, _seed(key, rows, largest))
    cosines = rows @ centres.T + absent[None, :]
    labels = jnp.argmax(cosines, axis=1)
    own = 1.0 - jnp.max(cosines, axis=1)
    others = jnp.where(jax.nn.one_hot(labels, largest, dtype=jnp.bool_), -jnp.inf, cosines)
    other = jnp.where(count > 1, 1.0 - jnp.max(others, axis=1), own)
    spread = jnp.maximum(jnp.maximum(own, other), jnp.finfo(rows.dtype).tiny)
    return labels, jnp.mean((other - own) / spread)


def _seed(key: Array, rows: Float64[Array, "rows dimensions"], largest: int) -> Float64[Array, "themes dimensions"]:
    """Pick `largest` rows, each with probability proportional to its squared distance from those already picked."""
    keys = jax.random.split(key, largest)
    first = jax.random.randint(keys[0], (), 0, rows.shape[0])

    def pick(number: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        centres, distance = state
        logits = 2.0 * jnp.log(jnp.maximum(distance, jnp.finfo(rows.dtype).tiny))
        chosen = rows[jax.random.categorical(keys[number], logits)]
        return centres.at[number].set(chosen), jnp.minimum(distance, 1.0 - rows @ chosen)

    centres = jnp.zeros((largest, rows.shape[1]), rows.dtype).at[0].set(rows[first])
    centres, _ = jax.lax.fori_loop(1, largest, pick, (centres, 1.0 - rows @ rows[first]))
    return centres


def _renumber(labels: Int[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
    names, first, sizes = np.unique(labels, return_index=True, return_counts=True)
    order = sorted(range(len(names)), key=lambda at: (-sizes[at], first[at]))
    number = {int(names[at]): rank for rank, at in enumerate(order)}
    return np.array([number[int(label)] for label in labels], dtype=np.int64)
