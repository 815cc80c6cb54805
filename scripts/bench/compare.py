"""Compare two files of figures: `python -m scripts.bench.compare OLD NEW [--limit 1.5]`.

Times of two runs differ with the machine's mood; multiples of a floor much less. Figures are compared as ratios,
new/old. Exit code 1 if a multiple of a floor has grown by more than the limit; other figures are shown and decide
nothing.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

MULTIPLES = ("floors", "propagate", "step by step", "blocks, unchecked", "multiple")
"""Metrics that are multiples of what was measured in the same run, so that two runs can be held against each other."""

Figures = Mapping[tuple[str, str, str], float]


def read(path: Path) -> Figures:
    """Return the figures of a file by benchmark, case and metric. Raises `SystemExit` with a line where it is none."""
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        lines = [row for row in rows if not isinstance(row, dict) or "machine" not in row]
        return {(line["bench"], line["case"], line["metric"]): float(line["value"]) for line in lines}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"compare: {path} is no file of figures: {error}") from error


def compared(old: Figures, new: Figures, limit: float) -> tuple[list[str], list[str]]:
    """Return a table of all ratios, and the lines of those multiples that grew by more than `limit`."""
    rows = ["| bench | case | metric | old | new | new / old |", "|---|---|---|---|---|---|"]
    worse = []
    for key in sorted(set(old) & set(new)):
        ratio = new[key] / old[key] if old[key] else float("inf") if new[key] else 1.0
        line = f"| {' | '.join(key)} | {old[key]:.4g} | {new[key]:.4g} | {ratio:.2f} |"
        rows.append(line)
        if key[2] in MULTIPLES and ratio > limit:
            worse.append(line)
    for key in sorted(set(old) ^ set(new)):
        rows.append(f"| {' | '.join(key)} | {_cell(old, key)} | {_cell(new, key)} | – |")
    return rows, worse


def _cell(figures: Figures, key: tuple[str, str, str]) -> str:
    return f"{figures[key]:.4g}" if key in figures else "–"


def main() -> int:
    """Print the table; 1 if a multiple grew by more than the limit."""
    parser = argparse.ArgumentParser(prog="python -m scripts.bench.compare", description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--limit", type=float, default=1.5, help="largest growth of a multiple (1.5)")
    arguments = parser.parse_args()
    rows, worse = compared(read(arguments.old), read(arguments.new), arguments.limit)
    print("\n".join(rows))
    for line in worse:
        print(f"worse: {line}", file=sys.stderr)
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())
