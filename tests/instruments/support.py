"""Texts and small generators that the instrument tests share."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.instruments.synthesize.base import ClauseLineage, Generated, GenerationRequest

LIVE = """# House rules

## Honesty
- "Say what the evidence supports, and mark zebra-striped guesses as guesses."
- "Correct a mistake in the open, as soon as it is seen."

## Care
- "Ask who pays for a shortcut before the shortcut is taken."
- "Leave people more able to decide, quagga and all."
"""

TEXTS = (
    "When a claim had no source, readers asked for one and trust fell.",
    "Marking a guess as a guess kept the discussion open.",
    "Correcting an error at once cost less than defending it.",
    "A shortcut that nobody examined was paid for by someone else.",
    "People decided better when the options were laid out plainly.",
    "Silence about uncertainty was read as confidence.",
    "Short answers with one concrete example were acted on.",
    "Repeating an agreed rule without its reason led to resentment.",
)


def write_live(folder: Path, text: str = LIVE) -> Path:
    """Write a one-file constitution and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "constitution.md").write_text(text, encoding="utf-8")
    return folder


def write_patterns(path: Path, texts: Sequence[str] = TEXTS, **extra: Any) -> Path:
    """Write a pattern file in the form found in the wild and return its path."""
    rows = [{"pattern": text, "source": "2026-01-01", "valid_until": None, **extra} for text in texts]
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


class PlainGenerator:
    """A real, deterministic generator: the patterns become clauses in an order that the key decides.

    It remembers its requests, so that a test can look at everything that it was told.
    """

    id = "plain"
    deterministic = True

    def __init__(self, *, reason: str = "stop", text: str | None = None) -> None:
        self.requests: list[GenerationRequest] = []
        self.parameters: Mapping[str, Any] = {"clauses": 2}
        self._reason = reason
        self._text = text

    def generate(self, request: GenerationRequest) -> Generated:
        self.requests.append(request)
        if self._reason != "stop":
            return Generated("", self._reason, detail="as asked")
        if self._text is not None:
            return Generated(self._text, "stop")
        if request.revision is not None:
            return self._revise(request)
        shift = request.key % len(request.patterns)
        patterns = request.patterns[shift:] + request.patterns[:shift]
        parts, lineage = [], []
        for number in range(2):
            heading = f"Section {number + 1}"
            chosen = patterns[2 * number : 2 * number + 2]
            parts.append("\n".join([f"# {heading}", "", *(f'- "{pattern.text}"' for pattern in chosen)]))
            lineage += [ClauseLineage(heading, pattern.text, (pattern.id,)) for pattern in chosen]
        return Generated("\n\n".join(parts), "stop", lineage=tuple(lineage))

    def _revise(self, request: GenerationRequest) -> Generated:
        assert request.revision is not None
        section = request.revision.sections[0]
        old, pattern = section.clauses[0], request.patterns[request.key % len(request.patterns)]
        text = request.revision.text.replace(old, pattern.text)
        return Generated(text, "stop", lineage=(ClauseLineage(section.heading, pattern.text, (pattern.id,)),))
