"""Check a finished run: the manifest's digests, the tables against each other, and its rows by making them again."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.base.errors import CoreError, DeviceError, RecordError
from experiments import rundir
from experiments.config import JobSettings
from experiments.job import evaluate
from experiments.packs_path import GROUPS, pack_sha256
from experiments.prompts import Prompt
from experiments.results import Row, csv_bytes, read_rows, row_key
from experiments.summary import summarise
from packs.safety.loader import load_safety_pack

SAMPLE = 8
"""Rows of each job that are made again without `--all`."""

TOLERANCE = 1e-9
"""Largest difference of two numbers of a row, relative where they exceed 1. Another batch shape or another machine
moves float64 results of a walk by some hundred units in the last place; a changed operator moves them by far more."""

MACHINE_COLUMNS = ("backend", "device", "jax", "jaxlib")
PLATFORM_FIELDS = (
    "machine",
    "platform",
    "backend",
    "device_kind",
    "distributions",
    "corefield",
    "devices",
    "processes",
)


@dataclass
class Findings:
    """What was checked, what was found wrong, and what could not be checked, one line each."""

    checked: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing was found wrong."""
        return not self.problems

    def lines(self) -> list[str]:
        """Return the findings as text, the verdict last."""
        lines = [f"checked: {line}" for line in self.checked]
        lines += [f"NOT checked: {line}" for line in self.not_checked]
        lines += [f"WRONG: {line}" for line in self.problems]
        return [*lines, "verified" if self.ok else f"not verified: {len(self.problems)} problem(s)"]

    def as_dict(self) -> dict[str, Any]:
        """Return the findings as plain values."""
        return {"ok": self.ok, **asdict(self)}


def verify_run(folder: Path, *, all_rows: bool = False) -> Findings:
    """Return the findings about a run folder; with `all_rows` every row is made again, else `SAMPLE` of each job.

    Raises `RecordError` where the folder holds no finished run.
    """
    if not (folder / rundir.MANIFEST).is_file():
        raise RecordError(f"{folder} holds no {rundir.MANIFEST}: it is no run, or the run did not finish")
    findings = Findings()
    problems = rundir.check_manifest(folder)
    findings.problems += problems
    if problems:
        findings.not_checked.append("tables and rows, since the files are not the ones that were written")
        return findings
    findings.checked.append(f"SHA-256 of {len(list(rundir.listed_files(folder)))} files")
    plan = rundir.read_json(folder / rundir.PLAN)
    rows = read_rows(folder / rundir.RESULTS)
    _check_tables(folder, plan, rows, findings)
    if _check_packs(plan, findings):
        _check_rows(folder, plan, rows, findings, all_rows=all_rows)
    else:
        findings.not_checked.append("rows by making them again, since the packs are not the ones of the run")
    return findings


def _check_tables(folder: Path, plan: Mapping[str, Any], rows: Sequence[Row], findings: Findings) -> None:
    gathered: list[Row] = []
    for number in range(len(plan["jobs"])):
        path = folder / "jobs" / str(number) / rundir.RESULTS
        if path.is_file():
            gathered += read_rows(path)
        else:
            findings.not_checked.append(f"job {number}, which left no results")
    if not _same_rows(gathered, rows):
        findings.problems.append("results.parquet is not what the jobs' tables add up to")
    if (folder / "results.csv").read_bytes() != csv_bytes(rows):
        findings.problems.append("results.csv is not what results.parquet says")
    recorded = rundir.read_json(folder / "summary.json")
    if any(recorded.get(name) != value for name, value in summarise(rows).items()):
        findings.problems.append("summary.json is not what results.parquet adds up to")
    findings.checked.append(f"table of {len(rows)} rows, CSV and summary against the jobs' own tables")


def _check_packs(plan: Mapping[str, Any], findings: Findings) -> bool:
    """Compare the digests of the packs in force with those of the run; return whether all are the same."""
    packs_path = plan["jobs"][0]["packs_path"]
    found = {"safety": load_safety_pack().sha256}
    recorded = {"safety": plan["safety_sha256"]}
    named = [(group, name) for group in GROUPS for name in plan["pack_sha256"][group]]
    for group, name in named:
        recorded[f"{group} {name}"] = plan["pack_sha256"][group][name]
        try:
            found[f"{group} {name}"] = pack_sha256(group, name, packs_path)
        except CoreError as error:
            found[f"{group} {name}"] = f"none ({error})"
    changed = [name for name, digest in recorded.items() if found[name] != digest]
    findings.problems += [f"pack {name} is {found[name]} now, {recorded[name]} in the run" for name in changed]
    findings.checked.append(f"SHA-256 of {len(recorded)} packs in force")
    return not changed


