"""Embeddings kept by content and embedder digest, in memory and, where the caller names a folder, on disk.

An entry is a SHA-256 followed by the NumPy array it is of; one that does not match is embedded again and replaced.
"""

import hashlib
import io
import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from engine.instruments.embed.base import Embedded, Embedder, embedder_digest
from engine.instruments.files import FileFault, read_bytes, text_sha256
from engine.instruments.readings import embed_checked

_ENTRY_LIMIT = 2**20
_DIGEST = 32


class EmbeddingCache:
    """Answers for texts that were embedded before by an embedder of the same digest. One cache serves many runs."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        """`folder` is made if it is absent; None keeps everything in memory."""
        self._folder = None if folder is None else Path(folder)
        self._memory: dict[tuple[str, str], Float64[np.ndarray, " dimensions"]] = {}

    def embed(self, embedder: Embedder, texts: Sequence[str]) -> Embedded:
        """Return one vector a text, embedding only texts that are not kept, in one call.

        `windows` and `truncated` are not kept and come back empty.
        """
        digest = embedder_digest(embedder)
        keys = [(digest, text_sha256(text)) for text in texts]
        wanted = dict(zip(keys, texts, strict=True))
        missing = {key: text for key, text in wanted.items() if not self._has(key)}
        if missing:
            embedded = embed_checked(embedder, list(missing.values()))
            if embedded.vectors is None:
                return embedded
            for key, vector in zip(missing, embedded.vectors, strict=True):
                self._keep(key, vector)
        rows = [self._memory[key] for key in keys]
        if len({row.shape for row in rows}) > 1:
            return Embedded.failed("embed_malformed", "the embedder gave vectors of different lengths")
        if not rows:
            return Embedded(np.zeros((0, 1)), "ok")
        return Embedded(np.stack(rows), "ok")

    def _has(self, key: tuple[str, str]) -> bool:
        if key not in self._memory and self._folder is not None:
            vector = _read_entry(self._path(key))
            if vector is not None:
                self._memory[key] = vector
        return key in self._memory

    def _keep(self, key: tuple[str, str], vector: Float64[np.ndarray, " dimensions"]) -> None:
        self._memory[key] = vector
        if self._folder is None:
            return
        path = self._path(key)
        try:
            _write_entry(path, _encode(vector))
        except OSError as error:
            warnings.warn(f"the embedding cache cannot be written: {error}", RuntimeWarning, stacklevel=2)
            self._folder = None

    def _path(self, key: tuple[str, str]) -> Path:
        digest, content = key
        return Path(self._folder or "") / digest[:16] / content[:2] / f"{content}.npy"


def _write_entry(path: Path, data: bytes) -> None:
    # Not flushed: an entry lost in a crash is embedded again, and half an entry does not match its digest.
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        draft.write_bytes(data)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _encode(vector: Float64[np.ndarray, " dimensions"]) -> bytes:
    stream = io.BytesIO()
    np.save(stream, vector, allow_pickle=False)
    data = stream.getvalue()
    return hashlib.sha256(data).digest() + data


def _read_entry(path: Path) -> Float64[np.ndarray, " dimensions"] | None:
    try:
        entry = read_bytes(path, _ENTRY_LIMIT)
        if hashlib.sha256(entry[_DIGEST:]).digest() != entry[:_DIGEST]:
            return None
        vector = np.load(io.BytesIO(entry[_DIGEST:]), allow_pickle=False)
    except (FileFault, ValueError, EOFError):
        return None
    return vector if vector.dtype == np.float64 and vector.ndim == 1 else None
