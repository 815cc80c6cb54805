"""Read the author's tables: UTF-8 NFC text, tab-separated or CSV, a header line, `#` comments.

Errors name file and line.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packs.errors import LanguagePackError
from packs.files import read_once
from packs.ids import shown
from packs.language.fields import check_text

MAX_TABLE_BYTES = 256 * 1024**2
LONGEST_CELL = 4_096


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its cells by column name and where it stands (`relations.tsv line 12`)."""

    cells: Mapping[str, str]
    where: str

    def __getitem__(self, column: str) -> str:
        return self.cells.get(column, "")

    def flag(self, column: str) -> bool:
        """Return a `0`/`1` cell as a boolean; empty is 0."""
        value = self[column]
        if value not in ("", "0", "1"):
            raise LanguagePackError(f"{self.where}: {column} is {shown(value)}, not 0 or 1")
        return value == "1"

    def number(self, column: str) -> float:
        """Return a cell as a number."""
        try:
            return float(self[column])
        except ValueError:
            raise LanguagePackError(f"{self.where}: {column} is {shown(self[column])}, not a number") from None


def read_table(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> tuple[Row, ...]:
    """Return the rows of a tab-separated table whose header holds `required` and at most `optional` besides.

    Raises `LanguagePackError` (or `PackFormatError` from the reader) naming file, line and cell.
    """
    lines = _content_lines(_decode(path))
    return _rows(((number, line.split("\t")) for number, line in lines), path.name, required, optional)


def read_user_table(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> tuple[Row, ...]:
    """Return the rows of a user's table: CSV by the standard quoting rules where the name ends in `.csv`, else TSV."""
    if path.suffix.lower() != ".csv":
        return read_table(path, required, optional)
    reader = csv.reader(io.StringIO(_decode(path), newline=""), strict=True)
    try:
        records = [(reader.line_num, record) for record in reader if record]
    except csv.Error as error:
        raise LanguagePackError(f"{path.name} line {reader.line_num}: not CSV: {error}") from None
    return _rows(iter(records), path.name, required, optional)


def read_source(path: Path) -> str:
    """Return an authored source text: UTF-8, NFC, line feeds only, no forbidden character."""
    text = _decode(path)
    check_text(text.strip(" "), path.name, longest=MAX_TABLE_BYTES, allowed="\n")
    return text


def _decode(path: Path) -> str:
    raw = read_once(path, MAX_TABLE_BYTES)
    if raw.startswith(b"\xef\xbb\xbf"):
        raise LanguagePackError(f"{path.name}: starts with a byte order mark; save it as plain UTF-8")
    try:
        return raw.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise LanguagePackError(f"{path.name}: not UTF-8 at byte {error.start}") from None


def _content_lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip() and not line.startswith("#"):
            yield number, line


def _rows(
    records: Iterator[tuple[int, list[str]]], name: str, required: Sequence[str], optional: Sequence[str]
) -> tuple[Row, ...]:
    first = next(records, None)
    if first is None:
        raise LanguagePackError(f"{name}: empty; the first line names the columns {', '.join(required)}")
    header = [cell.strip() for cell in first[1]]
    _check_header(header, name, required, optional)
    rows = []
    for number, cells in records:
        where = f"{name} line {number}"
        if len(cells) > len(header):
            raise LanguagePackError(f"{where}: {len(cells)} cells for {len(header)} columns")
        padded = cells + [""] * (len(header) - len(cells))
        checked = {
            column: check_text(cell, f"{where}: {column}", longest=LONGEST_CELL, empty=True)
            for column, cell in zip(header, padded, strict=True)
        }
        empty = [column for column in required if not checked[column] and column not in _MAY_BE_EMPTY]
        if empty:
            raise LanguagePackError(f"{where}: {empty[0]} is empty")
        rows.append(Row(cells=checked, where=where))
    return tuple(rows)


_MAY_BE_EMPTY = frozenset({"gloss", "inverse", "symmetric", "questions", "operators"})


def _check_header(header: list[str], name: str, required: Sequence[str], optional: Sequence[str]) -> None:
    missing = [column for column in required if column not in header]
    if missing:
        raise LanguagePackError(f"{name}: without the column {missing[0]}; the first line names the columns")
    unknown = [column for column in header if column not in (*required, *optional)]
    if unknown:
        raise LanguagePackError(f"{name}: unknown column {shown(unknown[0])}")
    if len(set(header)) != len(header):
        raise LanguagePackError(f"{name}: a column is named twice")
