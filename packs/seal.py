"""The seal between a pack and its mastery report.

    report.pack_sha256           = SHA-256 of the pack's canonical bytes with its seal field blank
    report.report_sha256         = SHA-256 of the report's canonical bytes with this field blank
    pack.mastery_report_sha256   = report.report_sha256

Both files must lie on disk in the one form of `strict_json.file_bytes`, so that the three digests bind every byte. The
verdict is recomputed from the gates: `ratified: true` counts for nothing by itself.
"""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from packs import strict_json
from packs.errors import PackFormatError
from packs.files import write_together
from packs.ids import require_id, require_sha256, shown

SCHEMA_VERSION = "1.0.0"
SEAL_FIELD = "mastery_report_sha256"
REPORT_SEAL_FIELD = "report_sha256"
REPORT_ENDING = ".mastery_report.json"
MAX_REPORT_BYTES = 1024 * 1024

REQUIRED_GATES: Mapping[str, float] = MappingProxyType(
    {
        "replay_determinism_eq_1": 1.0,
        "no_regression_vs_prior_courses": 1.0,
        "adversarial_rejection_rate_eq_1": 1.0,
        "legitimate_acceptance_rate_eq_1": 1.0,
        "provenance_non_empty_rate_eq_1": 1.0,
        "every_relation_walked_at_least_once": 1.0,
        "every_axis_seeded_at_least_once": 1.0,
        "every_override_rejected": 1.0,
    }
)
"""Name and threshold of each gate that the report of a safety or identity pack must hold, all of them passed."""

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_REPORT_FIELDS = frozenset(
    {
        "schema_version",
        "pack_id",
        "pack_sha256",
        "course_sha256",
        "plan_sha256",
        "gates",
        "trace_hashes",
        "failure_reasons",
        "ratified",
        "issued_at",
        "report_sha256",
    }
)


@dataclass(frozen=True)
class Gate:
    """One measured gate: it passes when `measurement`, a share of what was tried, reaches `threshold`."""

    name: str
    measurement: float
    threshold: float

    @property
    def passed(self) -> bool:
        """Whether the measurement is a share (not NaN, not above 1) that reaches the threshold."""
        return self.threshold <= self.measurement <= 1.0


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of `data` in lower-case hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def body_digest(pack: Mapping[str, Any]) -> str:
    """Return the digest of a pack's body: its canonical bytes with the seal field blank."""
    return sha256_hex(strict_json.canonical_bytes({**pack, SEAL_FIELD: ""}))


def report_digest(report: Mapping[str, Any]) -> str:
    """Return a report's self-seal: the digest of its canonical bytes with the seal blank."""
    return sha256_hex(strict_json.canonical_bytes({**report, REPORT_SEAL_FIELD: ""}))


def report_path(pack_path: Path, pack_id: str) -> Path:
    """Return where the report of the pack file `pack_path` lies: beside it, named after the pack's id."""
    return pack_path.with_name(f"{pack_id}{REPORT_ENDING}")


def build_report(
    pack: Mapping[str, Any],
    *,
    gates: Sequence[Gate],
    trace_hashes: Mapping[str, str],
    failure_reasons: Sequence[str],
    course_sha256: str,
    plan_sha256: str,
    issued_at: str,
) -> dict[str, Any]:
    """Return the self-sealed mastery report of `pack`; `ratified` follows from the gates and the failure reasons."""
    report = {
        "schema_version": SCHEMA_VERSION,
        "pack_id": pack["pack_id"],
        "pack_sha256": body_digest(pack),
        "course_sha256": course_sha256,
        "plan_sha256": plan_sha256,
        "gates": [
            {"name": g.name, "passed": g.passed, "measurement": g.measurement, "threshold": g.threshold} for g in gates
        ],
        "trace_hashes": dict(trace_hashes),
        "failure_reasons": list(failure_reasons),
        "ratified": all(g.passed for g in gates) and bool(gates) and not failure_reasons,
        "issued_at": issued_at,
        REPORT_SEAL_FIELD: "",
    }
    return {**report, REPORT_SEAL_FIELD: report_digest(report)}


