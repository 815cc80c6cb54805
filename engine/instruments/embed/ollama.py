"""Embeddings from an Ollama service (`/api/embed`), asked not to cut texts.

The base URL is `OLLAMA_HOST` (default `http://127.0.0.1:11434`). Some versions cut long inputs without a word: the
request says `truncate: false`, and a service that cannot take the text then answers with an error.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.base.errors import ConfigError
from engine.instruments.embed.base import Embedded
from engine.instruments.embed.rows import matrix
from engine.instruments.service import ServiceError, post_json, service_url

_DEFAULT_MODEL = "nomic-embed-text"
_BATCH = 32


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
        """Return the service's vectors, or a reason. All batches must answer; nothing is filled in."""
        rows: list[Any] = []
        try:
            url = f"{service_url('OLLAMA_HOST', 'http://127.0.0.1:11434')}/api/embed"
            for at in range(0, len(texts), _BATCH):
                part = list(texts[at : at + _BATCH])
                payload = {"model": self._model, "input": part, "truncate": False}
                answer = post_json(url, payload, timeout=self._timeout)
                got = answer.get("embeddings") if isinstance(answer, dict) else None
                if not isinstance(got, list) or len(got) != len(part):
                    return Embedded.failed("embed_malformed", f"{url}: expected {len(part)} embeddings in the answer")
                rows += got
        except ServiceError as error:
            return Embedded.failed("embed_malformed" if error.kind == "malformed" else "embed_unavailable", str(error))
        except ConfigError as error:
            return Embedded.failed("embed_unavailable", str(error))
        vectors = matrix(rows, len(texts))
        if isinstance(vectors, str):
            return Embedded.failed("embed_malformed", f"{url}: {vectors}")
        return Embedded(vectors, "ok", windows=(1,) * len(texts), truncated=(False,) * len(texts))
