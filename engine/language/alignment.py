"""Draw aligned words towards their counterparts in another language, along the geodesic of the motor group.

The embedding of a graph is defined up to an orthogonal map of its coordinates, so the pack is first turned as a whole
(Procrustes, Schönemann 1966) to fit its anchors, weighted by strength; that moves no word relative to another. Then
each aligned word goes `strength * PULL` of the way: W <- W exp(t log(reverse(W) W_other)).
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from engine.algebra import slerp
from engine.language import rigid
from packs.language.model import Alignment

PULL = 0.5
"""Share of the way at strength 1: a whole pull would overwrite the word with its counterpart."""


def pull_towards_anchors(
    coordinates: Float[ndarray, "words 6"],
    lemmas: Sequence[str],
    edges: Sequence[Alignment],
) -> Float[ndarray, "words 6"]:
    """Return the coordinates after the fit and the pull; unchanged when there is no alignment."""
    if not edges:
        return coordinates
    number_of = {lemma: number for number, lemma in enumerate(lemmas)}
    words = np.array([number_of[edge.lemma] for edge in edges], dtype=np.int64)
    targets = np.array([edge.target for edge in edges], dtype=np.float64)
    strength = np.array([edge.strength for edge in edges], dtype=np.float64)
    fitted = fit_orthogonal(coordinates, words, targets, strength)
    return pull(fitted, words, targets, strength)


def fit_orthogonal(
    coordinates: Float[ndarray, "words 6"],
    words: Int[ndarray, " edges"],
    targets: Float[ndarray, "edges 6"],
    strength: Float[ndarray, " edges"],
) -> Float[ndarray, "words 6"]:
    """Return the coordinates with translation and rotation halves each turned (or mirrored) to fit the targets best."""
    fitted = coordinates.copy()
    for half in (slice(0, 3), slice(3, 6)):
        cross = (coordinates[words, half] * strength[:, None]).T @ targets[:, half]
        left, _, right = np.linalg.svd(cross)
        fitted[:, half] = coordinates[:, half] @ (left @ right)
    return fitted


def pull(
    coordinates: Float[ndarray, "words 6"],
    words: Int[ndarray, " edges"],
    targets: Float[ndarray, "edges 6"],
    strength: Float[ndarray, " edges"],
) -> Float[ndarray, "words 6"]:
    """Return the coordinates with each aligned word drawn towards its targets.

    A word aligned to several languages is drawn to each in turn, in the order of the edges.
    """
    pulled = coordinates.copy()
    for batch in _one_edge_per_word(words):
        start = rigid.motors_from_coordinates(pulled[words[batch]])
        end = rigid.motors_from_coordinates(targets[batch])
        drawn = slerp(jnp.asarray(start), jnp.asarray(end), jnp.asarray(PULL * strength[batch]))
        pulled[words[batch]] = rigid.coordinates_from_motors(np.asarray(drawn))
    return pulled


def _one_edge_per_word(words: Int[ndarray, " edges"]) -> list[Int[ndarray, " batch"]]:
    """Return edge numbers in groups: the first edge of every word, then the second, and so on."""
    turn = np.array([int(np.sum(words[:number] == word)) for number, word in enumerate(words)])
    return [np.flatnonzero(turn == number) for number in range(int(turn.max()) + 1)]
