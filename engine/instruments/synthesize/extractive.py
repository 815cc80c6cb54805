"""The default generator: themes by spherical k-means, clauses that are patterns, nothing invented.

Each section is a theme, named by its own words; its one to four clauses are the patterns that cover the theme best
(greedy facility location; Nemhauser, Wolsey and Fisher 1978), each traced to the pattern it came from. As the amend
arm it rewrites a document by exchanging single clauses and leaves everything else byte for byte.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Int

from engine.base.errors import UsageError
from engine.instruments.patterns import Pattern
from engine.instruments.synthesize.base import ClauseLineage, Generated, GenerationRequest, Revision
from engine.instruments.synthesize.words import COMMON

MAX_CLAUSES = 4
_MAX_THEMES = 12
_MAX_CLAUSE_CHARS = 600
_ENOUGH_GAIN = 0.04
"""A further clause must raise the mean coverage (a cosine) of its theme by this much."""
_SHARE_CHANGED = 0.25
_WORD = re.compile(r"[^\W\d_]{4,}")


@dataclass(frozen=True)
class _Theme:
    members: tuple[int, ...]
    chosen: tuple[int, ...]


class ExtractiveGenerator:
    """Themes and clauses from the patterns alone; `argument` fixes the number of themes (1 to 12), None selects it."""

    def __init__(self, argument: str | None = None) -> None:
        if argument is not None and not (
            argument.isascii() and argument.isdigit() and 1 <= int(argument) <= _MAX_THEMES
        ):
            raise UsageError(f"extractive takes a number of themes from 1 to {_MAX_THEMES}, not {argument!r}")
        self._themes = int(argument) if argument else None

    @property
    def id(self) -> str:
        return "extractive" if self._themes is None else f"extractive:{self._themes}"

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {
            "version": 1,
            "themes": self._themes or "selected",
            "max_clauses": MAX_CLAUSES,
            "max_clause_chars": _MAX_CLAUSE_CHARS,
            "enough_gain": _ENOUGH_GAIN,
            "share_changed": _SHARE_CHANGED,
        }

    @property
    def deterministic(self) -> bool:
        return True

    def generate(self, request: GenerationRequest) -> Generated:
        """Return a constitution made of the request's patterns, or the request's document with clauses exchanged."""
        if not request.patterns:
            return Generated("", "malformed", detail="there are no patterns to extract from")
        if request.vectors.shape[0] != len(request.patterns) or not np.isfinite(request.vectors).all():
            return Generated("", "malformed", detail="the pattern vectors are not one finite row per pattern")
        from engine.instruments.synthesize.kmeans import cluster, unit_rows

        unit = unit_rows(request.vectors)
        found = cluster(request.key, unit, self._counts(len(request.patterns)))
        themes = [_cover(unit, request.patterns, members) for members in _members(found.labels)]
        measured = {"themes": len(themes), "silhouette": found.silhouette}
        if request.revision is not None:
            return _revise(request, request.revision, unit, themes, measured)
        return _compose(request.patterns, themes, measured)

    def _counts(self, patterns: int) -> tuple[int, ...]:
        if self._themes is not None:
            return (min(self._themes, patterns),)
        most = max(1, min(_MAX_THEMES, patterns // 3))
        return tuple(range(min(3, most), most + 1))


def _members(labels: Int[np.ndarray, " rows"]) -> list[tuple[int, ...]]:
    return [tuple(np.flatnonzero(labels == number).tolist()) for number in range(int(labels.max()) + 1)]


def _cover(
    unit: Float64[np.ndarray, "rows dimensions"], patterns: Sequence[Pattern], members: tuple[int, ...]
) -> _Theme:
    """Choose one to four members, each time the one that raises the mean best cosine of the theme most."""
    rows = unit[list(members)]
    cosines = rows @ rows.T
    seen: set[str] = set()
    best = np.full(len(members), -1.0)
    chosen: list[int] = []
    while len(chosen) < min(MAX_CLAUSES, len(members)):
        gains = np.maximum(cosines, best[:, None]).mean(axis=0) - best.mean()
        order = sorted(range(len(members)), key=lambda at: (-gains[at], members[at]))
        fresh = [at for at in order if clause_text(patterns[members[at]].text).casefold() not in seen]
        if not fresh or (chosen and gains[fresh[0]] < _ENOUGH_GAIN):
            break
        chosen.append(members[fresh[0]])
        seen.add(clause_text(patterns[members[fresh[0]]].text).casefold())
        best = np.maximum(best, cosines[:, fresh[0]])
    return _Theme(members, tuple(chosen))


def clause_text(text: str) -> str:
    """Return a pattern's text as it can stand between double quotes on one line; a very long one is cut at a word."""
    text = " ".join(text.split()).replace('"', "'").replace("“", "'").replace("”", "'")
    if len(text) <= _MAX_CLAUSE_CHARS:
        return text
    return text[: _MAX_CLAUSE_CHARS - 1].rsplit(" ", 1)[0] + "…"


