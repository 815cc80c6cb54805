"""Coordinates from a user's word vectors: read a word2vec-format text file, project to six principal components."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from engine.language.spectral import DIMENSIONS, fix_signs
from packs.errors import LanguagePackError
from packs.files import read_once
from packs.language.schema import LONGEST_WORD, MAX_LEXEMES
from packs.language.text import find_forbidden_character, is_nfc, word_key

MAX_EMBEDDING_BYTES = 2 * 1024**3
_PROBED_LINES = 1_000
_LONGEST_HEADER = 2


@dataclass(frozen=True)
class Embedding:
    """Word vectors in file order. `skipped` counts rows left out, by reason."""

    words: tuple[str, ...]
    vectors: Float[ndarray, "words width"]
    skipped: dict[str, int]


def read_word2vec(path: Path) -> Embedding:
    """Return the vectors of a word2vec text file.

    Taken in their stride: tokens with spaces, a missing header, trailing spaces, CRLF. Rows whose token cannot be a
    word of a pack (no letter, not NFC, controls, too long, look-up key of an earlier row) are left out and counted.

    Raises:
      LanguagePackError: no vectors, a row of another width, a number that is not finite, too many rows, not UTF-8.
    """
    lines = _lines(path)
    if lines and _is_header(lines):
        lines = lines[1:]
    if not lines:
        raise LanguagePackError(f"{path.name}: holds no vector")
    if len(lines) > MAX_LEXEMES:
        raise LanguagePackError(f"{path.name}: {len(lines)} rows, more than the {MAX_LEXEMES} allowed")
    width = _width(lines, path.name)
    words, rows, skipped = [], [], Counter[str]()
    keys: set[str] = set()
    for number, line in lines:
        token, values = _split(line, width, f"{path.name} line {number}")
        reason = _unfit(token, keys)
        if reason:
            skipped[reason] += 1
            continue
        keys.add(word_key(token))
        words.append(token)
        rows.append(values)
    if not words:
        raise LanguagePackError(f"{path.name}: no row's token is a word")
    return Embedding(words=tuple(words), vectors=np.array(rows), skipped=dict(skipped))


def project(vectors: Float[ndarray, "words width"]) -> Float[ndarray, "words 6"]:
    """Return the six leading principal components of the centred vectors, signs fixed; missing ones are zero.

    The eigenvectors are those of the covariance, so that 50,000 rows cost one small eigenproblem. Vectors are scaled
    by their largest magnitude first: tiny and huge ones neither vanish nor overflow.
    """
    largest = float(np.abs(vectors).max())
    if largest == 0.0:
        raise LanguagePackError("all vectors are zero: there is nothing to project")
    centred = vectors / largest
    centred = centred - centred.mean(axis=0)
    values, axes = np.linalg.eigh(centred.T @ centred / len(centred))
    order = np.argsort(-values, kind="stable")[:DIMENSIONS]
    projected = np.zeros((len(vectors), DIMENSIONS))
    projected[:, : len(order)] = centred @ fix_signs(axes[:, order])
    return projected


def _lines(path: Path) -> list[tuple[int, str]]:
    raw = read_once(path, MAX_EMBEDDING_BYTES)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LanguagePackError(f"{path.name}: not UTF-8 at byte {error.start}") from None
    return [(number, line.rstrip(" \t\r")) for number, line in enumerate(text.split("\n"), 1) if line.strip(" \t\r")]


def _is_header(lines: Sequence[tuple[int, str]]) -> bool:
    """Is the first line `count width`? A one-dimensional vector would look the same but for the rows that follow."""
    fields = lines[0][1].split()
    if len(fields) != _LONGEST_HEADER or not all(field.isascii() and field.isdigit() for field in fields):
        return False
    return len(lines) == 1 or len(lines[1][1].split()) > _LONGEST_HEADER or int(fields[1]) == 1


def _width(lines: Sequence[tuple[int, str]], name: str) -> int:
    """Return the number of values a row: tokens may end in numbers, so the commonest count of trailing numbers."""
    counts = Counter(_trailing_numbers(line) for _, line in lines[:_PROBED_LINES])
    width = max(counts, key=lambda count: (counts[count], -count))
    if width < 1:
        raise LanguagePackError(f"{name}: rows are not `token value value ...`")
    return width


def _trailing_numbers(line: str) -> int:
    fields = line.split(" ") if "\t" not in line else line.split()
    count = 0
    for field in reversed(fields[1:]):
        try:
            float(field)
        except ValueError:
            break
        count += 1
    return count


def _split(line: str, width: int, where: str) -> tuple[str, Float[ndarray, " width"]]:
    fields = line.rsplit(maxsplit=width)
    if len(fields) != width + 1:
        raise LanguagePackError(f"{where}: {len(fields) - 1} values, where other rows have {width}")
    try:
        values = np.array([float(field) for field in fields[1:]])
    except ValueError:
        raise LanguagePackError(f"{where}: fewer than {width} numbers after the token") from None
    if not np.isfinite(values).all():
        raise LanguagePackError(f"{where}: a value is not finite")
    return " ".join(fields[0].split()), values


def _unfit(token: str, keys: set[str]) -> str:
    if len(token) > LONGEST_WORD:
        return "longer than a word may be"
    if find_forbidden_character(token) is not None or not is_nfc(token):
        return "control, invisible or unnormalised characters"
    key = word_key(token)
    if not key:
        return "no letter or digit"
    return "same look-up key as an earlier row" if key in keys else ""
