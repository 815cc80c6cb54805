"""`core report`: one HTML page about a run that opens with no network: tables, and figures as inline SVG."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from engine.base.errors import RecordError
from experiments import rundir
from experiments.figures import draw_residual_by_step, figures, rendered
from experiments.results import read_rows
from experiments.rundir import RESULTS
from experiments.summary import summarise

STYLE = """\
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
.wide { overflow-x: auto; margin: 1rem 0; } table { border-collapse: collapse; font-size: 0.85rem; }
th, td { padding: 0.25rem 0.7rem; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child, .facts td { text-align: left; }
.facts td { overflow-wrap: anywhere; vertical-align: top; } .facts td:first-child { white-space: nowrap; }
figure { margin: 1.5rem 0; } figure svg { max-width: 100%; height: auto; }
figcaption { color: #555; font-size: 0.85rem; }
.note { background: #f5f1e6; border-left: 4px solid #c9a227; padding: 0.6rem 1rem; }
"""


def write_report(folder: Path, target: Path | None = None) -> Path:
    """Write the page about the run in `folder` to `target` (default: `report.html` in it) and return the path.

    The page is derived and no part of the record: the manifest does not list it. Raises `RecordError` where the folder
    holds no finished run.
    """
    if not (folder / rundir.MANIFEST).is_file():
        raise RecordError(f"{folder} holds no {rundir.MANIFEST}: it is no run, or the run did not finish")
    place = target or folder / rundir.REPORT
    rundir.write_bytes(place, render_page(folder).encode("utf-8"))
    return place


def render_page(folder: Path) -> str:
    """Return the page as HTML text."""
    problems = rundir.check_manifest(folder)
    plan = rundir.read_json(folder / rundir.PLAN)
    rows = read_rows(folder / RESULTS)
    summary = {**rundir.read_json(folder / "summary.json"), **summarise(rows)}
    drawn = figures(rows, summary)
    by_step = _residual_by_step(folder, plan)
    if by_step:
        drawn["residual_by_step"] = draw_residual_by_step(by_step)
    title = f"Run {folder.absolute().name}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        _provenance(plan, rundir.read_json(folder / "environment.json")),
        _checks(problems),
        "<h2>Packs compared</h2>",
        _summary_table(summary),
        *(_failed(summary["failed_jobs"])),
        *_retried(summary.get("retried_jobs", [])),
        *(_figure(figure, name) for name, figure in drawn.items()),
        *_divergence_tables(summary["divergence"]),
        "<h2>Refusals by reason</h2>",
        _refusal_table(summary),
    ]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{"".join(parts)}</body></html>\n'


def _checks(problems: Sequence[str]) -> str:
    if problems:
        listed = "".join(f"<li>{escape(problem)}</li>" for problem in problems)
        return (
            f'<div class="note"><strong>The files are not the ones that were written:</strong><ul>{listed}</ul></div>'
        )
    return (
        '<p class="note">The SHA-256 of every file agrees with the manifest. This page did not make any row again: '
        "<code>core verify</code> does. A manifest shows damage and slips; whoever can write the folder can write the "
        "manifest too.</p>"
    )


def _provenance(plan: Mapping[str, Any], environment: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in environment["distributions"].items())
    facts = {
        "command": " ".join(["core sweep", *(["-m"] if plan["multirun"] else []), *plan["overrides"]]),
        "planned (UTC)": plan["planned_at"],
        "jobs": str(len(plan["jobs"])),
        "engine": f"corefield {environment['corefield']}, Python {environment['python']}, {versions}",
        "device": f"{environment['backend']}: {environment['device_kind']}, {environment['precision']}",
        "safety pack": plan["safety_sha256"],
        **{
            f"{group} {name}": digest
            for group in ("identity", "language")
            for name, digest in plan["pack_sha256"][group].items()
        },
    }
    lines = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in facts.items())
    return f'<div class="wide"><table class="facts">{lines}</table></div>'


def _summary_table(summary: Mapping[str, Any]) -> str:
    swept = summary["swept_settings"]
    names = (
        "identity",
        "language",
        *swept,
        "rows",
        "alignment (mean ± spread)",
        "alignment range",
        "worst leakage",
        "flagged",
        "hedges",
        "changed paths",
        "shared words",
        "motor distance",
        "worst residual",
    )
    lines = []
    for entry in summary["identities"]:
        divergence = entry["divergence_from_default"] or {}
        lines.append(
            (
                entry["identity"],
                entry["language"],
                *(f"{entry['settings'][name]:g}" for name in swept),
                entry["rows"],
                f"{_number(entry['alignment_mean'])} ± {_number(entry['alignment_spread'])}",
                f"{_number(entry['alignment_min'])} – {_number(entry['alignment_max'])}",
                _number(entry["leakage_max"], ".1e"),
                entry["flagged"],
                ", ".join(f"{name} {count}" for name, count in entry["hedges"].items()),
                _number(divergence.get("changed_paths"), ".1%"),
                _number(divergence.get("shared_words"), ".1%"),
                _number(divergence.get("motor_distance")),
                _number(entry["worst_residual"], ".1e"),
            )
        )
    return _table(names, lines)


def _failed(failed: Sequence[Mapping[str, Any]]) -> list[str]:
    if not failed:
        return []
    lines = [(job["job"], job["state"], job["what"], job["error"]) for job in failed]
    return ["<h2>Jobs without a result</h2>", _table(("job", "state", "what", "error"), lines)]


def _retried(retried: Sequence[Mapping[str, Any]]) -> list[str]:
    if not retried:
        return []
    lines = [(job["job"], job["attempts"], job["state"], job["resumed_at"] + 1) for job in retried]
    names = ("job", "attempts", "state", "last attempt began at prompt")
    return ["<h2>Jobs that were run again</h2>", _table(names, lines)]


CAPTIONS = {
    "alignment": "Alignment of each row with its pack's axes, and the mean",
    "residual": "Worst closure residual of each row, sorted",
    "residual_by_step": "Worst closure residual of all rows at each step of the walk",
}


def _figure(figure: Any, name: str) -> str:
    caption = CAPTIONS.get(name, "Divergence of every two packs")
    return f"<figure>{_inline_svg(figure, name)}<figcaption>{escape(caption)}</figcaption></figure>"


def _divergence_tables(divergence: Mapping[str, Any]) -> list[str]:
    parts = []
    for language, matrix in divergence.items():
        for name, form, words in (
            ("changed_paths", ".1%", "share of changed token paths"),
            ("shared_words", ".1%", "mean share of words in common"),
            ("motor_distance", ".3f", "mean distance of final motors, up to sign"),
        ):
            lines = [
                (identity, *(_number(value, form) for value in values))
                for identity, values in zip(matrix["identities"], matrix[name], strict=True)
            ]
            parts += [f"<h3>{escape(language)}: {words}</h3>", _table(("", *matrix["identities"]), lines)]
    return ["<h2>Divergence</h2>", *parts] if parts else []


def _refusal_table(summary: Mapping[str, Any]) -> str:
    lines = [
        (entry["identity"], entry["language"], reason, count)
        for entry in summary["identities"]
        for reason, count in entry["refusals"].items()
    ]
    return _table(("identity", "language", "reason", "rows"), lines) if lines else "<p>No prompt was refused.</p>"


def _residual_by_step(folder: Path, plan: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """Return for each identity the worst residual over its jobs at each step, None where one was not finite."""
    by_step: dict[str, list[float | None]] = {}
    for number, job in enumerate(plan["jobs"]):
        path = folder / "jobs" / str(number) / rundir.STATUS
        values = rundir.read_json(path).get("residual_by_step") if path.is_file() else None
        if not values:
            continue
        known = by_step.get(job["identity"], [0.0] * len(values))
        length = max(len(known), len(values))
        padded = [[*line, *[0.0] * (length - len(line))] for line in (known, values)]
        by_step[job["identity"]] = [None if a is None or b is None else max(a, b) for a, b in zip(*padded, strict=True)]
    return by_step


def _inline_svg(figure: Any, name: str) -> str:
    """Return a figure's SVG element; ids are made unique, since several figures share one page."""
    text = rendered(figure, "svg").decode("utf-8")
    element = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    element = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", element)
    return element.replace("<svg ", f'<svg role="img" aria-label="{escape(name)}" ', 1)


def _table(names: Sequence[str], lines: Sequence[Sequence[Any]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in line) + "</tr>" for line in lines)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _number(value: float | str | None, form: str = ".3f") -> str:
    return "–" if value is None else value if isinstance(value, str) else format(value, form)