def _compose(patterns: Sequence[Pattern], themes: Sequence[_Theme], measured: Mapping[str, Any]) -> Generated:
    names = _names([[patterns[at].text for at in theme.members] for theme in themes])
    lineage = tuple(
        ClauseLineage(name, clause_text(patterns[at].text), (patterns[at].id,))
        for name, theme in zip(names, themes, strict=True)
        for at in theme.chosen
    )
    parts = []
    for name in names:
        lines = [f'- "{entry.clause}"' for entry in lineage if entry.section == name]
        parts.append("\n".join([f"# {name}", "", *lines]))
    return Generated("\n\n".join(parts) + "\n", "stop", lineage=lineage, measured=measured)


def _names(themes: Sequence[Sequence[str]]) -> list[str]:
    """Name each theme by the words that are frequent in it and rare in the others; no two names are equal."""
    counts = [Counter(word for text in texts for word in set(_words(text))) for texts in themes]
    total: Counter[str] = sum(counts, Counter())
    rows = sum(len(texts) for texts in themes)
    names: list[str] = []
    for texts, count in zip(themes, counts, strict=True):

        def score(word: str, texts: Sequence[str] = texts, count: Counter[str] = count) -> float:
            inside = count[word] / len(texts)
            return inside * math.log((inside * rows + 1.0) / (total[word] + 1.0) + 1.0)

        ranked = sorted(count, key=lambda word: (-score(word), word))
        picked: list[str] = []
        for word in ranked:
            if not any(word[:5] == other[:5] for other in picked):
                picked.append(word)
            if len(picked) == 3:
                break
        name = _joined([word.capitalize() for word in picked]) or "Theme"
        names.append(name if name not in names else f"{name} ({len(names) + 1})")
    return names


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.lower()) if word not in COMMON]


def _joined(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _revise(
    request: GenerationRequest,
    revision: Revision,
    unit: Float64[np.ndarray, "rows dimensions"],
    themes: Sequence[_Theme],
    measured: Mapping[str, Any],
) -> Generated:
    """Exchange a clause for a theme's first pattern where that pattern stands for the theme better than any clause."""
    from engine.instruments.synthesize.kmeans import unit_rows

    clauses = [(section.heading, clause) for section in revision.sections for clause in section.clauses]
    if not clauses or len(clauses) != revision.clause_vectors.shape[0]:
        return Generated("", "malformed", detail="the document has no clauses, or not one vector for each")
    against = unit_rows(revision.clause_vectors)
    spans = _spans(revision.text, [clause for _, clause in clauses])
    most = max(1, math.floor(_SHARE_CHANGED * len(clauses)))
    exchanged: dict[int, int] = {}
    for theme in themes:
        pattern = theme.chosen[0]
        nearest = int(np.argmax(against @ unit[pattern]))
        rows = unit[list(theme.members)]
        better = float(np.mean(rows @ unit[pattern])) - float(np.max(np.mean(rows @ against.T, axis=0)))
        if better > _ENOUGH_GAIN and nearest not in exchanged and spans[nearest] is not None and len(exchanged) < most:
            exchanged[nearest] = pattern
    return _with_exchanges(request.patterns, revision.text, clauses, spans, exchanged, measured)


def _with_exchanges(
    patterns: Sequence[Pattern],
    text: str,
    clauses: Sequence[tuple[str, str]],
    spans: Sequence[tuple[int, int] | None],
    exchanged: Mapping[int, int],
    measured: Mapping[str, Any],
) -> Generated:
    lineage = []
    for at, (heading, clause) in enumerate(clauses):
        if at in exchanged:
            pattern = patterns[exchanged[at]]
            lineage.append(ClauseLineage(heading, clause_text(pattern.text), (pattern.id,)))
        else:
            lineage.append(ClauseLineage(heading, clause, ()))
    for at in sorted(exchanged, reverse=True):
        span = spans[at]
        assert span is not None
        text = text[: span[0]] + lineage[at].clause + text[span[1] :]
    return Generated(text, "stop", lineage=tuple(lineage), measured={**measured, "exchanged": len(exchanged)})


def _spans(text: str, clauses: Sequence[str]) -> list[tuple[int, int] | None]:
    """Return where each clause stands in `text`, in order; None for one that does not stand there on one line."""
    spans: list[tuple[int, int] | None] = []
    cursor = 0
    for clause in clauses:
        at = text.find(clause, cursor)
        spans.append((at, at + len(clause)) if at >= 0 else None)
        cursor = at + len(clause) if at >= 0 else cursor
    return spans
