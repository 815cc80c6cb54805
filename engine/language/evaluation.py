"""How good is a geometry? Held-out relations against pairs that are not related, beside a rewired graph and an oracle.

Held-out relations are scored by an embedding that never saw them. The pairs they are told apart from have ends drawn in
proportion to degree: with uniform pairs the degree alone would score above one half, even on a random graph.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from numpy.random import Generator

from engine.language import placement, rigid
from engine.language.compile import embed_graph
from engine.language.geometry import area_under_curve, paired_motor_distances
from packs.errors import LanguagePackError

FOLDS = 5
NEGATIVES_PER_POSITIVE = 20
SWAPS_PER_EDGE = 20
"""Attempted swaps per edge of a rewiring: well past the few that mixing takes (Maslov and Sneppen 2002)."""

_T_975 = {4: 2.776, 9: 2.262, 14: 2.145, 19: 2.093, 24: 2.064, 49: 2.010}
"""97.5% points of Student's t by degrees of freedom."""

Pairs = Int[ndarray, "_ 2"]


@dataclass(frozen=True)
class Estimate:
    """A mean over folds with its 95% interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class FoldScores:
    """Scores of one fold: AUCs of held-out pairs, and each held-out pair's rank among the negatives (for types)."""

    point: float
    motor: float
    oracle: float
    held_out: Int[ndarray, " pairs"]
    point_ranks: Float[ndarray, " pairs"]
    motor_ranks: Float[ndarray, " pairs"]


def cross_validate(
    pairs: Pairs, domains: Int[ndarray, " words"], random: Generator, repeats: int = 5
) -> list[FoldScores]:
    """Return the scores of `repeats` times five folds over undirected, distinct pairs of related words.

    Raises `LanguagePackError` when there are too few pairs for five folds.
    """
    if len(pairs) < 2 * FOLDS:
        raise LanguagePackError(f"{len(pairs)} related pairs are too few for {FOLDS} folds")
    scores = []
    for _ in range(repeats):
        order = random.permutation(len(pairs))
        for fold in range(FOLDS):
            held_out = order[fold::FOLDS]
            scores.append(_score_fold(pairs, held_out, domains, random))
    return scores


def distinct_pairs(pairs: Pairs) -> Pairs:
    """Return the undirected pairs, each once, sorted."""
    return np.unique(np.sort(pairs, axis=1), axis=0)


def sample_unrelated(pairs: Pairs, count: int, random: Generator) -> Pairs:
    """Return `count` pairs of different words that are not related, both ends drawn in proportion to degree."""
    related = {(int(a), int(b)) for a, b in np.sort(pairs, axis=1)}
    ends = pairs.ravel()
    found: list[tuple[int, int]] = []
    for _ in range(100):
        drawn = np.sort(random.choice(ends, size=(2 * count, 2)), axis=1)
        found.extend((int(a), int(b)) for a, b in drawn if a != b and (int(a), int(b)) not in related)
        if len(found) >= count:
            return np.array(found[:count])
    raise LanguagePackError("nearly all words are related: there are no unrelated pairs to compare with")


def rewire(pairs: Pairs, random: Generator) -> Pairs:
    """Return a random graph with the same degrees: pairs of edges swap ends wherever that leaves a simple graph."""
    edges = [(int(a), int(b)) for a, b in pairs]
    present = set(edges)
    for _ in range(SWAPS_PER_EDGE * len(edges)):
        i, j = random.integers(len(edges), size=2)
        (a, b), (c, d) = edges[i], edges[j]
        if random.random() < 0.5:
            c, d = d, c
        first, second = (min(a, d), max(a, d)), (min(c, b), max(c, b))
        if a == d or c == b or first in present or second in present or first == second:
            continue
        present -= {edges[i], edges[j]}
        present |= {first, second}
        edges[i], edges[j] = first, second
    return np.array(sorted(edges))


def estimate(values: Sequence[float], folds: int = FOLDS) -> Estimate:
    """Return the mean with a 95% interval that allows for the folds' shared training data (Nadeau and Bengio 2003)."""
    array = np.asarray(values, dtype=np.float64)
    if len(array) < 2:
        return Estimate(float(array.mean()), -math.inf, math.inf)
    variance = array.var(ddof=1) * (1 / len(array) + 1 / (folds - 1))
    half = _T_975.get(len(array) - 1, 2.0) * math.sqrt(variance)
    return Estimate(float(array.mean()), float(array.mean() - half), float(array.mean() + half))


def cross_domain_share(pairs: Pairs, domains: Int[ndarray, " words"]) -> float:
    """Return the share of related pairs whose ends lie in different domains."""
    return float(np.mean(domains[pairs[:, 0]] != domains[pairs[:, 1]]))


def clustering(adjacency: Float[ndarray, "words words"]) -> float:
    """Return the mean local clustering coefficient over words of degree two or more (Watts and Strogatz 1998)."""
    degree = adjacency.sum(axis=1)
    triangles = np.einsum("ij,jk,ki->i", adjacency, adjacency, adjacency, optimize=True) / 2
    several = degree >= 2
    possible = degree[several] * (degree[several] - 1) / 2
    return float(np.mean(triangles[several] / possible)) if several.any() else 0.0


def _score_fold(
    pairs: Pairs, held_out: Int[ndarray, " pairs"], domains: Int[ndarray, " words"], random: Generator
) -> FoldScores:
    positive = pairs[held_out]
    negative = sample_unrelated(pairs, NEGATIVES_PER_POSITIVE * len(held_out), random)
    geometry = embed_graph(np.delete(pairs, held_out, axis=0), len(domains))
    coordinates = placement.snap_apart(geometry.coordinates)
    motors = rigid.motors_from_coordinates(coordinates)

    def by_point(chosen: Pairs) -> Float[ndarray, " pairs"]:
        return -np.linalg.norm(coordinates[chosen[:, 0], :3] - coordinates[chosen[:, 1], :3], axis=1)

    def by_motor(chosen: Pairs) -> Float[ndarray, " pairs"]:
        return -paired_motor_distances(motors[chosen[:, 0]], motors[chosen[:, 1]], geometry.rotation_weight)

    def by_domain(chosen: Pairs) -> Float[ndarray, " pairs"]:
        return (domains[chosen[:, 0]] == domains[chosen[:, 1]]).astype(np.float64)

    return FoldScores(
        point=area_under_curve(by_point(positive), by_point(negative)),
        motor=area_under_curve(by_motor(positive), by_motor(negative)),
        oracle=area_under_curve(by_domain(positive), by_domain(negative)),
        held_out=held_out,
        point_ranks=_ranks_among(by_point(positive), by_point(negative)),
        motor_ranks=_ranks_among(by_motor(positive), by_motor(negative)),
    )


def _ranks_among(positive: Float[ndarray, " n"], negative: Float[ndarray, " m"]) -> Float[ndarray, " n"]:
    """Return for each positive the share of negatives below it, ties half: their mean over a set is the set's AUC."""
    ordered = np.sort(negative)
    below = np.searchsorted(ordered, positive, side="left")
    not_above = np.searchsorted(ordered, positive, side="right")
    return (below + not_above) / (2 * len(ordered))


def mean_rank(scores: Sequence[FoldScores], chosen: Bool[ndarray, " all_pairs"], which: str) -> float:
    """Return the AUC of a subset of pairs, such as one relation type, over all folds: `which` is `point` or `motor`."""
    ranks = [getattr(score, f"{which}_ranks")[chosen[score.held_out]] for score in scores]
    together = np.concatenate(ranks)
    return float(together.mean()) if len(together) else math.nan
