"""Run the benchmarks one after the other: `make bench`, or `python -m scripts.bench [NAME ...] [--out FILE]`.

Each is a module here, runs in a process of its own and can be run alone. Floors are measured in the same process as
what is measured against them. The figures are printed as Markdown and written, one JSON object a line, to FILE
(bench.jsonl); `python -m scripts.bench.compare OLD NEW` compares two such files.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ORDER = {
    "startup": ("--commands", "3"),
    "products": ("--sizes", "100000", "1000000", "--rounds", "3"),
    "propagate": ("--rounds", "8"),
    "vault": ("--rounds", "5"),
    "vocabulary": ("--rounds", "2"),
    "precision": (),
    "scaling": ("--rounds", "3"),
    "sweep": (),
    "embedding": ("--repeats", "3"),
}
"""The quick ones; geometry, answers, residual_table and published_readings publish figures of their own in the docs."""

DISTRIBUTIONS = ("jax", "jaxlib", "numpy", "equinox", "corefield")


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in DISTRIBUTIONS},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def figures(name: str, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one line for each measured number of a benchmark's row: the row's other fields say which case it is."""
    measured = {key: value for key, value in row.items() if isinstance(value, float)}
    case = " ".join(f"{key}={value}" for key, value in row.items() if key not in measured)
    return [{"bench": name, "case": case, "metric": key, "value": value} for key, value in measured.items()]


def markdown(lines: Iterable[Mapping[str, Any]]) -> str:
    """Return the figures of one benchmark as a table with a row for each case."""
    cases: dict[str, dict[str, float]] = {}
    for line in lines:
        cases.setdefault(line["case"], {})[line["metric"]] = line["value"]
    metrics = list(dict.fromkeys(metric for found in cases.values() for metric in found))
    rows = [f"| case | {' | '.join(metrics)} |", "|---" * (len(metrics) + 1) + "|"]
    for case, found in cases.items():
        cells = " | ".join(f"{found[metric]:.4g}" if metric in found else "–" for metric in metrics)
        rows.append(f"| {case or 'all'} | {cells} |")
    return "\n".join(rows)


def run(name: str, options: Iterable[str]) -> list[dict[str, Any]] | None:
    """Run one benchmark and return its figures, its time and the most memory it held; None if it failed."""
    with tempfile.TemporaryFile("w+") as output:
        begun = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", f"scripts.bench.{name}", "--json", *options], stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        spent = time.perf_counter() - begun
        output.seek(0)
        rows = [json.loads(line) for line in output if line.startswith("{")]
    lines = [line for row in rows for line in figures(name, row)]
    # Linux counts kibibytes.
    lines += figures(name, {"of": "the whole run", "elapsed_s": spent, "memory_mib": usage.ru_maxrss / 1024})
    return None if process.returncode else lines


def main() -> int:
    """Run every benchmark of `ORDER`, or those named, and return 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m scripts.bench", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ORDER)}; default: all")
    parser.add_argument("--out", type=Path, default=Path("bench.jsonl"), help="file for the figures (bench.jsonl)")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.names) - set(ORDER)):
        parser.error(f"unknown benchmark {unknown[0]}: one of {', '.join(ORDER)}")
    about, failed, gathered = machine(), [], []
    print(", ".join(f"{key} {value}" for key, value in about.items()), flush=True)
    for name in arguments.names or ORDER:
        lines = run(name, ORDER[name])
        if lines is None:
            failed.append(name)
            continue
        print(f"\n## {name}\n\n{markdown(lines)}", flush=True)
        gathered += lines
    arguments.out.write_text("".join(json.dumps(line) + "\n" for line in [{"machine": about}, *gathered]))
    print(f"\nwritten: {arguments.out}", file=sys.stderr)
    for name in failed:
        print(f"bench: {name} failed", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
