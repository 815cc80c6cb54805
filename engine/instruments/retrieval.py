"""Retrieval, shared by both arms: the constitutional view selects the patterns that a synthesis is made from."""

import os
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from engine.instruments.cache import EmbeddingCache
from engine.instruments.embed.base import Embedder
from engine.instruments.patterns import Pattern, PatternStore
from engine.instruments.readings import unit_vectors
from engine.instruments.views import View, ViewFault, load_view, seed_text

MIN_PATTERNS = 3
"""Fewer patterns than this support no constitution."""


@dataclass(frozen=True)
class Retrieved:
    """The selected patterns, best first, with their vectors and cosines to the seed, and every live pattern's
    cosine."""

    view: View
    patterns: tuple[Pattern, ...]
    vectors: Float64[np.ndarray, "patterns dimensions"]
    cosines: tuple[float, ...]
    corpus_cosines: tuple[float, ...]


class RetrievalFault(Exception):
    """The view registry cannot answer: a view is missing or malformed, or the embedder gives no vectors."""


def retrieve(
    store: PatternStore,
    constitution_dir: str | os.PathLike[str] | None,
    embedder: Embedder,
    cache: EmbeddingCache,
    views_dir: str | os.PathLike[str] | None = None,
) -> Retrieved:
    """Return the patterns that the constitutional view selects, seeded by the constitution in `constitution_dir`.

    Ties go to the pattern that stands first in the file. Patterns without a direction are never selected.
    Raises `RetrievalFault` with one line that names the reason.
    """
    try:
        view = load_view(folder=views_dir)
    except ViewFault as fault:
        raise RetrievalFault(str(fault)) from None
    texts = [seed_text(view, constitution_dir), *(pattern.text for pattern in store.patterns)]
    embedded = cache.embed(embedder, texts)
    if embedded.vectors is None:
        raise RetrievalFault(f"{embedded.reason}: {embedded.detail}" if embedded.detail else embedded.reason)
    units = unit_vectors(embedded.vectors)
    if units.reasons[0] != "ok":
        raise RetrievalFault(f"{units.reasons[0]}: the view's seed has no direction")
    usable = np.array([reason == "ok" for reason in units.reasons[1:]], dtype=bool)
    cosines = units.rows[1:] @ units.rows[0]
    # A stable sort of the negated cosines keeps file order among equals.
    order = np.argsort(-cosines, kind="stable")
    chosen = [int(i) for i in order if usable[i] and cosines[i] >= view.threshold][: view.top_k]
    return Retrieved(
        view,
        tuple(store.patterns[i] for i in chosen),
        np.ascontiguousarray(embedded.vectors[1:][chosen]),
        tuple(float(cosines[i]) for i in chosen),
        tuple(float(value) for value in cosines[usable]),
    )
