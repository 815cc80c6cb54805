"""A generator that asks an Ollama service (`/api/chat`), with thinking on where the model offers it."""

from collections.abc import Mapping
from typing import Any

from engine.instruments.service import ServiceError, post_json, service_url
from engine.instruments.synthesize.base import Generated, GenerationRequest
from engine.instruments.synthesize.chat import MAX_TOKENS, TEMPERATURE, field, from_answer, guarded, messages

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
        return guarded(lambda: self._ask_thinking_first(request))

    def _ask_thinking_first(self, request: GenerationRequest) -> Generated:
        try:
            return self._ask(request, think=True)
        except ServiceError as error:
            if "does not support thinking" not in str(error):
                raise
            return self._ask(request, think=False)

    def _ask(self, request: GenerationRequest, *, think: bool) -> Generated:
        url = f"{service_url('OLLAMA_HOST', 'http://127.0.0.1:11434')}/api/chat"
        options = {"seed": request.key, "temperature": TEMPERATURE, "num_predict": MAX_TOKENS, "num_ctx": _CONTEXT}
        payload = {"model": self._model, "messages": messages(request), "stream": False}
        answer = post_json(url, {**payload, "think": think, "options": options}, timeout=self._timeout)
        message = field(answer, "message")
        reason = field(answer, "done_reason") if field(answer, "done") is True else None
        return from_answer(field(message, "content"), field(message, "thinking"), reason, {"think": think})
