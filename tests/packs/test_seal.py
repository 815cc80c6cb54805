"""What the seal itself decides: the verdict follows from the gates, and nothing that is not ratified is written."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from packs import seal
from packs.errors import PackFormatError
from packs.seal import Gate, build_report, verify_seal, write_sealed
from tests.attacks.workspace import SAFETY, passing_report

BODY: dict[str, Any] = json.loads(SAFETY.pack)
PASSED = tuple(Gate(name, 1.0, 1.0) for name in seal.REQUIRED_GATES)


def _report(gates: tuple[Gate, ...], reasons: tuple[str, ...] = ()) -> dict[str, Any]:
    return build_report(
        BODY,
        gates=gates,
        trace_hashes={"step": "0" * 64},
        failure_reasons=reasons,
        course_sha256="0" * 64,
        plan_sha256="0" * 64,
        issued_at="2026-01-01T00:00:00Z",
    )


@pytest.mark.parametrize(
    ("measurement", "passed"),
    [(1.0, True), (0.9999999999999999, False), (0.0, False), (-1.0, False), (1.0000000000000002, False), (2.0, False)],
)
def test_a_gate_passes_from_its_threshold_to_one(measurement: float, passed: bool) -> None:
    assert Gate("x", measurement, 1.0).passed is passed
    assert Gate("x", float("nan"), 1.0).passed is False
    assert Gate("x", float("inf"), 1.0).passed is False
    with pytest.raises(AttributeError):
        Gate("x", measurement, 1.0).measurement = 1.0  # type: ignore[misc]


def test_the_verdict_follows_from_gates_and_reasons() -> None:
    assert _report(PASSED)["ratified"] is True
    assert _report(())["ratified"] is False
    assert _report(PASSED, ("because",))["ratified"] is False
    assert _report((*PASSED[:-1], Gate(PASSED[-1].name, 0.5, 1.0)))["ratified"] is False


def test_what_is_not_ratified_is_not_written(tmp_path: Path) -> None:
    for report in (_report(()), _report(PASSED, ("because",)), _report(PASSED[1:])):
        with pytest.raises(PackFormatError):
            write_sealed(tmp_path / SAFETY.pack_name, BODY, report)
    assert os.listdir(tmp_path) == []


def test_what_is_written_verifies_and_comes_back(tmp_path: Path) -> None:
    also = (tmp_path / "pin", b"pin")
    written = write_sealed(tmp_path / SAFETY.pack_name, BODY, passing_report(BODY), also=[also])
    assert (tmp_path / SAFETY.pack_name).read_bytes() == written
    report = (tmp_path / SAFETY.report_name).read_bytes()
    assert verify_seal(json.loads(written), written, report)["ratified"] is True
    assert (tmp_path / "pin").read_bytes() == b"pin"


def test_the_cap_of_reports_is_one_mebibyte() -> None:
    assert seal.MAX_REPORT_BYTES == 1_048_576
