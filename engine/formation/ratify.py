"""Ratify a pack: run its course, measure the gates, and write report, seal and (for safety) pin together.

A pack that fails is left exactly as it was, and the error says which gate measured what. An unchanged pack that passes
again is left as it was too, byte for byte.
"""

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.base.errors import RatificationError
from engine.formation.candidate import Candidate, identity_candidate, safety_candidate
from engine.formation.course import make_plan
from engine.formation.drive import run_plan
from engine.formation.gates import Replay, Run, failure_reasons, measure_gates, traces
from engine.formation.versioning import check_version, ratified_before
from packs import strict_json
from packs.errors import PackFormatError
from packs.files import read_once
from packs.identity.loader import DEFAULT_PACK
from packs.identity.loader import INSTALLED_FOLDER as IDENTITY_FOLDER
from packs.language.loader import load_language_pack
from packs.language.model import LanguagePack
from packs.safety import pinned
from packs.safety.loader import INSTALLED_FOLDER as SAFETY_FOLDER
from packs.seal import (
    MAX_REPORT_BYTES,
    REPORT_ENDING,
    REPORT_SEAL_FIELD,
    Gate,
    build_report,
    report_digest,
    report_path,
    sealed_files,
    sha256_hex,
    verify_seal,
    write_sealed,
)

COURSE_LANGUAGE = "en"
_PIN_TEMPLATE = '''"""The pin: which bytes the safety pack has. Written by `scripts/ratify_safety_pack.py` only."""

PACK_ID = "{pack_id}"
PACK_SHA256 = "{sha256}"
'''


@dataclass(frozen=True)
class Ratification:
    """What a ratification came to; `changed` tells whether a file was written."""

    pack_id: str
    version: str
    sha256: str
    gates: tuple[Gate, ...]
    changed: bool

    def line(self) -> str:
        """Return the one line that is shown for it."""
        state = "written" if self.changed else "unchanged"
        return (
            f"ratified: {self.pack_id} {self.version}, {len(self.gates)} gates passed, sha256 {self.sha256} ({state})"
        )


def ratify_safety(folder: Path = SAFETY_FOLDER, *, identities: Path = IDENTITY_FOLDER) -> Ratification:
    """Ratify the one pack in `folder` and pin it in `pinned.py` beside it.

    Raises `PackFormatError` for a pack that does not hold by itself, `RatificationError` for a wrong version or a
    failed gate, and the typed errors of composing.
    """
    path = _only_pack(folder)
    candidate = safety_candidate(path, identity_path=identities / f"{DEFAULT_PACK}.json", language=_language())
    before = _previous_report(folder)
    check_version(candidate.value, None if before is None else ratified_before(before))
    _check_decision_record(candidate.pack_id, folder)
    done = _ratify(candidate, _ratified_identities(identities, path), pin=folder / "pinned.py")
    for stale in folder.glob(f"*{REPORT_ENDING}"):
        # The report of the id that a new one replaces: beside it the new pack would not load.
        if stale != report_path(path, candidate.pack_id):
            stale.unlink()
    return done


def ratify_identity(path: Path, *, safety: Path = SAFETY_FOLDER) -> Ratification:
    """Ratify the identity pack in the file `path`; errors as `ratify_safety`."""
    candidate = identity_candidate(path, safety_path=_only_pack(safety), language=_language())
    others = [*_ratified_identities(path.parent, _only_pack(safety), skip=path), *_ratified_safety(safety)]
    return _ratify(candidate, others, pin=None)


def _ratify(candidate: Candidate, others: Iterable[Candidate], *, pin: Path | None) -> Ratification:
    run = run_course(candidate)
    recorded = _read_back(candidate, run)
    replays = [Replay(candidate.pack_id, recorded, traces(run.second)), *(_replay(other) for other in others)]
    gates = measure_gates(run, replays)
    reasons = failure_reasons(run, replays, gates)
    if reasons:
        raise RatificationError(f"{candidate.pack_id}: not ratified: {'; '.join(reasons)}")
    report = _issue(candidate, run, gates)
    pack_bytes, report_bytes = sealed_files(candidate.value, report)
    beside = report_path(candidate.path, candidate.pack_id)
    also = [] if pin is None else [(pin, _pin(candidate.pack_id, pack_bytes))]
    written = [(candidate.path, pack_bytes), (beside, report_bytes), *also]
    changed = any(not path.is_file() or path.read_bytes() != data for path, data in written)
    if changed:
        write_sealed(candidate.path, candidate.value, report, also=also)
    return Ratification(candidate.pack_id, str(candidate.value["version"]), sha256_hex(pack_bytes), gates, changed)


def run_course(candidate: Candidate) -> Run:
    """Run the candidate's course twice on the real engine."""
    course = candidate.course()
    plan = make_plan(course)
    first, second = run_plan(candidate, course, plan), run_plan(candidate, course, plan)
    return Run(candidate.value, course, plan, first, second)


