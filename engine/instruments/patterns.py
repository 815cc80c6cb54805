"""The pattern store: pattern files as found in the wild, read into live rows with content-hash ids.

A file is a JSON list or JSONL. Rows are untrusted: text of any size and content is carried as it is and cleaned only by
the renderer; a row of the wrong type is a `PatternFileError` that names the row.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Epistemic: TypeAlias = Literal["generated", "unknown"]


@dataclass(frozen=True)
class Pattern:
    """One live pattern. `id` is the first 16 hex digits of the SHA-256 of its text as found."""

    id: str
    text: str
    epistemic: Epistemic
    source_type: str
    source: str | None = None
    distilled: str | None = None
    valid_from: str | None = None
