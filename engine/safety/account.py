"""The runtime's own account of what went wrong on the way: every exception it met and every substitute it used.

An entry names the seam, what happened, and where its user can see it. An entry with nowhere to be seen is a silent
correction, and the check of `no_silent_correction` says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum


class IncidentKind(StrEnum):
    """An exception that was turned into a result, or something used in place of what was asked for."""

    EXCEPTION = "exception"
    FALLBACK = "fallback"


@dataclass(frozen=True)
class Incident:
    """`shown_in` names the field of a result that says so (`row 3: refusal`); empty means that nothing does."""

    seam: str
    kind: IncidentKind
    detail: str
    shown_in: str


@dataclass
class Account:
    """Append-only list of incidents of one run. Nothing is ever taken out."""

    _entries: list[Incident] = field(default_factory=list)

    def exception(self, seam: str, error: BaseException, *, shown_in: str) -> None:
        """Enter an exception that became a result."""
        self._entries.append(Incident(seam, IncidentKind.EXCEPTION, f"{type(error).__name__}: {error}", shown_in))

    def fallback(self, seam: str, detail: str, *, shown_in: str) -> None:
        """Enter a substitute that was used."""
        self._entries.append(Incident(seam, IncidentKind.FALLBACK, detail, shown_in))

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """What was entered so far, in order."""
        return tuple(self._entries)

    def __iter__(self) -> Iterator[Incident]:
        return iter(self.incidents)

    def __len__(self) -> int:
        return len(self._entries)
