"""Measures of a vocabulary's geometry: distances between words and how well they tell true relations from others."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from engine.language import rigid


def point_distances(a: Float[ndarray, "n 3"], b: Float[ndarray, "m 3"]) -> Float[ndarray, "n m"]:
    """Return the distances between all points of `a` and all of `b`."""
    return np.linalg.norm(a[:, None, :] - b[None, :, :], axis=-1)


def motor_distances(
    a: Float[ndarray, "n 16"], b: Float[ndarray, "m 16"], rotation_weight: float
) -> Float[ndarray, "n m"]:
    """Return the distances between all rigid motors of `a` and all of `b`: sqrt(shift^2 + (weight * turn)^2).

    Shift is the distance between the points that the motors carry the origin to, turn the angle in [0, pi] of the
    relative rotation: F and -F are the same motion. This is a left-invariant metric on rigid motions (Park 1995).
    """
    shift = point_distances(rigid.translation_vectors(a), rigid.translation_vectors(b))
    cosine = np.abs(rigid.quaternions(a) @ rigid.quaternions(b).T)
    # arccos loses half the digits near 1; these angles are compared with each other, not with zero.
    turn = 2 * np.arccos(np.minimum(cosine, 1.0))
    return np.sqrt(shift**2 + (rotation_weight * turn) ** 2)


def paired_motor_distances(
    a: Float[ndarray, "n 16"], b: Float[ndarray, "n 16"], rotation_weight: float
) -> Float[ndarray, " n"]:
    """Return the motor distance of each pair; see `motor_distances`."""
    shift = np.linalg.norm(rigid.translation_vectors(a) - rigid.translation_vectors(b), axis=-1)
    cosine = np.abs((rigid.quaternions(a) * rigid.quaternions(b)).sum(axis=-1))
    return np.sqrt(shift**2 + (rotation_weight * 2 * np.arccos(np.minimum(cosine, 1.0))) ** 2)


def area_under_curve(positive: Float[ndarray, " n"], negative: Float[ndarray, " m"]) -> float:
    """Return the probability that a positive scores above a negative, ties counting half (Mann and Whitney 1947)."""
    scores = np.concatenate([positive, negative])
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    values, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    sums = np.bincount(inverse, weights=ranks, minlength=len(values))
    mean_ranks = (sums / counts)[inverse]
    above = mean_ranks[: len(positive)].sum() - len(positive) * (len(positive) + 1) / 2
    return float(above / (len(positive) * len(negative)))