def _check_rows(
    folder: Path, plan: Mapping[str, Any], rows: Sequence[Row], findings: Findings, *, all_rows: bool
) -> None:
    jobs = [JobSettings(**values) for values in plan["jobs"]]
    where_made, device = _somewhere(jobs[0], findings)
    is_same_machine = _is_same_machine(folder, where_made, device, findings)
    by_key = {row_key(row): row for row in rows}
    compared = identical = 0
    for number, asked in enumerate(jobs):
        settings = replace(asked, device=where_made.device, devices=where_made.devices)
        mine = [row for row in rows if _belongs(row, settings)]
        chosen = mine if all_rows else _sample(mine)
        if not chosen:
            continue
        again, _, _ = evaluate(settings, [Prompt(row["prompt_id"], row["prompt"]) for row in chosen])
        for row in again:
            recorded = by_key[row_key(row)]
            differences = _differences(recorded, row)
            compared += 1
            identical += not differences
            # A sample is another batch shape, which may move the last bits.
            is_exact = all_rows and is_same_machine
            wrong = [name for name in differences if is_exact or not _is_close(name, recorded, row)]
            if wrong:
                where = f"job {number}, prompt {row['prompt_id']}"
                findings.problems.append(f"{where}: {', '.join(wrong)} came out otherwise")
    agreed = f"; numbers of the other {compared - identical} compared to {TOLERANCE:g}" if identical < compared else ""
    findings.checked.append(f"{compared} of {len(rows)} rows made again: {identical} bit-identical{agreed}")
    if compared < len(rows):
        findings.not_checked.append(f"{len(rows) - compared} rows were not made again (--all makes every one)")


def _somewhere(settings: JobSettings, findings: Findings) -> tuple[JobSettings, Any]:
    """Return where rows can be made again, and the first device there: as in the run, or on this processor alone."""
    from experiments.device import use_device

    try:
        return settings, use_device(settings.device, devices=settings.devices)
    except DeviceError as error:
        findings.not_checked.append(f"rows on the devices of the run ({error}); they are made again on one processor")
    return replace(settings, device="cpu", devices=1), use_device("cpu")


def _is_same_machine(folder: Path, where_made: JobSettings, device: Any, findings: Findings) -> bool:
    from experiments.device import describe_environment

    recorded = {"devices": 1, "processes": 1, **rundir.read_json(folder / "environment.json")}
    here = describe_environment(device, devices=where_made.devices)
    differing = [name for name in PLATFORM_FIELDS if recorded.get(name) != here[name]]
    if differing:
        findings.not_checked.append(
            f"bit-identity: this machine differs in {', '.join(differing)}; numbers are compared to {TOLERANCE:g}"
        )
    return not differing


def _belongs(row: Row, settings: JobSettings) -> bool:
    return (row["identity"], row["language"], row["seed"], row["alpha"], row["perturb"], row["max_steps"]) == (
        settings.identity,
        settings.language,
        settings.seed,
        settings.alpha,
        settings.perturb,
        settings.steps,
    )


def _sample(rows: Sequence[Row]) -> list[Row]:
    """Return up to `SAMPLE` rows, evenly spaced, the first and the last among them."""
    if len(rows) <= SAMPLE:
        return list(rows)
    return [rows[round(index * (len(rows) - 1) / (SAMPLE - 1))] for index in range(SAMPLE)]


def _same_rows(first: Sequence[Row], second: Sequence[Row]) -> bool:
    return len(first) == len(second) and not any(_differences(a, b) for a, b in zip(first, second, strict=True))


def _differences(recorded: Row, again: Row) -> list[str]:
    names = [name for name in {**recorded, **again} if name not in MACHINE_COLUMNS]
    return [name for name in names if not _equal(recorded.get(name), again.get(name))]


def _equal(one: Any, other: Any) -> bool:
    both_nan = isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    return both_nan or one == other


def _is_close(name: str, recorded: Row, again: Row) -> bool:
    """Return whether two cells agree to `TOLERANCE`; lists of numbers in JSON text agree element by element."""
    one, other = _numbers(recorded.get(name)), _numbers(again.get(name))
    if one is None or other is None or len(one) != len(other):
        return False
    return all(abs(a - b) <= TOLERANCE * max(1.0, abs(a), abs(b)) for a, b in zip(one, other, strict=True))


def _numbers(cell: Any) -> list[float] | None:
    if isinstance(cell, float):
        return [cell]
    if not isinstance(cell, str) or cell[:1] not in "[{":
        return None
    value = json.loads(cell)
    items = list(value.values()) if isinstance(value, dict) else value
    return items if all(isinstance(item, float) for item in items) else None
