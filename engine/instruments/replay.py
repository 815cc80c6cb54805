"""Replay: derive from each record of a log, offline, what it says. What cannot be derived is named, never guessed."""

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.base.errors import CoreError, RecordError
from engine.instruments.bundles import unbundle
from engine.instruments.embed.base import Embedder, embedder_digest, load_embedder
from engine.instruments.notes import NOTES
from engine.instruments.patterns import pattern_id
from engine.instruments.readings import distances
from engine.instruments.records import LogLine, read_log
from engine.instruments.render import parse_rendered
from engine.instruments.sections import clause_sections
from engine.instruments.validate import validate

COSINE_TOLERANCE = 1e-5
"""Replay compares cosines, never bits: another batch or another machine moves them by about 1e-7."""

_BUNDLES = ("prompt", "system", "output", "thinking", "current")
_OTHER_EVENTS = {"shadow_manifold": "engine.instruments.twin:check_record"}
_ONLINE = frozenset({"ollama", "openai"})


@dataclass(frozen=True)
class RecordCheck:
    """What was derived from one line: each check is `ok`, `failed: why` or `not derivable: why`."""

    line: int
    run_id: str | None
    verdict: str | None
    checks: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing that could be derived came out otherwise."""
        return not any(value.startswith("failed") for value in self.checks.values())


@dataclass(frozen=True)
class LogReport:
    """The checks of every line of a log."""

    name: str
    records: tuple[RecordCheck, ...]

    @property
    def ok(self) -> bool:
        """Whether every record passed."""
        return all(record.ok for record in self.records)

    def lines(self) -> list[str]:
        """Return the report for a person, one line a record."""
        shown = [
            f"line {r.line}: {r.verdict or 'unfinished line'}: {', '.join(f'{k} {v}' for k, v in r.checks.items())}"
            for r in self.records
        ]
        return [*shown, f"{self.name}: {len(self.records)} lines, {'ok' if self.ok else 'FAILED'}", *NOTES.values()]

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON."""
        records = [
            {"line": r.line, "run_id": r.run_id, "verdict": r.verdict, "ok": r.ok, "checks": dict(r.checks)}
            for r in self.records
        ]
        return {"log": self.name, "ok": self.ok, "records": records, "notes": dict(NOTES)}


def verify_log(path: str | os.PathLike[str]) -> LogReport:
    """Return the checks of every record in the log at `path`: hash chain, digests, lineage, validation and cosine.

    Raises `RecordError` if the file is no log or its chain is broken. Nothing goes over the network: a record read
    with a service's model says that the model is not at hand.
    """
    embedders: dict[str, Embedder | str] = {}
    return LogReport(Path(path).name, tuple(_check_line(line, embedders) for line in read_log(path)))


def _check_line(line: LogLine, embedders: dict[str, "Embedder | str"]) -> RecordCheck:
    record = line.record
    if record is None:
        return RecordCheck(line.number, None, None, {"chain": "ok", "record": "not derivable: its writer was killed"})
    event = record.get("event")
    if isinstance(event, str) and event in _OTHER_EVENTS:
        return _check_other(line, record)
    checks = {"chain": "ok"}
    texts: dict[str, str | None] = {}
    for name in _BUNDLES:
        try:
            texts[name] = unbundle(name, record)
        except RecordError as error:
            texts[name] = None
            checks[name] = f"failed: {error}"
    derived: dict[str, Callable[[], str]] = {
        "digests": lambda: _check_digests(record, texts),
        "patterns": lambda: _check_patterns(record, texts["prompt"]),
        "lineage": lambda: _check_lineage(record, texts["output"]),
        "validation": lambda: _check_validation(record, texts["output"]),
        "cosine": lambda: _check_cosine(record, texts, embedders),
    }
    for name, check in derived.items():
        try:
            checks[name] = check()
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            # Fields of the wrong type: the record was written by someone else, or altered at the end of the log.
            checks[name] = f"failed: malformed field ({type(error).__name__})"
    return RecordCheck(line.number, _text(record.get("run_id")), _text(record.get("verdict")), checks)


