"""Unicode rules shared by the loader, the builder and the encoder: what is refused, how look-up folds, what a word is.

Display keeps every diacritic; only look-up keys are folded (UAX #15 for NFC/NFKD, Unicode §5.18 for case folding).
"""

import functools
import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

FINAL_LETTERS = {"ך": "כ", "ם": "מ", "ן": "נ", "ף": "פ", "ץ": "צ", "ς": "σ"}
"""Word-final letter forms and the letter each one is; five Hebrew, one Greek."""

APOSTROPHES = {"’": "'", "ʼ": "'", "‘": "'", "׳": "'", "״": '"', "“": '"', "”": '"'}
"""Typographic apostrophes, geresh and gershayim, folded to the plain signs that people type."""

BIDI_CONTROLS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
INVISIBLE_MARKS = frozenset({0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10)})
"""Characters that render as nothing although their category says letter or mark."""

_INVISIBLE = frozenset(map(chr, INVISIBLE_MARKS))

_REFUSED_CATEGORIES = {
    "Cc": "control character",
    "Cf": "invisible format character",
    "Cs": "surrogate",
    "Co": "private-use character",
    "Cn": "unassigned character",
    "Zl": "line separator",
    "Zp": "paragraph separator",
}

_FOLD_TABLE = str.maketrans({**FINAL_LETTERS, **APOSTROPHES})
_NAMED_SCRIPTS = ("LATIN", "HEBREW", "GREEK", "CYRILLIC", "ARABIC", "ARMENIAN", "COPTIC", "CHEROKEE", "GEORGIAN")


class Token(NamedTuple):
    """A word of a text: as written, its look-up key, and where it stands (code points, end exclusive)."""

    surface: str
    key: str
    start: int
    end: int


def describe_character(character: str) -> str:
    """Name a character so that it can be printed safely: `U+202E RIGHT-TO-LEFT OVERRIDE`."""
    return f"U+{ord(character):04X} {unicodedata.name(character, 'unnamed')}"


def find_forbidden_character(text: str, *, allowed: str = "") -> tuple[int, str] | None:
    """Return offset and kind of the first character that may not stand in any string, or None.

    Refused: controls, format characters (bidirectional and zero-width ones among them), surrogates, private use,
    unassigned code points, separators other than the space, and letters or marks that render as nothing.
    """
    # What does not print is "other" or a separator that is not the space: all that is refused below, but for the marks.
    rest = text
    for character in allowed:
        rest = rest.replace(character, "")
    if rest.isprintable() and (rest.isascii() or _INVISIBLE.isdisjoint(rest)):
        return None
    for offset, character in enumerate(text):
        if character in allowed:
            continue
        if character in BIDI_CONTROLS:
            return offset, "bidirectional control"
        kind = _REFUSED_CATEGORIES.get(unicodedata.category(character))
        if kind is None and ord(character) in INVISIBLE_MARKS:
            kind = "invisible mark"
        if kind is None and character != " " and unicodedata.category(character) == "Zs":
            kind = "unusual space"
        if kind is not None:
            return offset, kind
    return None


def is_nfc(text: str) -> bool:
    """Is the text in Unicode normalisation form C?"""
    return unicodedata.is_normalized("NFC", text)


def fold(text: str) -> str:
    """Return the look-up key of a word or text: no case, no marks, no final letters, plain apostrophes. Idempotent."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKD", text).translate(_WITHOUT_MARKS)
    folded = unicodedata.normalize("NFKD", folded.casefold()).translate(_WITHOUT_MARKS)
    return unicodedata.normalize("NFC", folded.translate(_FOLD_TABLE))


def tokenise(text: str) -> tuple[Token, ...]:
    """Split a text into words: runs of letters, marks and digits, with inner apostrophes and gershayim."""
    kinds = text.translate(_KINDS)
    runs = _RUN.finditer(kinds) if '"' not in kinds else _RUN.finditer(_gershayim_settled(text, kinds))
    found = ((run.start(), run.end()) for run in runs)
    words = (Token(text[start:end], _word_folded(text[start:end]), start, end) for start, end in found)
    return tuple(word for word in words if word.key)


def _gershayim_settled(text: str, kinds: str) -> str:
    """Return `kinds` with each double sign as one that joins or as one that parts."""
    settled = {True: "'", False: " "}
    return "".join(settled[_joins_letters(text, at)] if kind == '"' else kind for at, kind in enumerate(kinds))


class _Table(dict[int, str | None]):
    """A table for `str.translate` that asks `kind` for each character once, and keeps the answers of the first few."""

    def __init__(self, kind: Callable[[str], str | None]) -> None:
        super().__init__()
        self._kind = kind

    def __missing__(self, code: int) -> str | None:
        answer = self._kind(chr(code))
        if len(self) < 8_192:
            self[code] = answer
        return answer


def _kind(character: str) -> str:
    """What a character is to `tokenise`: `w` in a word, `'` or `"` a sign that may join, a space anything else."""
    sign = APOSTROPHES.get(character, character)
    return "w" if _is_word(character) else sign if sign in ("'", '"') else " "


_KINDS = _Table(_kind)
_WITHOUT_MARKS = _Table(lambda character: None if unicodedata.category(character) in ("Mn", "Me") else character)
_RUN = re.compile("w+(?:'w+)*")


def in_word(text: str, offset: int) -> bool:
    """Does the character belong to a word: is it a letter, mark or digit, or a sign that joins two letters?"""
    return _is_word(text[offset]) or _joins_letters(text, offset)


@functools.lru_cache(maxsize=131_072)
def word_key(text: str) -> str:
    """Return the look-up key of a lemma or form of one or several words: its words' keys, joined by one space."""
    return " ".join(token.key for token in tokenise(text))


def scripts_of(text: str) -> frozenset[str]:
    """Return the scripts of a text's letters: `Latin`, `Hebrew`, `Greek`, ..., or `Other`. Digits and marks have none.

    The standard library has no script property; the first word of a letter's Unicode name is the script for all
    alphabets that are told apart here.
    """
    if text.isascii():
        return frozenset({"Latin"}) if any(map(str.isalpha, text)) else frozenset()
    return frozenset(filter(None, map(_script_of, text)))


@functools.lru_cache(maxsize=4_096)
def _script_of(character: str) -> str | None:
    if unicodedata.category(character)[0] != "L":
        return None
    name = unicodedata.name(character, "")
    script = next((s.capitalize() for s in _NAMED_SCRIPTS if name.startswith(s + " ")), _other_script(name))
    return None if script == "Common" else script


def _other_script(name: str) -> str:
    common = ("MICRO SIGN", "FEMININE ORDINAL INDICATOR", "MASCULINE ORDINAL INDICATOR", "MODIFIER LETTER")
    return "Common" if name.startswith(common) else "Other"


_word_folded = functools.lru_cache(maxsize=131_072)(fold)


def _is_word(character: str) -> bool:
    return unicodedata.category(character)[0] in "LMN"


def _joins_letters(text: str, offset: int) -> bool:
    """Is this an apostrophe or gershayim between two letters (`truth's`, `חז"ל`)?"""
    sign = APOSTROPHES.get(text[offset], text[offset])
    if sign not in ("'", '"') or not 0 < offset < len(text) - 1:
        return False
    before, after = text[offset - 1], text[offset + 1]
    if not (_is_word(before) and _is_word(after)):
        return False
    return sign == "'" or scripts_of(before + after) == {"Hebrew"}
