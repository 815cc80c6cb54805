"""Six coordinates for each word from the relation graph: a spectral diffusion-map embedding, in NumPy, deterministic.

Random walks of up to eight steps are averaged with geometric weights; the logarithm of visit over stationary
probability is double-centred and its leading eigenvectors, scaled by the roots of their eigenvalues, are the
coordinates (Coifman and Lafon, "Diffusion maps", 2006; the logarithm as in Levy and Goldberg, "Neural word embedding as
implicit matrix factorization", 2014). Domains, glosses and spellings are never looked at.
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from packs.errors import LanguagePackError

DIMENSIONS = 6
"""Three for the translation, three for the rotation."""

STEPS = 8
DECAY = 0.8
VISIT_FLOOR = 1e-3
"""Ratio of visit to stationary probability below which two words count as equally far apart (never reached, say)."""

ORDER_PERTURBATION = 1e-6
"""Relative size of the ramp that splits equal eigenvalues of symmetric graphs by lexicon order."""

SMALLEST_EIGENVALUE = 1e-3
"""Share of the leading eigenvalue below which a direction counts as empty: noise must not be scaled up."""

MAX_DENSE_WORDS = 6_000
"""A dense eigenproblem beyond this takes minutes and gigabytes; larger vocabularies come in by projection."""


def diffusion_coordinates(adjacency: Float[ndarray, "words words"]) -> Float[ndarray, "words 6"]:
    """Return six coordinates per word, leading first, centred over the words that have a relation.

    Where the graph has fewer than six directions, the rotation repeats the translation's coordinates one place on, so
    that words turn as well as move and the order of words is never lost. A word without any relation gets zeros: the
    graph says nothing about it (see `placement`). A disconnected graph is embedded as a whole; words that cannot reach
    each other stand at the distance of `VISIT_FLOOR`.

    Raises:
      LanguagePackError: no relation at all, or more words than a dense eigenproblem should hold.
    """
    size = len(adjacency)
    if size > MAX_DENSE_WORDS:
        raise LanguagePackError(
            f"{size} words are too many to embed by their relations (at most {MAX_DENSE_WORDS}); build by projection"
        )
    linked = np.flatnonzero(adjacency.sum(axis=1) > 0)
    if len(linked) == 0:
        raise LanguagePackError("no word has a relation, so that the graph gives no geometry")
    coordinates = np.zeros((size, DIMENSIONS))
    coordinates[linked] = _leading_eigenvectors(_centred_log_visits(adjacency[np.ix_(linked, linked)]))
    return coordinates


def _centred_log_visits(adjacency: Float[ndarray, "n n"]) -> Float[ndarray, "n n"]:
    degree = adjacency.sum(axis=1)
    step = adjacency / degree[:, None]
    reached, visits, weight, total = np.eye(len(adjacency)), np.zeros_like(adjacency), 1.0, 0.0
    for _ in range(STEPS):
        reached = reached @ step
        visits += weight * reached
        total += weight
        weight *= DECAY
    ratio = visits / total / (degree / degree.sum())
    log_ratio = np.log(np.maximum(ratio, VISIT_FLOOR))
    symmetric = (log_ratio + log_ratio.T) / 2
    mean = symmetric.mean(axis=0)
    return symmetric - mean[None, :] - mean[:, None] + symmetric.mean()


def _leading_eigenvectors(matrix: Float[ndarray, "n n"]) -> Float[ndarray, "n 6"]:
    size = len(matrix)
    ramp = np.linspace(-1.0, 1.0, size) if size > 1 else np.zeros(size)
    scale = float(np.abs(matrix).sum(axis=1).max())
    values, vectors = np.linalg.eigh(matrix + np.diag(ORDER_PERTURBATION * scale * ramp))
    order = np.argsort(-values, kind="stable")[:DIMENSIONS]
    order = order[values[order] > SMALLEST_EIGENVALUE * values[order[0]]]
    leading = np.zeros((size, DIMENSIONS))
    leading[:, : len(order)] = fix_signs(vectors[:, order]) * np.sqrt(values[order])
    for column in range(max(len(order), 3), DIMENSIONS):
        leading[:, column] = leading[:, (column + 1) % 3]
    return leading


def fix_signs(vectors: Float[ndarray, "n k"]) -> Float[ndarray, "n k"]:
    """Return the columns with their largest entry positive; among entries equal to 1e-8 the first decides."""
    magnitude = np.abs(vectors)
    leader = np.argmax(magnitude >= magnitude.max(axis=0) * (1 - 1e-8), axis=0)
    signs = np.sign(vectors[leader, np.arange(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1.0, signs)[None, :]
