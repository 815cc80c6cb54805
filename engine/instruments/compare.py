"""What two texts share beyond one number: sections matched by optimal assignment, and the clauses that diverge.

Texts that were not embedded before are embedded in one call. SciPy is loaded when sections are matched.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from engine.instruments.cache import EmbeddingCache
from engine.instruments.embed.base import Embedder
from engine.instruments.readings import UnitVectors, unit_vectors
from engine.instruments.sections import ParsedSection, clause_sections, section_text

MOST_DIVERGENT = 5


@dataclass(frozen=True)
class _Document:
    """A text's sections and clauses with the rows of the shared embedding that belong to them."""

    sections: tuple[ParsedSection, ...]
    whole: int
    section_rows: tuple[int, ...]
    clauses: tuple[tuple[str, str], ...]
    clause_rows: tuple[int, ...]


def compare(
    live: str,
    shadows: Sequence[str],
    embedder: Embedder,
    floor: float | None = None,
    cache: EmbeddingCache | None = None,
) -> dict[str, Any]:
    """Return the comparison of one or more shadow texts with the live text and with each other, as JSON.

    Keys: `reason`; `similarity` (shadow to shadow: mean, min, max; None for one run); `inventory` (a run's headings and
    clause counts); `sections` (for each run matched pairs with their cosine, live sections without a counterpart, and
    the reverse); `themes` (sections matched across runs); `divergent_clauses` (for both sides the clauses farthest
    from their nearest counterpart). A matched pair counts as counterparts if its cosine is above `floor`, the upper
    end of the unrelated band; without a floor every assigned pair does.
    """
    texts: list[str] = []
    documents = [_lay_out(text, texts) for text in (live, *shadows)]
    # Clauses are often patterns, and runs share clauses: most of these texts were embedded before.
    embedded = (cache if cache is not None else EmbeddingCache()).embed(embedder, texts)
    if embedded.vectors is None:
        return {"reason": embedded.reason, "detail": embedded.detail}
    units = unit_vectors(embedded.vectors)
    base, runs = documents[0], documents[1:]
    return {
        "reason": "ok",
        "counterpart_floor": floor,
        "similarity": _similarity(units, [run.whole for run in runs]),
        "inventory": [_inventory(document) for document in runs],
        "live_inventory": _inventory(base),
        "sections": [_match_report(units, base, run, floor) for run in runs],
        "themes": _themes(units, runs),
        "divergent_clauses": {
            "live": _divergent(units, [base], runs),
            "shadow": _divergent(units, runs, [base]),
        },
    }


def assign(similarity: Float64[np.ndarray, "rows columns"]) -> list[tuple[int, int]]:
    """Return the pairing of rows with columns that maximises the sum of similarities (Kuhn 1955), sorted by row."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(similarity, maximize=True)
    return [(int(row), int(column)) for row, column in zip(rows, columns, strict=True)]


def _lay_out(text: str, texts: list[str]) -> _Document:
    sections = clause_sections(text)
    whole = len(texts)
    texts.append(text.strip())
    section_rows = tuple(range(len(texts), len(texts) + len(sections)))
    texts.extend(section_text(section) for section in sections)
    clauses = tuple((section.heading, clause.text) for section in sections for clause in section.clauses)
    clause_rows = tuple(range(len(texts), len(texts) + len(clauses)))
    texts.extend(text for _, text in clauses)
    return _Document(sections, whole, section_rows, clauses, clause_rows)


def _similarity(units: UnitVectors, rows: Sequence[int]) -> dict[str, float] | None:
    usable = [row for row in rows if units.reasons[row] == "ok"]
    if len(usable) < 2:
        return None
    vectors = units.rows[usable]
    values = (vectors @ vectors.T)[np.triu_indices(len(usable), k=1)]
    return {"mean": float(values.mean()), "min": float(values.min()), "max": float(values.max())}


def _inventory(document: _Document) -> list[dict[str, Any]]:
    return [{"heading": section.heading, "clauses": len(section.clauses)} for section in document.sections]


def _pairs(units: UnitVectors, a: _Document, b: _Document) -> list[tuple[int, int, float]]:
    if not a.sections or not b.sections:
        return []
    similarity = units.rows[list(a.section_rows)] @ units.rows[list(b.section_rows)].T
    return [(i, j, float(similarity[i, j])) for i, j in assign(similarity)]


def _match_report(units: UnitVectors, live: _Document, run: _Document, floor: float | None) -> dict[str, Any]:
    pairs = [pair for pair in _pairs(units, live, run) if floor is None or pair[2] > floor]
    matched_live, matched_run = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
    return {
        "matched": [
            {"live": live.sections[i].heading, "shadow": run.sections[j].heading, "cosine": value}
            for i, j, value in pairs
        ],
        "live_only": [s.heading for i, s in enumerate(live.sections) if i not in matched_live],
        "shadow_only": [s.heading for j, s in enumerate(run.sections) if j not in matched_run],
    }


def _themes(units: UnitVectors, runs: Sequence[_Document]) -> list[dict[str, Any]]:
    """Match every run's sections to those of the run with the most; a theme is one of its sections with its matches."""
    if len(runs) < 2:
        return []
    reference = max(range(len(runs)), key=lambda index: (len(runs[index].sections), -index))
    themes: list[dict[str, Any]] = [{"heading": section.heading, "matches": []} for section in runs[reference].sections]
    for index, run in enumerate(runs):
        if index == reference:
            continue
        for i, j, value in _pairs(units, runs[reference], run):
            themes[i]["matches"].append({"run": index, "heading": run.sections[j].heading, "cosine": value})
    for theme in themes:
        cosines = [match["cosine"] for match in theme["matches"]]
        theme["runs"] = 1 + len(cosines)
        theme["mean_cosine"] = float(np.mean(cosines)) if cosines else None
    return sorted(themes, key=lambda theme: -theme["runs"])


def _divergent(units: UnitVectors, documents: Sequence[_Document], others: Sequence[_Document]) -> list[dict[str, Any]]:
    """Return the clauses of `documents` that are farthest from their nearest clause in `others`; a clause that
    several runs wrote counts once, for the first of them."""
    theirs = [(clause, row) for other in others for clause, row in zip(other.clauses, other.clause_rows, strict=True)]
    found: list[dict[str, Any]] = []
    for index, document in enumerate(documents):
        for (heading, text), row in zip(document.clauses, document.clause_rows, strict=True):
            if not theirs or units.reasons[row] != "ok":
                continue
            cosines = units.rows[[other for _, other in theirs]] @ units.rows[row]
            best = int(np.argmax(cosines))
            found.append(
                {
                    "run": index if len(documents) > 1 else None,
                    "section": heading,
                    "clause": text,
                    "nearest": theirs[best][0][1],
                    "cosine": float(cosines[best]),
                }
            )
    unique = {item["clause"]: item for item in reversed(found)}
    return sorted(unique.values(), key=lambda item: item["cosine"])[:MOST_DIVERGENT]
