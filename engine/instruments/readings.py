"""Distances that are a number or a reason, never a 0.0 that stands for a failure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Float64

from engine.instruments.embed.base import Embedded, Embedder

ReadingReason: TypeAlias = Literal[
    "ok", "embed_unavailable", "embed_malformed", "dimension_mismatch", "non_finite", "degenerate_vector", "truncated"
]


@dataclass(frozen=True)
class Reading:
    """A cosine in [-1, 1], or None with the reason there is none."""

    value: float | None
    reason: ReadingReason
    detail: str = ""

    def __post_init__(self) -> None:
        if (self.value is not None) != (self.reason == "ok"):
            raise ValueError("a reading has a value exactly when its reason is 'ok'")


@dataclass(frozen=True)
class UnitVectors:
    """Rows of unit length; `reasons[i]` is `ok` or says why row i (then zero) has no direction."""

    rows: Float64[np.ndarray, "texts dimensions"]
    reasons: tuple[ReadingReason, ...]


def unit_vectors(vectors: Float64[np.ndarray, "texts dimensions"]) -> UnitVectors:
    """Return the rows scaled to unit length.

    Each row is divided by its largest magnitude before the norm is taken, so that squares neither overflow nor
    vanish: rows of 1e-200 and of 1e200 keep their direction (Higham, Accuracy and Stability of Numerical Algorithms,
    §27.5).
    """
    finite = np.isfinite(vectors).all(axis=1)
    magnitude = np.abs(np.where(finite[:, None], vectors, 0.0)).max(axis=1, initial=0.0)
    usable = finite & (magnitude > 0.0)
    scaled = np.where(usable[:, None], vectors, 0.0) / np.where(usable, magnitude, 1.0)[:, None]
    norms = np.sqrt(np.sum(scaled * scaled, axis=1))
    rows = scaled / np.where(usable, norms, 1.0)[:, None]
    return UnitVectors(rows, tuple(_row_reason(f, u) for f, u in zip(finite.tolist(), usable.tolist(), strict=True)))


def cosine(a: Float64[np.ndarray, " dimensions_a"], b: Float64[np.ndarray, " dimensions_b"]) -> Reading:
    """Return the cosine of the angle between two vectors, or None and the reason."""
    if a.shape != b.shape:
        return Reading(None, "dimension_mismatch", f"{a.shape[0]} and {b.shape[0]} dimensions")
    return row_cosine(unit_vectors(np.stack([a, b])), 0, 1)


def row_cosine(units: UnitVectors, i: int, j: int) -> Reading:
    """Return the cosine of rows i and j."""
    for index in (i, j):
        if units.reasons[index] != "ok":
            return Reading(None, units.reasons[index])
    # fsum: the same pair gives the same bits whatever the batch; rounding may pass 1 by an ulp.
    value = math.fsum((units.rows[i] * units.rows[j]).tolist())
    return Reading(max(-1.0, min(1.0, value)), "ok")


def checked(embedded: Embedded, count: int) -> Embedded:
    """Return `embedded` if it has `count` rows of at least one number, else an `embed_malformed` result."""
    vectors = embedded.vectors
    if vectors is None:
        return embedded
    if vectors.ndim != 2 or vectors.shape[0] != count or vectors.shape[1] == 0:
        return Embedded.failed("embed_malformed", f"asked for {count} vectors, got an array of shape {vectors.shape}")
    return embedded


def embed_checked(embedder: Embedder, texts: Sequence[str]) -> Embedded:
    """Embed `texts` in one call and check the number of rows."""
    return checked(embedder.embed(list(texts)), len(texts))


def distances(embedder: Embedder, reference: str, texts: Sequence[str]) -> tuple[tuple[Reading, ...], Embedded]:
    """Return the cosine of each text to `reference`, all embedded in one call, and the embedding itself (reference
    first)."""
    embedded = embed_checked(embedder, [reference, *texts])
    if embedded.vectors is None:
        failed = Reading(None, embedded.reason, embedded.detail)
        return tuple(failed for _ in texts), embedded
    units = unit_vectors(embedded.vectors)
    return tuple(row_cosine(units, 0, index) for index in range(1, len(texts) + 1)), embedded


def _row_reason(finite: bool, usable: bool) -> ReadingReason:
    if not finite:
        return "non_finite"
    return "ok" if usable else "degenerate_vector"
