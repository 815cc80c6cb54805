"""Anchors: readings of references chosen so that a cosine can be read, and the calibration file that later readings
cite.

Four anchors, each against the live text with the active embedder: unrelated documents (the floor), documents of the
same genre, every live pattern (the corpus mean), and the patterns that the constitutional view selects (its top band).
"""

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.base.errors import ConfigError
from engine.instruments.cache import EmbeddingCache
from engine.instruments.constitution import Constitution
from engine.instruments.embed.base import Embedder, embedder_digest
from engine.instruments.files import FileFault, read_text, text_sha256, write_atomic
from engine.instruments.patterns import PatternStore
from engine.instruments.readings import Reading, distances
from engine.instruments.resources import packaged_texts
from engine.instruments.retrieval import RetrievalFault, Retrieved, retrieve

SCHEMA_VERSION = "1.0.0"
EVENT = "calibration"
MIN_UNRELATED = 8
MIN_SAME_GENRE = 10

_NUMBERS = ("corpus_mean",)
_BANDS = ("unrelated_band", "same_genre_band", "top_band")
_TEXTS = ("embedding_model", "embedding_revision", "embedding_sha256", "current_sha256", "view_sha256")


@dataclass(frozen=True)
class Calibration:
    """A calibration as its JSON body says, with the digest of the canonical body."""

    body: Mapping[str, Any]
    sha256: str

    def bands(self) -> dict[str, Any]:
        """Return what each reading carries: floor band, same-genre band, corpus mean, top band."""
        return {name: self.body[name] for name in (*_BANDS, *_NUMBERS)}

    def faults(self) -> list[str]:
        """Return the anchors that have no reading, each with its reason."""
        faults = [f"{name}: {reason}" for name, reason in self.body["reasons"].items()]
        if self.body["corpus_mean"] is None:
            faults.append(f"corpus mean: {self.body['corpus_reason']}")
        return faults

    def drift(self, embedder: Embedder, current_sha256: str, view_sha256: str | None) -> str | None:
        """Return the note that names what is no longer as it was calibrated, or None if nothing moved."""
        changed = []
        if embedder.id != self.body["embedding_model"] or embedder.revision != self.body["embedding_revision"]:
            changed.append(f"embedder (calibrated: {self.body['embedding_model']}, active: {embedder.id})")
        elif embedder_digest(embedder) != self.body["embedding_sha256"]:
            changed.append("the embedder's parameters (pooling, normalisation, window)")
        if current_sha256 != self.body["current_sha256"]:
            changed.append("live text")
        if view_sha256 is not None and view_sha256 != self.body["view_sha256"]:
            changed.append("the view's seed")
        return f"calibrated with another {', another '.join(changed)}" if changed else None


def measure_references(constitution: Constitution, embedder: Embedder) -> Calibration:
    """Return the anchors that need no patterns: the shipped unrelated and same-genre texts."""
    return measure_anchors(constitution, None, embedder)


def measure_anchors(
    constitution: Constitution,
    store: PatternStore | None,
    embedder: Embedder,
    *,
    cache: EmbeddingCache | None = None,
    unrelated: Mapping[str, str] | None = None,
    same_genre: Mapping[str, str] | None = None,
    views_dir: str | os.PathLike[str] | None = None,
) -> Calibration:
    """Return the anchors of `constitution` for `embedder`. Texts default to those that ship with the package.

    A document that cannot be read has a null cosine and its reason under `reasons`; a band is null where none could be
    read. No anchor is ever 0.0 for want of an answer.
    """
    unrelated = packaged_texts("readings", "unrelated") if unrelated is None else unrelated
    same_genre = packaged_texts("readings", "same-genre") if same_genre is None else same_genre
    names = [*(("unrelated", n) for n in unrelated), *(("same_genre", n) for n in same_genre)]
    readings, _ = distances(embedder, constitution.text, [*unrelated.values(), *same_genre.values()])
    groups: dict[str, dict[str, Reading]] = {"unrelated": {}, "same_genre": {}}
    for (group, name), reading in zip(names, readings, strict=True):
        groups[group][name] = reading
    retrieved, corpus_reason = None, "no patterns were given"
    if store is not None:
        try:
            retrieved = retrieve(store, constitution.folder, embedder, cache or EmbeddingCache(), views_dir=views_dir)
        except RetrievalFault as fault:
            corpus_reason = str(fault)
    body = {
        "schema_version": SCHEMA_VERSION,
        "event": EVENT,
        "embedding_model": embedder.id,
        "embedding_revision": embedder.revision,
        "embedding_parameters": dict(embedder.parameters),
        "embedding_sha256": embedder_digest(embedder),
        "current_sha256": constitution.sha256,
        "current_chars": len(constitution.text),
        "patterns_sha256": store.sha256 if store is not None else None,
        "document_sha256": {name: text_sha256(text) for name, text in sorted({**unrelated, **same_genre}.items())},
        "unrelated": {name: reading.value for name, reading in groups["unrelated"].items()},
        "same_genre": {name: reading.value for name, reading in groups["same_genre"].items()},
        "reasons": {
            name: reading.reason
            for group in groups.values()
            for name, reading in group.items()
            if reading.reason != "ok"
        },
        "unrelated_band": _band([reading.value for reading in groups["unrelated"].values()]),
        "same_genre_band": _band([reading.value for reading in groups["same_genre"].values()]),
        **_corpus_fields(retrieved, corpus_reason),
    }
    return Calibration(body, body_sha256(body))


