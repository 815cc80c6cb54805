"""Tidy result tables: one row per prompt x identity x language x seed (x swept setting), as Parquet and CSV."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.base.errors import RecordError
from experiments.rundir import write_bytes

Row = dict[str, Any]

REQUIRED_COLUMNS = (
    "prompt_id",
    "identity",
    "language",
    "seed",
    "surface",
    "tokens",
    "alignment",
    "leakage",
    "flagged",
    "hedge",
    "refusal",
    "max_residual",
    "first_violation",
    "steps",
    "safety_sha256",
    "identity_sha256",
    "language_sha256",
    "status",
)
SETTING_COLUMNS = ("alpha", "perturb", "max_steps")
"""Settings that a sweep can vary beside packs and seed; with `ROW_KEY` they name a row."""

ROW_KEY = ("prompt_id", "identity", "language", "seed", *SETTING_COLUMNS)
INTEGERS = ("seed", "first_violation", "steps", "max_steps")
NUMBERS = ("alignment", "leakage", "max_residual", "alpha", "perturb")
FLAGS = ("flagged", "ratified")


def to_table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return the rows as a `pyarrow.Table` whose column types depend on their names alone, not on the values.

    Raises `RecordError` where a row lacks a column that every result has.
    """
    import pyarrow as pa

    names: list[str] = list(REQUIRED_COLUMNS)
    for row in rows:
        missing = [name for name in REQUIRED_COLUMNS if name not in row]
        if missing:
            raise RecordError(f"a result row lacks {', '.join(missing)}")
        names += [name for name in row if name not in names]
    return pa.table({name: pa.array([row.get(name) for row in rows], type=_column_type(name)) for name in names})


def _column_type(name: str) -> Any:
    import pyarrow as pa

    if name in INTEGERS:
        return pa.int64()
    if name in NUMBERS:
        return pa.float64()
    return pa.bool_() if name in FLAGS else pa.string()


def write_table(folder: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write `results.parquet` and `results.csv` in `folder`. Lists (`tokens`, `final_motor`) are JSON text in both."""
    write_bytes(folder / "results.parquet", table_bytes(rows))
    write_bytes(folder / "results.csv", csv_bytes(rows))


def table_bytes(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the rows as a Parquet file."""
    import pyarrow.parquet

    sink = io.BytesIO()
    pyarrow.parquet.write_table(to_table(rows), sink)
    return sink.getvalue()


def csv_bytes(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the rows as CSV; numbers are written so that they read back as the same float64."""
    import pyarrow.csv

    sink = io.BytesIO()
    pyarrow.csv.write_csv(to_table(rows), sink)
    return sink.getvalue()


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a `results.parquet`. Raises `RecordError` where it is absent or damaged."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        rows: list[Row] = pyarrow.parquet.read_table(path).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error
    return rows


def row_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what names a row in a sweep."""
    return tuple(row.get(name) for name in ROW_KEY)
