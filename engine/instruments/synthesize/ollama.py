"""A generator that asks an Ollama service (`/api/chat`), with thinking on where the model offers it."""

from collections.abc import Mapping
from typing import Any

from engine.base.errors import ConfigError
from engine.instruments.service import ServiceError, post_json, service_url
from engine.instruments.synthesize.base import Generated, GenerationRequest
from engine.instruments.synthesize.chat import MAX_TOKENS, TEMPERATURE, from_answer, from_error

_DEFAULT_MODEL = "qwen3"
_CONTEXT = 16384


class OllamaGenerator:
    """Generates through `/api/chat`; `argument` names the model (default `qwen3`), `OLLAMA_HOST` the service."""

    def __init__(self, argument: str | None = None, *, timeout: float = 900.0) -> None:
        self._model = argument or _DEFAULT_MODEL
        self._timeout = timeout

    @property
    def id(self) -> str:
        return f"ollama:{self._model}"

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"temperature": TEMPERATURE, "max_tokens": MAX_TOKENS, "context": _CONTEXT, "think": "where offered"}

    @property
    def deterministic(self) -> bool:
        return False

    def generate(self, request: GenerationRequest) -> Generated:
        """Return the service's text, or why there is none. A model without thinking is asked again without it."""
        try:
            try:
                return self._ask(request, think=True)
            except ServiceError as error:
                if "does not support thinking" not in str(error):
                    raise
                return self._ask(request, think=False)
        except ServiceError as error:
            return from_error(error)
        except ConfigError as error:
            return Generated("", "unavailable", detail=str(error))

    def _ask(self, request: GenerationRequest, *, think: bool) -> Generated:
        url = f"{service_url('OLLAMA_HOST', 'http://127.0.0.1:11434')}/api/chat"
        messages = [
            {"role": "system", "content": request.system},
            {"role": "user", "content": request.prompt},
        ]
        options = {"seed": request.key, "temperature": TEMPERATURE, "num_predict": MAX_TOKENS, "num_ctx": _CONTEXT}
        payload = {"model": self._model, "messages": messages, "stream": False, "think": think, "options": options}
        answer = post_json(url, payload, timeout=self._timeout)
        message = answer.get("message") if isinstance(answer, dict) else None
        message = message if isinstance(message, dict) else {}
        reason = answer.get("done_reason") if isinstance(answer, dict) and answer.get("done") is True else None
        return from_answer(message.get("content"), message.get("thinking"), reason, {"think": think})
