"""A generator that asks any OpenAI-compatible service (`/v1/chat/completions`), local by default."""

from collections.abc import Mapping
from typing import Any

from engine.instruments.embed.openai import DEFAULT_URL
from engine.instruments.service import bearer, post_json, service_url
from engine.instruments.synthesize.base import Generated, GenerationRequest
from engine.instruments.synthesize.chat import MAX_TOKENS, TEMPERATURE, field, from_answer, guarded, messages


class OpenAIGenerator:
    """Generates through `/v1/chat/completions` of the service at `OPENAI_BASE_URL`; `argument` names the model."""

    def __init__(self, argument: str | None = None, *, timeout: float = 900.0) -> None:
        self._model = argument or "default"
        self._timeout = timeout

    @property
    def id(self) -> str:
        return f"openai:{self._model}"

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"temperature": TEMPERATURE, "max_tokens": MAX_TOKENS}

    @property
    def deterministic(self) -> bool:
        return False

    def generate(self, request: GenerationRequest) -> Generated:
        """Return the service's text, or why there is none."""
        return guarded(lambda: self._ask(request))

    def _ask(self, request: GenerationRequest) -> Generated:
        url = f"{service_url('OPENAI_BASE_URL', DEFAULT_URL)}/chat/completions"
        payload = {
            "model": self._model,
            "messages": messages(request),
            "temperature": TEMPERATURE,
            "max_tokens": MAX_TOKENS,
            "seed": request.key,
            "stream": False,
        }
        answer = post_json(url, payload, timeout=self._timeout, headers=bearer("OPENAI_API_KEY"))
        choices = field(answer, "choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = field(choice, "message")
        return from_answer(
            field(message, "content"), field(message, "reasoning_content"), field(choice, "finish_reason"), {}
        )