def read_texts(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Return the non-empty `*.md` and `*.txt` texts of a user's folder, stem to stripped text, sorted by name.

    Raises `ConfigError` if the folder or a text in it cannot be read, or it holds none.
    """
    try:
        paths = sorted(path for path in Path(folder).iterdir() if path.suffix in (".md", ".txt"))
        texts = {path.stem: read_text(path).strip() for path in paths}
    except (OSError, FileFault) as error:
        raise ConfigError(f"{folder}: {getattr(error, 'strerror', None) or error}") from None
    texts = {name: text for name, text in texts.items() if text}
    if not texts:
        raise ConfigError(f"{folder} holds no *.md or *.txt texts")
    return texts


def write_calibration(calibration: Calibration, path: str | os.PathLike[str]) -> None:
    """Write the calibration file. Raises `ConfigError` if it cannot be written."""
    try:
        write_atomic(path, _encode({**calibration.body, "sha256": calibration.sha256}))
    except FileFault as fault:
        raise ConfigError(str(fault)) from None


def read_calibration(path: str | os.PathLike[str]) -> Calibration:
    """Return the calibration in a file. Raises `ConfigError` if it is no calibration or was altered since it was
    written."""
    name = Path(path).name
    try:
        body = json.loads(read_text(path))
    except FileFault as fault:
        raise ConfigError(f"calibration {fault}") from None
    except (ValueError, RecursionError):
        raise ConfigError(f"calibration {name}: not JSON") from None
    if not isinstance(body, dict) or body.get("event") != EVENT or body.get("schema_version") != SCHEMA_VERSION:
        raise ConfigError(f"calibration {name}: not a calibration of schema {SCHEMA_VERSION}")
    sha256 = body.pop("sha256", None)
    if sha256 != body_sha256(body):
        raise ConfigError(f"calibration {name}: altered since it was written")
    if not _is_well_formed(body):
        raise ConfigError(f"calibration {name}: a field is missing or of the wrong type")
    return Calibration(body, sha256)


def body_sha256(body: Mapping[str, Any]) -> str:
    """Return the digest of a calibration's canonical body."""
    return hashlib.sha256(_encode(body)).hexdigest()


def _corpus_fields(retrieved: Retrieved | None, reason: str) -> dict[str, Any]:
    if retrieved is None or not retrieved.corpus_cosines:
        return {
            "view_sha256": retrieved.view.sha256 if retrieved else "unknown",
            "corpus_mean": None,
            "corpus_reason": reason if retrieved is None else "no live pattern has a direction",
            "top_band": None,
            "pattern_count": 0,
        }
    return {
        "view_sha256": retrieved.view.sha256,
        "corpus_mean": float(np.mean(retrieved.corpus_cosines)),
        "corpus_reason": "ok",
        "top_band": _band(list(retrieved.cosines)),
        "pattern_count": len(retrieved.corpus_cosines),
    }


def _band(values: list[float | None]) -> list[float] | None:
    present = [value for value in values if value is not None]
    return [min(present), max(present)] if present else None


def _encode(body: Mapping[str, Any]) -> bytes:
    return (json.dumps(body, ensure_ascii=True, allow_nan=False, sort_keys=True, indent=1) + "\n").encode("ascii")


def _is_well_formed(body: Mapping[str, Any]) -> bool:
    return (
        all(isinstance(body.get(name), str) for name in _TEXTS)
        and all(name in body and (body[name] is None or _is_number(body[name])) for name in _NUMBERS)
        and all(name in body and (body[name] is None or _is_band(body[name])) for name in _BANDS)
        and all(isinstance(body.get(name), dict) for name in ("unrelated", "same_genre", "reasons"))
        and all(v is None or _is_number(v) for name in ("unrelated", "same_genre") for v in body[name].values())
    )


def _is_band(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)) and value[0] <= value[1]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
