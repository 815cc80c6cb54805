"""The table that a sweep prints when it is done."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TABLE_WIDTH = 200
"""Columns of the table where stdout is no terminal."""


def print_summary(folder: Path, summary: Mapping[str, Any]) -> None:
    """Print one line per identity, language and swept setting, the jobs that failed, and where the run lies."""
    from rich.console import Console
    from rich.table import Table

    console = Console(
        file=sys.stdout, highlight=False, markup=False, width=None if sys.stdout.isatty() else TABLE_WIDTH
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    swept = summary["swept_settings"]
    for name in ("identity", "language", *swept):
        table.add_column(name, no_wrap=True)
    for name in (
        "rows",
        "alignment",
        "leakage",
        "flagged",
        "hedges",
        "refusals",
        "changed paths",
        "shared words",
        "motor distance",
        "worst residual",
    ):
        table.add_column(name, justify="right")
    for entry in summary["identities"]:
        settings = [f"{entry['settings'][name]:g}" for name in swept]
        table.add_row(entry["identity"], entry["language"], *settings, *_cells(entry))
    console.print(table)
    for job in summary["failed_jobs"]:
        console.print(f"job {job['job']} {job['state']}: {job['what']}: {job['error']}", soft_wrap=True)
    for job in summary.get("retried_jobs", []):
        console.print(
            f"job {job['job']} {job['state']} after {job['attempts']} attempts, the last one from prompt "
            f"{job['resumed_at'] + 1}",
            soft_wrap=True,
        )
    console.print(f"run: {folder}", soft_wrap=True)


def _cells(entry: Mapping[str, Any]) -> list[str]:
    divergence = entry["divergence_from_default"] or {}
    spread = f"{_number(entry['alignment_mean'], '.3f')} ± {_number(entry['alignment_spread'], '.3f')}"
    return [
        str(entry["rows"]),
        spread,
        _number(entry["leakage_max"], ".1e"),
        str(entry["flagged"]),
        ", ".join(f"{count} {name}" for name, count in entry["hedges"].items()) or "0",
        str(sum(entry["refusals"].values())),
        _number(divergence.get("changed_paths"), ".0%"),
        _number(divergence.get("shared_words"), ".0%"),
        _number(divergence.get("motor_distance"), ".2f"),
        _number(entry["worst_residual"], ".1e"),
    ]


def _number(value: float | str | None, form: str) -> str:
    return "–" if value is None else value if isinstance(value, str) else format(value, form)
