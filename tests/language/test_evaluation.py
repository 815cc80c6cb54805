"""The measures themselves: AUC by its definition, rewiring keeps degrees, chance scores chance, structure does not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.language import evaluation
from engine.language.geometry import area_under_curve
from engine.language.graph import adjacency_matrix
from packs.errors import LanguagePackError

SCORES = st.lists(st.integers(0, 5), min_size=1, max_size=12)


@given(SCORES, SCORES)
def test_auc_is_the_probability_of_the_right_order(positive: list[int], negative: list[int]) -> None:
    wins = sum((p > n) + 0.5 * (p == n) for p in positive for n in negative)
    expected = wins / (len(positive) * len(negative))
    assert area_under_curve(np.array(positive, float), np.array(negative, float)) == pytest.approx(expected, abs=1e-12)


def clusters(random: np.random.Generator, count: int = 5, size: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs and domains of a graph of sparse clusters joined in a ring."""
    domains = np.repeat(np.arange(count), size)
    pairs = [(c * size, ((c + 1) % count) * size + 1) for c in range(count)]
    for c in range(count):
        inside = [(c * size + a, c * size + b) for a in range(size) for b in range(a)]
        pairs += [inside[k] for k in random.choice(len(inside), size=30, replace=False)]
    return evaluation.distinct_pairs(np.array(pairs)), domains


def test_rewiring_keeps_every_degree_and_loses_the_clusters() -> None:
    random = np.random.default_rng(4)
    pairs, domains = clusters(random)
    rewired = evaluation.rewire(pairs, random)
    size = len(domains)
    np.testing.assert_array_equal(
        np.bincount(rewired.ravel(), minlength=size), np.bincount(pairs.ravel(), minlength=size)
    )
    assert len(evaluation.distinct_pairs(rewired)) == len(pairs)
    assert (rewired[:, 0] != rewired[:, 1]).all()
    assert evaluation.cross_domain_share(pairs, domains) < 0.1
    assert evaluation.cross_domain_share(rewired, domains) > 0.6


def test_structure_is_found_and_chance_is_not() -> None:
    random = np.random.default_rng(6)
    pairs, domains = clusters(random)
    found = evaluation.cross_validate(pairs, domains, random, repeats=1)
    assert np.mean([score.point for score in found]) > 0.85
    assert np.mean([score.motor for score in found]) > 0.85
    chance = [
        score
        for _ in range(4)
        for score in evaluation.cross_validate(evaluation.rewire(pairs, random), domains, random, repeats=1)
    ]
    assert 0.38 < np.mean([score.motor for score in chance]) < 0.58
    everything = np.ones(len(pairs), dtype=bool)
    assert evaluation.mean_rank(found, everything, "motor") == pytest.approx(
        np.average([s.motor for s in found], weights=[len(s.held_out) for s in found]), abs=1e-12
    )


def test_unrelated_pairs_are_unrelated() -> None:
    random = np.random.default_rng(8)
    pairs, _ = clusters(random)
    drawn = evaluation.sample_unrelated(pairs, 500, random)
    related = {tuple(pair) for pair in pairs.tolist()}
    assert len(drawn) == 500
    assert not related & {tuple(pair) for pair in drawn.tolist()}
    complete = np.array([(a, b) for b in range(5) for a in range(b)])
    with pytest.raises(LanguagePackError, match="no unrelated pairs"):
        evaluation.sample_unrelated(complete, 10, random)


def test_too_few_pairs_for_the_folds_are_refused() -> None:
    with pytest.raises(LanguagePackError, match="too few"):
        evaluation.cross_validate(np.array([(0, 1), (1, 2)]), np.zeros(3, int), np.random.default_rng(0))


def test_intervals_widen_with_the_spread() -> None:
    narrow, wide = evaluation.estimate([0.80, 0.81, 0.79, 0.80, 0.80]), evaluation.estimate([0.6, 1.0, 0.8, 0.7, 0.9])
    assert (narrow.mean, wide.mean) == (pytest.approx(0.8), pytest.approx(0.8))
    assert narrow.low < 0.8 < narrow.high
    assert wide.high - wide.low > 5 * (narrow.high - narrow.low)


def test_clustering_of_known_graphs() -> None:
    triangle = np.array([(0, 1), (1, 2), (0, 2)])
    assert evaluation.clustering(adjacency_matrix(triangle, 3)) == pytest.approx(1.0)
    assert evaluation.clustering(adjacency_matrix(np.array([(0, 1), (1, 2), (2, 3), (0, 3)]), 4)) == 0.0
    assert evaluation.clustering(adjacency_matrix(np.array([(0, 1)]), 2)) == 0.0
