"""Bounds on the texts and numbers that every pack schema shares."""

from packs.errors import PackFormatError
from packs.ids import require_id, shown
from packs.seal import is_number


def require_text(value: object, *, what: str, longest: int = 2000, may_be_empty: bool = False) -> str:
    """Return `value` if it is one line of printable text, else raise `PackFormatError` that names `what`.

    Control, format (zero-width, bidirectional) and unassigned characters are refused: what an auditor reads is what is
    there.
    """
    if not isinstance(value, str):
        raise PackFormatError(f"{what}: {shown(value)} is not a text")
    if not value.isprintable():
        raise PackFormatError(f"{what}: holds a control or invisible character")
    if len(value) > longest:
        raise PackFormatError(f"{what}: longer than {longest} characters")
    if not value.strip() and not may_be_empty:
        raise PackFormatError(f"{what}: empty")
    return value


def require_number(value: object, low: float, high: float, *, what: str) -> float:
    """Return `value` as a float if it is a number in [low, high]; booleans are not numbers."""
    if not isinstance(value, int | float) or not is_number(value) or not low <= value <= high:
        raise PackFormatError(f"{what}: {shown(value)} is not a number in [{low:g}, {high:g}]")
    return float(value)


def require_ids(value: object, *, what: str, most: int = 256) -> tuple[str, ...]:
    """Return a non-empty list of unique ids as a tuple, else raise `PackFormatError` that names `what`."""
    if not isinstance(value, list) or not value:
        raise PackFormatError(f"{what}: must be a list of at least one id")
    if len(value) > most:
        raise PackFormatError(f"{what}: more than {most} ids")
    seen: set[str] = set()
    for item in value:
        name = require_id(item, what=what)
        if name in seen:
            raise PackFormatError(f"{what}: {name} is there twice")
        seen.add(name)
    return tuple(value)
