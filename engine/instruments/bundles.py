"""Untrusted text in a record: base64 of at most 64 KiB, the digest and length of the whole, and whether it was cut."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from engine.base.errors import RecordError
from engine.instruments.files import text_sha256

LIMIT = 64 * 1024
"""Bytes of UTF-8 kept of a text."""

FIELDS = ("b64", "sha256", "chars", "truncated")


def bundle(name: str, text: str | None) -> dict[str, Any]:
    """Return the four fields `<name>_b64`, `_sha256`, `_chars`, `_truncated` of a text; all null where there is
    none."""
    if text is None:
        return dict.fromkeys((f"{name}_{field}" for field in FIELDS), None)
    data = text.encode("utf-8", "surrogatepass")
    kept = _cut(data)
    return {
        f"{name}_b64": base64.b64encode(kept).decode("ascii"),
        f"{name}_sha256": text_sha256(text),
        f"{name}_chars": len(text),
        f"{name}_truncated": len(kept) < len(data),
    }


def unbundle(name: str, record: Mapping[str, Any]) -> str | None:
    """Return the text that a record's bundle keeps (the beginning, where it was cut); None where there is none.

    Raises `RecordError` if the fields contradict each other or the digest is not that of an uncut text.
    """
    encoded = record.get(f"{name}_b64")
    if encoded is None:
        return None
    try:
        data = base64.b64decode(encoded, validate=True)
        text = data.decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError, TypeError):
        raise RecordError(f"the {name} bundle is not base64 of UTF-8") from None
    chars, truncated = record.get(f"{name}_chars"), record.get(f"{name}_truncated")
    if truncated is False and (text_sha256(text) != record.get(f"{name}_sha256") or len(text) != chars):
        raise RecordError(f"the {name} bundle does not match its digest or length")
    if truncated is True and not (isinstance(chars, int) and len(text) < chars and LIMIT - 4 < len(data) <= LIMIT):
        raise RecordError(f"the {name} bundle is marked as cut but has another length")
    if not isinstance(truncated, bool):
        raise RecordError(f"the {name} bundle does not say whether it was cut")
    return text


def _cut(data: bytes) -> bytes:
    if len(data) <= LIMIT:
        return data
    end = LIMIT
    # A UTF-8 continuation byte is 0b10xxxxxx: step back to the start of the character that the limit would split.
    while data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]
