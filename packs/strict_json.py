"""One strict JSON reader for every pack and report, and the two forms in which the house writes JSON.

`json.loads` accepts NaN and infinities, keeps the last of repeated keys, lets lone surrogates through and fails on
deep nesting with `RecursionError`. Here each of these is a `PackFormatError` with one clear line.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from packs.errors import PackFormatError

MAX_DEPTH = 16
MAX_INTEGER = 2**53
"""Integers beyond this cannot be told apart as binary64 and have no business in a pack."""

# A string, closed or not. The closing quote is optional so that the match never fails: the scan stays linear on
# input made of quotes and backslashes.
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def loads(data: bytes, *, source: str) -> dict[str, Any]:
    """Return the JSON object that `data` holds.

    Args:
      data: the whole file.
      source: what the bytes are, for the error message.

    Raises:
      PackFormatError: empty, not UTF-8, byte order mark, lone surrogate, malformed, trailing bytes, repeated key, NaN
        or infinity (also by overflow), a number that underflows, an integer beyond 2**53, nesting deeper than 16, or
        a root that is not an object.
    """
    text = _decode(data, source)
    _check_depth(text, source)
    reader = _Reader(source)
    try:
        root = json.loads(
            text,
            object_pairs_hook=reader.unique_pairs,
            parse_constant=reader.constant,
            parse_float=reader.number,
            parse_int=reader.integer,
        )
    except json.JSONDecodeError as error:
        raise PackFormatError(f"{source}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise PackFormatError(f"{source}: nested too deeply to be read") from None
    if not isinstance(root, dict):
        raise PackFormatError(f"{source}: the root must be an object, not {type(root).__name__}")
    # Raw surrogates cannot come through UTF-8; escaped ones can, and only when the text holds an escape.
    if "\\u" in text and _SURROGATE.search(json.dumps(root, ensure_ascii=False)):
        raise PackFormatError(f"{source}: holds a lone surrogate")
    return root


def canonical_bytes(value: Mapping[str, Any]) -> bytes:
    """Return the form that digests are taken over: sorted keys, no white space, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def file_bytes(value: Mapping[str, Any]) -> bytes:
    """Return the one form in which sealed files lie on disk: sorted keys, two-space indent, UTF-8, one final newline.

    A sealed file must equal this form of its own content, so that the seal binds every byte of it.
    """
    return (json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")


def _decode(data: bytes, source: str) -> str:
    if not data.strip():
        raise PackFormatError(f"{source}: empty")
    if data.startswith(_BYTE_ORDER_MARKS):
        raise PackFormatError(f"{source}: starts with a byte order mark")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PackFormatError(f"{source}: not UTF-8 at byte {error.start}") from None


def _check_depth(text: str, source: str) -> None:
    depth = 0
    for mark in _BRACKET.findall(_STRING.sub("", text)):
        depth += 1 if mark in "[{" else -1
        if depth > MAX_DEPTH:
            raise PackFormatError(f"{source}: nested deeper than {MAX_DEPTH} levels")


class _Reader:
    """The hooks of one parse; each knows the source, so that an error can name it."""

    def __init__(self, source: str) -> None:
        self._source = source

    def unique_pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for name, value in pairs:
            if name in result:
                raise PackFormatError(f"{self._source}: the key {ascii(name)[:80]} is repeated")
            result[name] = value
        return result

    def constant(self, text: str) -> float:
        raise PackFormatError(f"{self._source}: {text} is not JSON")

    def number(self, text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            raise PackFormatError(f"{self._source}: the number {text[:40]} is too large")
        if value == 0.0 and text.strip("-").lower().split("e")[0].strip("0."):
            raise PackFormatError(f"{self._source}: the number {text[:40]} is too small")
        return value

    def integer(self, text: str) -> int:
        if len(text) > 17 or abs(int(text)) > MAX_INTEGER:
            raise PackFormatError(f"{self._source}: the integer {text[:20]} is beyond 2**53")
        return int(text)
