"""Run every attack table and print what came of it: `python -m tests.attacks.report [--json]`.

Exit code 0 only if every row ended as its table says, with no traceback and no hang.
"""

import argparse
import collections
import importlib
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from engine.base.precision import enable_x64
from tests.attacks.rows import Outcome, Row, try_row

MODULES = (
    "tests.attacks.safety_rows",
    "tests.attacks.identity_rows",
    "tests.attacks.environment_rows",
    "tests.attacks.override_rows",
    "tests.attacks.runtime_rows",
    "tests.attacks.record_rows",
    "tests.attacks.pattern_rows",
)
"""Modules with `rows()`, one for each trust boundary."""


def run_tables(modules: Iterable[str] = MODULES) -> Iterator[Outcome]:
    """Yield the outcome of every row, each in a folder of its own."""
    for name in modules:
        for row in importlib.import_module(name).rows():
            yield run_row(row)


def run_row(row: Row) -> Outcome:
    """Return the outcome of one row in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        return try_row(row, Path(folder))


def totals(outcomes: Iterable[Outcome]) -> dict[str, dict[str, int]]:
    """Return, for each table and for all of them, rows tried, must-refuse rows, and how they ended."""
    counts: dict[str, collections.Counter[str]] = {}
    for outcome in outcomes:
        for table in (outcome.row.table, "all"):
            count = counts.setdefault(table, collections.Counter())
            count["rows"] += 1
            count["must refuse"] += outcome.row.expected is not None
            count[outcome.verdict] += 1
    columns = ("rows", "must refuse", "as expected", "unexpected", "traceback", "hang")
    return {table: {column: counts[table][column] for column in columns} for table in sorted(counts, key=_all_last)}


def _all_last(table: str) -> tuple[bool, str]:
    return table == "all", table


def main(arguments: list[str] | None = None) -> int:
    """Run the tables and print their totals; a row that did not end as expected is named on stderr."""
    parser = argparse.ArgumentParser(prog="tests.attacks.report", description=__doc__, allow_abbrev=False)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(arguments)
    enable_x64()
    outcomes = list(run_tables())
    for outcome in outcomes:
        if outcome.verdict != "as expected":
            sys.stderr.write(f"{outcome.verdict}: {outcome.row}: {outcome.detail}\n")
    table = totals(outcomes)
    sys.stdout.write((json.dumps(table, indent=2) if options.json else _text(table)) + "\n")
    whole = table.get("all", {})
    return 0 if whole and whole["as expected"] == whole["rows"] else 1


def _text(table: dict[str, dict[str, int]]) -> str:
    width = max(len(name) for name in table)
    lines = [f"{'table':<{width}}  " + "  ".join(table["all"])]
    lines += [
        f"{name:<{width}}  " + "  ".join(f"{value:>{len(column)}}" for column, value in counts.items())
        for name, counts in table.items()
    ]
    whole = table["all"]
    lines.append(
        "rows tried / with the expected outcome / tracebacks / hangs = "
        f"{whole['rows']} / {whole['as expected']} / {whole['traceback']} / {whole['hang']}"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
