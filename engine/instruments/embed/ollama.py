"""Embeddings from an Ollama service (`/api/embed`), asked not to cut texts.

The base URL is `OLLAMA_HOST` (default `http://127.0.0.1:11434`). Some versions cut long inputs without a word: the
request says `truncate: false`, and a service that cannot take the text then answers with an error.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.instruments.embed.base import Embedded
from engine.instruments.embed.rows import embed_in_batches
from engine.instruments.service import post_json, service_url

_DEFAULT_MODEL = "nomic-embed-text"


class OllamaEmbedder:
    """Embeddings from `/api/embed`; `argument` is the model's name (default `nomic-embed-text`)."""

    def __init__(self, argument: str | None = None, *, timeout: float = 120.0) -> None:
        self._model = argument or _DEFAULT_MODEL
        self._timeout = timeout

    @property
    def id(self) -> str:
        return f"ollama:{self._model}"

    @property
    def revision(self) -> str:
        return "unknown"

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"endpoint": "/api/embed", "truncate": False, "normalisation": "of the service"}

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Return the service's vectors in the order of `texts`, or a reason."""
        return embed_in_batches(
            texts, lambda: f"{service_url('OLLAMA_HOST', 'http://127.0.0.1:11434')}/api/embed", self._ask
        )

    def _ask(self, url: str, part: list[str]) -> list[Any] | None:
        answer = post_json(url, {"model": self._model, "input": part, "truncate": False}, timeout=self._timeout)
        rows = answer.get("embeddings") if isinstance(answer, dict) else None
        return rows if isinstance(rows, list) else None