def sealed_files(pack: Mapping[str, Any], report: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Return the bytes of the pack that carries the seal of `report`, and the bytes of the report."""
    sealed = {**pack, SEAL_FIELD: report[REPORT_SEAL_FIELD]}
    return strict_json.file_bytes(sealed), strict_json.file_bytes(report)


def write_sealed(
    pack_path: Path,
    pack: Mapping[str, Any],
    report: Mapping[str, Any],
    *,
    also: Sequence[tuple[Path, bytes]] = (),
) -> bytes:
    """Write report, pack and `also` (such as a pin) together, and return the pack's new bytes.

    Raises `PackFormatError` when the report does not ratify the pack, and `OSError` when a file cannot be written.
    """
    pack_bytes, report_bytes = sealed_files(pack, report)
    verify_seal(strict_json.loads(pack_bytes, source=pack_path.name), pack_bytes, report_bytes)
    target = report_path(pack_path, str(pack["pack_id"]))
    write_together([(target, report_bytes), (pack_path, pack_bytes), *also])
    return pack_bytes


def verify_seal(
    pack: Mapping[str, Any],
    pack_bytes: bytes,
    report_bytes: bytes,
    *,
    required_gates: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Return the report after checking that it ratifies exactly this pack.

    Args:
      pack: the parsed pack; its `pack_id` has been checked.
      pack_bytes: the bytes that `pack` was parsed from.
      report_bytes: the bytes of the report file.
      required_gates: name and threshold of each gate; default `REQUIRED_GATES`.

    Raises:
      PackFormatError: one line that says what does not hold.
    """
    name = f"report of {pack['pack_id']}"
    report = strict_json.loads(report_bytes, source=name)
    _check_report_fields(report, name)
    if report["pack_id"] != pack["pack_id"]:
        raise PackFormatError(f"{name}: it is the report of another pack, {shown(report['pack_id'])}")
    if report_digest(report) != report[REPORT_SEAL_FIELD]:
        raise PackFormatError(f"{name}: altered since it was sealed")
    if pack.get(SEAL_FIELD) != report[REPORT_SEAL_FIELD]:
        raise PackFormatError(f"{name}: the pack {pack['pack_id']} does not carry the seal of this report")
    if body_digest(pack) != report["pack_sha256"]:
        raise PackFormatError(f"{pack['pack_id']}: the body is not the one that was ratified")
    if strict_json.file_bytes(pack) != pack_bytes:
        raise PackFormatError(f"{pack['pack_id']}: the file is not laid out as it was sealed")
    if strict_json.file_bytes(report) != report_bytes:
        raise PackFormatError(f"{name}: the file is not laid out as it was sealed")
    _check_verdict(report, name, REQUIRED_GATES if required_gates is None else required_gates)
    return report


def _check_report_fields(report: Mapping[str, Any], name: str) -> None:
    require_fields(report, _REPORT_FIELDS, name=name)
    if report["schema_version"] != SCHEMA_VERSION:
        raise PackFormatError(f"{name}: schema_version {shown(report['schema_version'])} is not {SCHEMA_VERSION}")
    require_id(report["pack_id"], what=f"{name}: pack_id")
    for field in ("pack_sha256", "course_sha256", "plan_sha256", REPORT_SEAL_FIELD):
        require_sha256(report[field], what=f"{name}: {field}")
    if not isinstance(report["issued_at"], str) or _TIME.fullmatch(report["issued_at"]) is None:
        raise PackFormatError(f"{name}: issued_at is not a time of the form 2026-01-31T12:00:00Z")
    if not isinstance(report["trace_hashes"], dict) or not report["trace_hashes"]:
        raise PackFormatError(f"{name}: trace_hashes is empty or not an object")
    for step, digest in report["trace_hashes"].items():
        require_sha256(digest, what=f"{name}: trace hash of {shown(step)}")


def _check_verdict(report: Mapping[str, Any], name: str, required: Mapping[str, float]) -> None:
    gates = report["gates"]
    if not isinstance(gates, list):
        raise PackFormatError(f"{name}: gates is not a list")
    seen: set[str] = set()
    for gate in gates:
        if not isinstance(gate, dict):
            raise PackFormatError(f"{name}: a gate is not an object")
        require_fields(gate, frozenset({"name", "passed", "measurement", "threshold"}), name=f"{name}: gate")
        _check_gate(gate, name, required, seen)
    missing = sorted(set(required) - seen)
    if missing:
        raise PackFormatError(f"{name}: without the gate {missing[0]}")
    if report["failure_reasons"] != []:
        raise PackFormatError(f"{name}: gives reasons why the pack failed")
    if report["ratified"] is not True:
        raise PackFormatError(f"{name}: the pack was not ratified")


def _check_gate(gate: Mapping[str, Any], name: str, required: Mapping[str, float], seen: set[str]) -> None:
    label = gate["name"]
    if not isinstance(label, str) or label not in required:
        raise PackFormatError(f"{name}: unknown gate {shown(label)}")
    if label in seen:
        raise PackFormatError(f"{name}: the gate {label} is there twice")
    seen.add(label)
    measurement, threshold = gate["measurement"], gate["threshold"]
    if not is_number(measurement) or not is_number(threshold) or threshold != required[label]:
        raise PackFormatError(f"{name}: the gate {label} is not measured against {required[label]}")
    if gate["passed"] is not True or not Gate(label, float(measurement), float(threshold)).passed:
        raise PackFormatError(f"{name}: the gate {label} did not pass")


def require_fields(value: Mapping[str, Any], fields: frozenset[str], *, name: str) -> None:
    """Raise `PackFormatError` unless the keys of `value` are exactly `fields`."""
    unknown = sorted(set(value) - fields)
    if unknown:
        raise PackFormatError(f"{name}: unknown field {shown(unknown[0])}")
    missing = sorted(fields - set(value))
    if missing:
        raise PackFormatError(f"{name}: without the field {missing[0]}")


def is_number(value: object) -> bool:
    """Return whether `value` is a finite number; booleans are not numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
