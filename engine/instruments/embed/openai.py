"""Embeddings from any OpenAI-compatible service (`/v1/embeddings`).

The base URL is `OPENAI_BASE_URL` (default `http://127.0.0.1:8080/v1`, where local servers listen; no hosted service is
contacted unless named), the key, if one is needed, `OPENAI_API_KEY`. It is sent to that service and recorded nowhere.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.instruments.embed.base import Embedded
from engine.instruments.embed.rows import embed_in_batches
from engine.instruments.service import bearer, post_json, service_url

DEFAULT_URL = "http://127.0.0.1:8080/v1"


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
        return embed_in_batches(texts, lambda: f"{service_url('OPENAI_BASE_URL', DEFAULT_URL)}/embeddings", self._ask)

    def _ask(self, url: str, part: list[str]) -> list[Any] | None:
        payload = {"model": self._model, "input": part, "encoding_format": "float"}
        answer = post_json(url, payload, timeout=self._timeout, headers=bearer("OPENAI_API_KEY"))
        return _ordered(answer, len(part))


def _ordered(answer: Any, count: int) -> list[Any] | None:
    """Return the rows of an answer by their own index, or None unless indices 0..count-1 are each there once."""
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or len(data) != count or not all(isinstance(item, dict) for item in data):
        return None
    rows = {item.get("index", place): item.get("embedding") for place, item in enumerate(data)}
    return [rows[place] for place in range(count)] if set(rows) == set(range(count)) else None
