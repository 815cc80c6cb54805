"""What the two chat services share: how an answer's fields become a `Generated`, and nothing is taken on trust."""

from collections.abc import Callable

from engine.base.errors import ConfigError
from engine.instruments.service import ServiceError
from engine.instruments.synthesize.base import Generated, GenerationRequest

TEMPERATURE = 0.7
MAX_TOKENS = 4096


def from_answer(content: object, thinking: object, reason: object, measured: dict[str, object]) -> Generated:
    """Return the answer of a service; a text that was cut off is dropped, a field of the wrong type is malformed."""
    if not isinstance(content, str) or not isinstance(thinking, str | None) or not isinstance(reason, str):
        return Generated("", "malformed", detail="the answer lacks a text or a reason for ending", measured=measured)
    if reason != "stop":
        return Generated("", reason, thinking=thinking or "", detail="the text was not complete", measured=measured)
    return Generated(content, "stop", thinking=thinking or "", measured=measured)


def messages(request: GenerationRequest) -> list[dict[str, str]]:
    """Return the request as the two messages of a chat: all that a service is told of it."""
    return [{"role": "system", "content": request.system}, {"role": "user", "content": request.prompt}]


def guarded(ask: Callable[[], Generated]) -> Generated:
    """Return what `ask` gives; the failure of a service or of its address is a result with its kind as the reason."""
    try:
        return ask()
    except ServiceError as error:
        return Generated("", error.kind, detail=str(error))
    except ConfigError as error:
        return Generated("", "unavailable", detail=str(error))


def field(value: object, name: str) -> object:
    """Return a field of a JSON object, or None where there is none or `value` is no object."""
    return value.get(name) if isinstance(value, dict) else None
