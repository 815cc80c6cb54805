"""Sections and clauses of a constitution, in the shapes found in the wild.

A heading is a Markdown heading, a bold line (`**Name:**`) or a line ending in a colon that a list follows; a clause
is a list item. The same parser serves validation, the comparison of two texts and the amend arm.
"""

import re
from dataclasses import dataclass

_MARKDOWN_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*$")
_BOLD_HEADING = re.compile(r"^ {0,3}\*\*(.+?)\*\*:?[ \t]*$")
_COLON_HEADING = re.compile(r"^(?![-*+•>\d\"“])(\S.{0,118}?):[ \t]*$")
_CLAUSE = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])[ \t]+(.+)$")
_QUOTES = {'"': '"', "“": "”", "«": "»", "„": "“"}
_BOLD_LEVEL = 7
_COLON_LEVEL = 8


@dataclass(frozen=True)
class Clause:
    """One list item: its text without the surrounding quotes, and whether it was quoted."""

    text: str
    quoted: bool


@dataclass(frozen=True)
class ParsedSection:
    """A heading with the clauses under it. `level` is 1 to 6 for Markdown headings and deeper for the informal
    kinds."""

    heading: str
    level: int
    clauses: tuple[Clause, ...]
    body: str = ""


def parse_sections(text: str) -> tuple[ParsedSection, ...]:
    """Return every headed section of `text` in order, those without clauses included. Clauses before any heading are
    gathered under an empty heading of level 0."""
    sections: list[ParsedSection] = []
    heading, level, clauses, body = "", 0, list[Clause](), list[str]()
    lines = text.splitlines()
    for index, line in enumerate(lines):
        found = _heading(line, _next_text(lines, index + 1))
        if found is None:
            clause = _clause(line)
            if clause is not None:
                clauses.append(clause)
            elif clauses and line[:1] in (" ", "\t") and line.strip():
                clauses[-1] = _continued(clauses[-1], line.strip())
            elif line.strip():
                body.append(line.strip())
            continue
        if heading or clauses:
            sections.append(ParsedSection(heading, level, tuple(clauses), " ".join(body)))
        (heading, level), clauses, body = found, [], []
    if heading or clauses:
        sections.append(ParsedSection(heading, level, tuple(clauses), " ".join(body)))
    return tuple(sections)


def clause_sections(text: str) -> tuple[ParsedSection, ...]:
    """Return the sections of `text` that have clauses: titles, source lines and containers are left out."""
    return tuple(section for section in parse_sections(text) if section.clauses)


def section_text(section: ParsedSection) -> str:
    """Return a section as one text for embedding: heading, body and clauses."""
    parts = [section.heading, section.body, *(clause.text for clause in section.clauses)]
    return "\n".join(part for part in parts if part)


def _heading(line: str, following: str) -> tuple[str, int] | None:
    if match := _MARKDOWN_HEADING.match(line):
        return _title(match.group(2)), len(match.group(1))
    if match := _BOLD_HEADING.match(line):
        return _title(match.group(1)), _BOLD_LEVEL
    if (match := _COLON_HEADING.match(line)) and _CLAUSE.match(following):
        return _title(match.group(1)), _COLON_LEVEL
    return None


def _title(text: str) -> str:
    return text.strip().strip("*_").strip().rstrip(":").strip()


def _next_text(lines: list[str], start: int) -> str:
    return next((line for line in lines[start : start + 3] if line.strip()), "")


def _clause(line: str) -> Clause | None:
    match = _CLAUSE.match(line)
    return None if match is None else _unquoted(match.group(1).strip())


def _continued(clause: Clause, more: str) -> Clause:
    if not clause.quoted and clause.text[:1] in _QUOTES:
        return _unquoted(f"{clause.text} {more}")
    return Clause(f"{clause.text} {more}", clause.quoted)


def _unquoted(text: str) -> Clause:
    closing = _QUOTES.get(text[:1])
    trimmed = text.rstrip(".,; ")
    if closing is not None and len(trimmed) > 1 and trimmed.endswith(closing):
        return Clause(trimmed[1:-1].strip(), True)
    return Clause(text, False)
