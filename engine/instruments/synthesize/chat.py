"""What the two chat services share: how an answer's fields become a `Generated`, and nothing is taken on trust."""

from engine.instruments.service import ServiceError
from engine.instruments.synthesize.base import Generated

TEMPERATURE = 0.7
MAX_TOKENS = 4096


def from_answer(content: object, thinking: object, reason: object, measured: dict[str, object]) -> Generated:
    """Return the answer of a service; a text that was cut off is dropped, a field of the wrong type is malformed."""
    if not isinstance(content, str) or not isinstance(thinking, str | None) or not isinstance(reason, str):
        return Generated("", "malformed", detail="the answer lacks a text or a reason for ending", measured=measured)
    if reason != "stop":
        return Generated("", reason, thinking=thinking or "", detail="the text was not complete", measured=measured)
    return Generated(content, "stop", thinking=thinking or "", measured=measured)


def from_error(error: ServiceError) -> Generated:
    """Return the failure of a service as a result with its kind as the reason."""
    return Generated("", error.kind, detail=str(error))
