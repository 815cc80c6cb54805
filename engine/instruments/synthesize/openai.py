"""A generator that asks any OpenAI-compatible service (`/v1/chat/completions`), local by default."""

from collections.abc import Mapping
from typing import Any

from engine.base.errors import ConfigError
from engine.instruments.embed.openai import DEFAULT_URL
from engine.instruments.service import ServiceError, bearer, post_json, service_url
from engine.instruments.synthesize.base import Generated, GenerationRequest
from engine.instruments.synthesize.chat import MAX_TOKENS, TEMPERATURE, from_answer, from_error


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
        payload = {
            "model": self._model,
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.prompt},
            ],
            "temperature": TEMPERATURE,
            "max_tokens": MAX_TOKENS,
            "seed": request.key,
            "stream": False,
        }
        try:
            url = f"{service_url('OPENAI_BASE_URL', DEFAULT_URL)}/chat/completions"
            answer = post_json(url, payload, timeout=self._timeout, headers=bearer("OPENAI_API_KEY"))
        except ServiceError as error:
            return from_error(error)
        except ConfigError as error:
            return Generated("", "unavailable", detail=str(error))
        choices = answer.get("choices") if isinstance(answer, dict) else None
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        message = choice.get("message")
        message = message if isinstance(message, dict) else {}
        thinking = message.get("reasoning_content")
        return from_answer(message.get("content"), thinking, choice.get("finish_reason"), {})