def _check_other(line: LogLine, record: Mapping[str, Any]) -> RecordCheck:
    """Check a record of another instrument by the function that knows it, loaded only now: the text side stays
    light."""
    module, _, name = _OTHER_EVENTS[str(record["event"])].partition(":")
    check: Callable[[Mapping[str, Any]], dict[str, str]] = getattr(importlib.import_module(module), name)
    try:
        checks = check(record)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        checks = {"record": f"failed: malformed field ({type(error).__name__})"}
    checks = {"chain": "ok", **checks}
    return RecordCheck(line.number, _text(record.get("run_id")), _text(record.get("verdict")), checks)


def _check_digests(record: Mapping[str, Any], texts: Mapping[str, str | None]) -> str:
    current = texts["current"]
    if current is not None and record["current_truncated"] is False and record["current_chars"] != len(current):
        return "failed: current_chars is not the length of the bundle"
    output = texts["output"]
    if output is not None and record["output_truncated"] is False and record["shadow_chars"] != len(output.strip()):
        return "failed: shadow_chars is not the length of the output"
    return "ok" if any(text is not None for text in texts.values()) else "not derivable: the run kept no texts"


def _check_patterns(record: Mapping[str, Any], prompt: str | None) -> str:
    ids = record.get("pattern_ids")
    if prompt is None or ids is None:
        return "not derivable: the run made no prompt"
    if record["prompt_truncated"]:
        return "not derivable: the prompt was cut in the record"
    shown = {pattern_id(text) for text in parse_rendered(prompt)}
    if len(ids) != record["pattern_count"]:
        return "failed: pattern_count is not the number of pattern_ids"
    missing = [name for name in ids if name not in shown]
    return f"failed: {len(missing)} patterns are not in the prompt" if missing else "ok"


def _check_lineage(record: Mapping[str, Any], output: str | None) -> str:
    lineage = record.get("lineage")
    if output is None or record["output_truncated"]:
        return "not derivable: no whole output"
    if lineage is None:
        return "not derivable: the generator does not trace its clauses"
    known = set(record["pattern_ids"])
    traced = [(entry["section"], entry["clause"]) for entry in lineage]
    written = [(section.heading, clause.text) for section in clause_sections(output) for clause in section.clauses]
    if sorted(traced) != sorted(written):
        return "failed: the lineage does not name exactly the output's clauses"
    if any(not entry["pattern_ids"] or not set(entry["pattern_ids"]) <= known for entry in lineage):
        return "failed: a clause traces to no pattern of the run"
    return "ok"


def _check_validation(record: Mapping[str, Any], output: str | None) -> str:
    if output is None or record["output_truncated"]:
        return "not derivable: no whole output"
    faults = list(validate(output))
    if faults != record["validation"]:
        return "failed: the output validates otherwise"
    expected = "validation_failed" if faults else "ok"
    return "ok" if record["verdict"] == expected else f"failed: the verdict should be {expected}"


def _check_cosine(
    record: Mapping[str, Any], texts: Mapping[str, str | None], embedders: dict[str, "Embedder | str"]
) -> str:
    output, current = texts["output"], texts["current"]
    if output is None or current is None:
        return "not derivable: the run took no reading"
    if record["output_truncated"] or record["current_truncated"]:
        return "not derivable: a text was cut in the record"
    embedder = _embedder(record, embedders)
    if isinstance(embedder, str):
        return f"not derivable: {embedder}"
    (reading,), _ = distances(embedder, current, [output.strip()])
    if reading.reason == "embed_unavailable":
        return f"not derivable: the model is not at hand ({reading.detail})"
    if embedder_digest(embedder) != record["embedding_sha256"]:
        return "not derivable: the embedder at hand is of another revision or setting"
    recorded = record["cosine_vs_current"]
    if reading.value is None or recorded is None:
        return "ok" if (reading.value is None) == (recorded is None) else f"failed: derived {reading.reason}"
    if abs(reading.value - recorded) > COSINE_TOLERANCE:
        return f"failed: recorded {recorded:.6f}, derived {reading.value:.6f}"
    return "ok"


def _embedder(record: Mapping[str, Any], embedders: dict[str, "Embedder | str"]) -> "Embedder | str":
    spec = str(record["embedding_model"])
    if spec not in embedders:
        if spec.partition(":")[0] in _ONLINE:
            embedders[spec] = f"the model belongs to a service ({spec}) and replay stays offline"
        else:
            try:
                embedders[spec] = load_embedder(spec)
            except CoreError as error:
                embedders[spec] = str(error)
    return embedders[spec]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
