"""Embeddings from any OpenAI-compatible service (`/v1/embeddings`).

The base URL is `OPENAI_BASE_URL` (default `http://127.0.0.1:8080/v1`, where local servers listen; no hosted service is
contacted unless named), the key, if one is needed, `OPENAI_API_KEY`. It is sent to that service and recorded nowhere.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.base.errors import ConfigError
from engine.instruments.embed.base import Embedded
from engine.instruments.embed.rows import matrix
from engine.instruments.service import ServiceError, bearer, post_json, service_url

DEFAULT_URL = "http://127.0.0.1:8080/v1"
_BATCH = 32


class OpenAIEmbedder:
    """Embeddings from `/v1/embeddings`; `argument` is the model's name (default `default`, as local servers ignore
    it)."""

    def __init__(self, argument: str | None = None, *, timeout: float = 120.0) -> None:
        self._model = argument or "default"
        self._timeout = timeout

    @property
    def id(self) -> str:
        return f"openai:{self._model}"

    @property
    def revision(self) -> str:
        return "unknown"

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"endpoint": "/v1/embeddings", "encoding_format": "float", "normalisation": "of the service"}

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Return the service's vectors in the order of `texts`, or a reason."""
        rows: list[Any] = []
        try:
            url = f"{service_url('OPENAI_BASE_URL', DEFAULT_URL)}/embeddings"
            headers = bearer("OPENAI_API_KEY")
            for at in range(0, len(texts), _BATCH):
                part = list(texts[at : at + _BATCH])
                payload = {"model": self._model, "input": part, "encoding_format": "float"}
                got = _ordered(post_json(url, payload, timeout=self._timeout, headers=headers), len(part))
                if got is None:
                    return Embedded.failed("embed_malformed", f"{url}: expected {len(part)} indexed embeddings")
                rows += got
        except ServiceError as error:
            return Embedded.failed("embed_malformed" if error.kind == "malformed" else "embed_unavailable", str(error))
        except ConfigError as error:
            return Embedded.failed("embed_unavailable", str(error))
        vectors = matrix(rows, len(texts))
        if isinstance(vectors, str):
            return Embedded.failed("embed_malformed", f"{url}: {vectors}")
        return Embedded(vectors, "ok", windows=(1,) * len(texts), truncated=(False,) * len(texts))


def _ordered(answer: Any, count: int) -> list[Any] | None:
    """Return the rows of an answer by their own index, or None unless indices 0..count-1 are each there once."""
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or len(data) != count or not all(isinstance(item, dict) for item in data):
        return None
    rows = {item.get("index", place): item.get("embedding") for place, item in enumerate(data)}
    return [rows[place] for place in range(count)] if set(rows) == set(range(count)) else None
