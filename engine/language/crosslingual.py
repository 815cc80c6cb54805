"""How well alignment draws two languages together, measured on pairs it was and was not told about."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.random import Generator

from engine.language import rigid
from engine.language.alignment import fit_orthogonal, pull
from engine.language.compile import pack_geometry
from engine.language.evaluation import FOLDS
from engine.language.geometry import area_under_curve, motor_distances
from engine.language.vocabulary import Vocabulary
from packs.language.model import LanguagePack


@dataclass(frozen=True)
class CrossLingualScores:
    """AUCs of aligned against unaligned pairs: before anything, after the common turn, after the pull, and held out.

    `held_out` are the scores of folds whose pairs neither the turn nor the pull has seen; `strength_correlation` is
    the rank correlation of strength with nearness after the pull.
    """

    raw: float
    fitted: float
    pulled: float
    held_out: tuple[float, ...]
    strength_correlation: float


def score_alignment(pack: LanguagePack, other: Vocabulary, random: Generator, repeats: int = 5) -> CrossLingualScores:
    """Return the scores of the alignment of `pack` to the language of `other`; it has at least ten edges to it."""
    edges = [edge for edge in pack.alignment if edge.language == other.language]
    here = {lemma: number for number, lemma in enumerate(pack.lemmas)}
    there = {lemma: number for number, lemma in enumerate(other.lemmas)}
    pairs = np.array([(here[edge.lemma], there[edge.other]) for edge in edges])
    strength = np.array([edge.strength for edge in edges])
    geometry = pack_geometry(pack)
    targets = np.asarray(other.coordinates)[pairs[:, 1]]

    def draw(train: Int[ndarray, " train"], pulling: bool) -> Float[ndarray, "words 6"]:
        words = pairs[train, 0]
        fitted = fit_orthogonal(geometry.coordinates, words, targets[train], strength[train])
        return pull(fitted, words, targets[train], strength[train]) if pulling else fitted

    def score(coordinates: Float[ndarray, "words 6"], test: Int[ndarray, " test"]) -> float:
        distances = _distances(coordinates, pairs[test, 0], other, geometry.rotation_weight)
        return _aligned_auc(distances, pairs[test, 1])

    everything = np.arange(len(pairs))
    held_out = []
    for _ in range(repeats):
        order = random.permutation(len(pairs))
        for fold in range(FOLDS):
            test = order[fold::FOLDS]
            held_out.append(score(draw(np.setdiff1d(everything, test), pulling=True), test))
    drawn = draw(everything, pulling=True)
    apart = _distances(drawn, pairs[:, 0], other, geometry.rotation_weight)[everything, pairs[:, 1]]
    return CrossLingualScores(
        raw=score(geometry.coordinates, everything),
        fitted=score(draw(everything, pulling=False), everything),
        pulled=score(drawn, everything),
        held_out=tuple(held_out),
        strength_correlation=_rank_correlation(strength, -apart),
    )


def _distances(
    coordinates: Float[ndarray, "words 6"], words: Int[ndarray, " n"], other: Vocabulary, rotation_weight: float
) -> Float[ndarray, "n others"]:
    motors = rigid.motors_from_coordinates(coordinates[words])
    return motor_distances(motors, np.asarray(other.motors), rotation_weight)


def _aligned_auc(distances: Float[ndarray, "n others"], partners: Int[ndarray, " n"]) -> float:
    aligned = np.zeros(distances.shape, dtype=bool)
    aligned[np.arange(len(partners)), partners] = True
    return area_under_curve(-distances[aligned], -distances[~aligned])


def _rank_correlation(a: Float[ndarray, " n"], b: Float[ndarray, " n"]) -> float:
    """Return Spearman's rank correlation, ties at their mean rank; 0 where one side is constant."""
    ranks = [_mean_ranks(values) for values in (a, b)]
    centred = [rank - rank.mean() for rank in ranks]
    scale = float(np.linalg.norm(centred[0]) * np.linalg.norm(centred[1]))
    return float(centred[0] @ centred[1]) / scale if scale > 0 else 0.0


def _mean_ranks(values: Float[ndarray, " n"]) -> Float[ndarray, " n"]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]
