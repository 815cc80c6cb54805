"""What a generated constitution must look like. Faults are recorded and returned with the text, never mended."""

import re

from engine.instruments.render import find_control_tokens
from engine.instruments.sections import ParsedSection, parse_sections

MIN_CHARS = 200
MAX_CHARS = 20_000
MAX_CLAUSES = 4
_MAX_HEADING = 160

_SECRETS = re.compile(
    r"""
      -----BEGIN\ [A-Z ]{0,30}PRIVATE\ KEY-----
    | \bAKIA[0-9A-Z]{16}\b
    | \bgh[pousr]_[A-Za-z0-9]{30,}
    | \bgithub_pat_[A-Za-z0-9_]{30,}
    | \bsk-[A-Za-z0-9_-]{20,}
    | \bxox[abprs]-[A-Za-z0-9-]{10,}
    | \bAIza[0-9A-Za-z_-]{35}\b
    | \beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}
    | \b(?:api[_-]?key|secret|token|passw(?:or)?d)\s*[:=]\s*["']?(?=[A-Za-z+/_-]*\d)[A-Za-z0-9+/_-]{16,}
    """,
    re.VERBOSE | re.IGNORECASE,
)


def validate(text: str) -> tuple[str, ...]:
    """Return the faults of a generated constitution, each `code: detail` on one line; empty when there is none.

    Codes: `too_short`, `too_long`, `no_headings`, `clause_count` (a section without one to four quoted clauses),
    `control_tokens`, `secrets` (the secret itself is not repeated).
    """
    faults: list[str] = []
    size = len(text.strip())
    if size < MIN_CHARS:
        faults.append(f"too_short: {size} characters, fewer than {MIN_CHARS}")
    if size > MAX_CHARS:
        faults.append(f"too_long: {size} characters, more than {MAX_CHARS}")
    faults.extend(_section_faults(parse_sections(text)))
    if tokens := find_control_tokens(text):
        faults.append(f"control_tokens: {len(tokens)} chat-control tokens, the first {tokens[0]!a}")
    if _SECRETS.search(text):
        faults.append("secrets: the text holds what looks like a credential")
    return tuple(faults)


def _section_faults(sections: tuple[ParsedSection, ...]) -> list[str]:
    if not any(section.heading for section in sections):
        return ["no_headings: the text has no section headings"]
    faults = []
    for index, section in enumerate(sections):
        quoted = sum(clause.quoted for clause in section.clauses)
        name = ascii(section.heading[:_MAX_HEADING])
        if not section.clauses:
            if not _is_title(sections, index):
                faults.append(f"clause_count: section {name} has no clauses")
        elif not 1 <= quoted <= MAX_CLAUSES or quoted != len(section.clauses):
            counted = f"{quoted} quoted of {len(section.clauses)} clauses"
            faults.append(f"clause_count: section {name} has {counted}, not 1 to {MAX_CLAUSES}")
    return faults


def _is_title(sections: tuple[ParsedSection, ...], index: int) -> bool:
    """A heading without clauses is a title before the first clause, or a container when the next heading is deeper."""
    if index + 1 == len(sections):
        return False
    first_with_clauses = next((i for i, section in enumerate(sections) if section.clauses), len(sections))
    return index < first_with_clauses or sections[index + 1].level > sections[index].level
