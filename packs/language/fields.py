"""Typed reading of one JSON object: each accessor checks type and bounds and names file and row when it refuses."""

from collections.abc import Mapping
from typing import Any

from packs.errors import LanguagePackError
from packs.ids import is_id, shown
from packs.language.text import describe_character, find_forbidden_character, is_nfc
from packs.seal import is_number


class Fields:
    """One object of a pack file with exactly the fields given; `where` names it in errors (`lexicon.json row 12`)."""

    def __init__(
        self, value: object, where: str, required: frozenset[str], optional: frozenset[str] = frozenset()
    ) -> None:
        if not isinstance(value, dict):
            raise LanguagePackError(f"{where}: {shown(value)} is not an object")
        unknown = sorted(set(value) - required - optional)
        if unknown:
            raise LanguagePackError(f"{where}: unknown field {shown(unknown[0])}")
        missing = sorted(required - set(value))
        if missing:
            raise LanguagePackError(f"{where}: without the field {missing[0]}")
        self._value: Mapping[str, Any] = value
        self.where = where

    def text(self, name: str, *, longest: int, empty: bool = False) -> str:
        """Return a string field: NFC, no forbidden character, no space at its ends, at most `longest` code points."""
        return check_text(self._value[name], f"{self.where}: {name}", longest=longest, empty=empty)

    def identifier(self, name: str, *, empty: bool = False) -> str:
        """Return a field of the id grammar (or, where allowed, the empty string)."""
        value = self._value[name]
        if isinstance(value, str) and (is_id(value) or (empty and value == "")):
            return value
        raise LanguagePackError(f"{self.where}: {name} {shown(value)} is not an identifier [a-z][a-z0-9_]{{0,63}}")

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        """Return a field that is one of `allowed`."""
        value = self._value[name]
        if isinstance(value, str) and value in allowed:
            return value
        raise LanguagePackError(f"{self.where}: {name} {shown(value)} is none of {', '.join(allowed)}")

    def flag(self, name: str) -> bool:
        """Return a boolean field."""
        value = self._value[name]
        if isinstance(value, bool):
            return value
        raise LanguagePackError(f"{self.where}: {name} {shown(value)} is not true or false")

    def integer(self, name: str, *, low: int, high: int) -> int:
        """Return an integer field within bounds."""
        value = self._value[name]
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise LanguagePackError(f"{self.where}: {name} {shown(value)} is not an integer from {low} to {high}")

    def number(self, name: str, *, low: float, high: float) -> float:
        """Return a number field within bounds."""
        return _number(self._value[name], f"{self.where}: {name}", low, high)

    def vector(self, name: str, *, length: int, bound: float) -> tuple[float, ...]:
        """Return a list field of `length` numbers, each at most `bound` in magnitude."""
        value = self._value[name]
        if not isinstance(value, list) or len(value) != length:
            raise LanguagePackError(f"{self.where}: {name} is not a list of {length} numbers")
        return tuple(_number(item, f"{self.where}: {name}", -bound, bound) for item in value)

    def items(self, name: str, *, most: int) -> list[Any]:
        """Return a list field of at most `most` items."""
        value = self._value[name]
        if not isinstance(value, list) or len(value) > most:
            raise LanguagePackError(f"{self.where}: {name} is not a list of at most {most} items")
        return value

    def mapping(self, name: str, *, most: int) -> dict[str, Any]:
        """Return an object field of at most `most` entries."""
        value = self._value[name]
        if not isinstance(value, dict) or len(value) > most:
            raise LanguagePackError(f"{self.where}: {name} is not an object of at most {most} entries")
        return value

    def has(self, name: str) -> bool:
        """Return whether an optional field is there."""
        return name in self._value


def check_text(value: object, where: str, *, longest: int, empty: bool = False, allowed: str = "") -> str:
    """Return `value` if it is a clean string, else raise `LanguagePackError` that shows what is wrong, escaped."""
    if not isinstance(value, str):
        raise LanguagePackError(f"{where} {shown(value)} is not a string")
    if not value and not empty:
        raise LanguagePackError(f"{where} is empty")
    if len(value) > longest:
        raise LanguagePackError(f"{where} has {len(value)} characters, more than the {longest} allowed")
    if value.strip(" ") != value:
        raise LanguagePackError(f"{where} {shown(value)} begins or ends with a space")
    fault = find_forbidden_character(value, allowed=allowed)
    if fault is not None:
        offset, kind = fault
        raise LanguagePackError(f"{where} holds a {kind}, {describe_character(value[offset])}, at character {offset}")
    if not is_nfc(value):
        raise LanguagePackError(f"{where} {shown(value)} is not in normalisation form C")
    return value


def _number(value: object, where: str, low: float, high: float) -> float:
    if isinstance(value, int | float) and is_number(value) and low <= value <= high:
        return float(value)
    raise LanguagePackError(f"{where} {shown(value)} is not a number from {low} to {high}")
