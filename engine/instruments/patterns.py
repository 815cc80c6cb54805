"""The pattern store: pattern files as found in the wild, read into live rows with content-hash ids.

A file is a JSON list or JSONL. Rows are untrusted: their text is cleaned as it is read, so that what is embedded,
hashed, rendered and recorded is one and the same text. A file that is no such thing is a `PatternFileError` that
names the row.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from engine.base.errors import PatternFileError
from engine.instruments.files import FileFault, read_bytes, text_sha256
from engine.instruments.render import clean

Epistemic: TypeAlias = Literal["generated", "unknown"]

FILE_LIMIT = 256 * 2**20
TEXT_LIMIT = 8192
"""Longest pattern in characters. A pattern is a sentence or two; a longer row is left out and counted, never cut."""

_GENERATED = frozenset({"self_reflection", "mixed"})


@dataclass(frozen=True)
class Pattern:
    """One live pattern. `text` is cleaned; `id` is the first 32 hex digits of its SHA-256, so a prompt can be
    checked."""

    id: str
    text: str
    epistemic: Epistemic = "unknown"
    source_type: str = "unknown"
    source: str | None = None
    distilled: str | None = None
    valid_from: str | None = None


@dataclass(frozen=True)
class PatternStore:
    """The live patterns of one file, in file order, and what was left out and why.

    `left_out` counts rows that are `expired`, `gated`, `blank`, `repeated` or `oversized`; `sha256` is of the file's
    bytes.
    """

    patterns: tuple[Pattern, ...]
    sha256: str
    rows: int
    left_out: Mapping[str, int] = field(default_factory=dict)


def pattern_id(text: str) -> str:
    """Return the id of a cleaned pattern text."""
    return text_sha256(text)[:32]


def make_store(texts: Sequence[str]) -> PatternStore:
    """Return a store of the given texts, as if each were a row of a file with nothing but a `pattern`."""
    rows: list[dict[str, Any]] = [{"pattern": text} for text in texts]
    return _store(rows, hashlib.sha256(json.dumps(rows).encode("ascii")).hexdigest(), "patterns")


def read_patterns(path: str | os.PathLike[str]) -> PatternStore:
    """Return the live patterns of a JSON list or JSONL file.

    Raises `PatternFileError` if the file cannot be read, is neither form, or holds a row without a text `pattern`.
    """
    name = Path(path).name
    try:
        data = read_bytes(path, FILE_LIMIT)
    except FileFault as fault:
        raise PatternFileError(f"pattern file {fault}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PatternFileError(f"pattern file {name}: not UTF-8 at byte {error.start}") from None
    return _store(_rows(text, name), hashlib.sha256(data).hexdigest(), name)


def epistemic_counts(patterns: Sequence[Pattern]) -> dict[str, int]:
    """Return how many patterns are `generated` (self-reflection, mixed) and how many of `unknown` standing."""
    counts = Counter(pattern.epistemic for pattern in patterns)
    return {"generated": counts["generated"], "unknown": counts["unknown"]}


def _rows(text: str, name: str) -> list[Any]:
    if text.lstrip()[:1] == "[":
        rows = _parse(text, name, "the list")
        if not isinstance(rows, list):
            raise PatternFileError(f"pattern file {name}: neither a JSON list nor JSONL")
        return rows
    return list(_lines(text, name))


def _lines(text: str, name: str) -> Iterator[Any]:
    # Not splitlines(): JSON strings may hold U+2028 and friends, which it would split at.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _parse(line, name, f"line {number}")


def _parse(text: str, name: str, where: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except RecursionError:
        raise PatternFileError(f"pattern file {name}: {where} is nested too deep") from None
    except ValueError as error:
        raise PatternFileError(f"pattern file {name}: {where} is not JSON: {error}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key is repeated in one object")
    return result


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _store(rows: Sequence[Any], sha256: str, name: str) -> PatternStore:
    kept: dict[str, Pattern] = {}
    left_out: Counter[str] = Counter()
    for number, row in enumerate(rows, start=1):
        text = row.get("pattern") if isinstance(row, dict) else None
        if not isinstance(text, str):
            raise PatternFileError(f"pattern file {name}: row {number} has no text 'pattern'")
        fault = _fault(row, text)
        pattern = None if fault else _pattern(row, clean(text))
        if pattern is not None and not pattern.text:
            fault = "blank"
        elif pattern is not None and pattern.id in kept:
            fault = "repeated"
        if fault or pattern is None:
            left_out[str(fault)] += 1
        else:
            kept[pattern.id] = pattern
    return PatternStore(tuple(kept.values()), sha256, len(rows), dict(sorted(left_out.items())))


def _fault(row: Mapping[str, Any], text: str) -> str | None:
    if row.get("valid_until") is not None:
        return "expired"
    if row.get("gated"):
        return "gated"
    return "oversized" if len(text) > TEXT_LIMIT else None


def _pattern(row: Mapping[str, Any], text: str) -> Pattern:
    provenance = row.get("provenance")
    declared = provenance.get("source_type") if isinstance(provenance, dict) else None
    source_type = clean(declared)[:64] if isinstance(declared, str) else "unknown"
    return Pattern(
        id=pattern_id(text),
        text=text,
        epistemic="generated" if source_type in _GENERATED else "unknown",
        source_type=source_type or "unknown",
        source=_short(row.get("source")),
        distilled=_short(row.get("distilled")),
        valid_from=_short(row.get("valid_from")),
    )


def _short(value: object) -> str | None:
    return clean(value)[:64] if isinstance(value, str) else None