def _issue(candidate: Candidate, run: Run, gates: Sequence[Gate]) -> dict[str, Any]:
    """Return the report; it keeps the time of the report beside the pack when it says the same otherwise."""

    def report(issued_at: str) -> dict[str, Any]:
        return build_report(
            candidate.value,
            gates=gates,
            trace_hashes=run.trace_hashes(),
            failure_reasons=[],
            course_sha256=run.course.digest(),
            plan_sha256=run.plan.digest(),
            issued_at=issued_at,
        )

    before = _own_report(candidate)
    if before is not None and report(str(before["issued_at"])) == before:
        return before
    return report(datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


def _read_back(candidate: Candidate, run: Run) -> Mapping[str, str]:
    """Return the recorded traces of the candidate itself: of its last report, or of a first draft, read back."""
    before = _own_report(candidate)
    if before is not None and (before["course_sha256"], before["plan_sha256"]) == (
        run.course.digest(),
        run.plan.digest(),
    ):
        recorded = before["trace_hashes"]
    else:
        draft = build_report(
            candidate.value,
            gates=(),
            trace_hashes=run.trace_hashes(),
            failure_reasons=["draft"],
            course_sha256=run.course.digest(),
            plan_sha256=run.plan.digest(),
            issued_at="1970-01-01T00:00:00Z",
        )
        recorded = strict_json.loads(strict_json.file_bytes(draft), source="draft report")["trace_hashes"]
    return {str(step): str(digest) for step, digest in recorded.items()}


def _replay(candidate: Candidate) -> Replay:
    report = _own_report(candidate)
    course = candidate.course()
    replayed = traces(run_plan(candidate, course, make_plan(course)))
    return Replay(candidate.pack_id, {} if report is None else report["trace_hashes"], replayed)


def _ratified_identities(folder: Path, safety_path: Path, skip: Path | None = None) -> Iterator[Candidate]:
    """Yield the identity packs in `folder` whose seal holds and whose course is still the one they were ratified by."""
    for path in sorted(folder.glob("*.json")):
        if path.name.endswith(REPORT_ENDING) or path == skip:
            continue
        try:
            candidate = identity_candidate(path, safety_path=safety_path, language=_language())
        except PackFormatError:
            continue
        if _is_comparable(candidate):
            yield candidate


def _ratified_safety(folder: Path) -> Iterator[Candidate]:
    path = _only_pack(folder)
    candidate = safety_candidate(path, identity_path=IDENTITY_FOLDER / f"{DEFAULT_PACK}.json", language=_language())
    if _is_comparable(candidate):
        yield candidate


def _is_comparable(candidate: Candidate) -> bool:
    report = _own_report(candidate)
    if report is None:
        return False
    course = candidate.course()
    return (report["course_sha256"], report["plan_sha256"]) == (course.digest(), make_plan(course).digest())


def _own_report(candidate: Candidate) -> dict[str, Any] | None:
    """Return the report beside a pack if it ratifies exactly these bytes, else None."""
    beside = report_path(candidate.path, candidate.pack_id)
    if not beside.exists():
        return None
    try:
        return verify_seal(candidate.value, candidate.data, read_once(beside, MAX_REPORT_BYTES))
    except PackFormatError:
        return None


def _previous_report(folder: Path) -> dict[str, Any] | None:
    """Return the sealed report in the safety folder, of whatever version it ratified, or None where there is none."""
    reports = sorted(folder.glob(f"*{REPORT_ENDING}"))
    if not reports:
        return None
    if len(reports) > 1:
        raise RatificationError(f"{folder.name}: more than one report; leave only the one of the pack last ratified")
    report = strict_json.loads(read_once(reports[0], MAX_REPORT_BYTES), source=reports[0].name)
    if report.get(REPORT_SEAL_FIELD) != report_digest(report) or not isinstance(report.get("trace_hashes"), dict):
        raise RatificationError(f"{reports[0].name}: altered since it was sealed, so the last version is not known")
    return report


def _check_decision_record(pack_id: str, folder: Path) -> None:
    """Refuse a new pack id in a checkout whose decision records do not name it."""
    records = folder.parent.parent / "docs" / "decisions"
    if pack_id == pinned.PACK_ID or not records.is_dir():
        return
    if not any(pack_id in path.read_text(encoding="utf-8") for path in records.glob("*.md")):
        raise RatificationError(f"{pack_id}: a new id needs a decision record in docs/decisions that names it")


def _only_pack(folder: Path) -> Path:
    packs = [path for path in sorted(folder.glob("*.json")) if not path.name.endswith(REPORT_ENDING)]
    if len(packs) != 1:
        raise RatificationError(f"{folder.name}: {len(packs)} packs in the folder, where one has to be")
    return packs[0]


def _language() -> LanguagePack:
    return load_language_pack(COURSE_LANGUAGE, require_seal=False)


def _pin(pack_id: str, pack_bytes: bytes) -> bytes:
    return _PIN_TEMPLATE.format(pack_id=pack_id, sha256=sha256_hex(pack_bytes)).encode("ascii")
