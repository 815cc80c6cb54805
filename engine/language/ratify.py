"""Ratify a language pack: load it, compile it, measure the eight gates, and seal what passes."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.language.build import anchor_from, load_beside
from engine.language.compile import compile_vocabulary
from engine.language.digest import coordinates_digest, vocabulary_digest
from engine.language.gates import Candidate, failed_gates, measure_gates
from engine.language.vocabulary import Vocabulary
from packs import seal, strict_json
from packs.errors import LanguagePackError, PackFormatError
from packs.files import read_once, write_together
from packs.language.authoring import build_files, read_tables
from packs.language.gates import REQUIRED_LANGUAGE_GATES
from packs.language.loader import MANIFEST, MAX_MANIFEST_BYTES, MAX_PART_BYTES, load_language_folder
from packs.language.model import LanguagePack
from packs.language.schema import PARTS
from packs.seal import Gate

COURSE = {"course": "language", "version": "1.0.0", "gates": dict(REQUIRED_LANGUAGE_GATES)}


@dataclass(frozen=True)
class Outcome:
    """What ratification found. `written` is False where the pack failed, or was sealed already with this result."""

    pack_id: str
    gates: tuple[Gate, ...]
    failure_reasons: tuple[str, ...]
    written: bool

    @property
    def ratified(self) -> bool:
        """Did every gate pass?"""
        return not self.failure_reasons


def ratify_language_folder(folder: Path, *, tables: Path | None = None, issued_at: str | None = None) -> Outcome:
    """Measure the pack in `folder` and, if every gate passes, seal it and write its mastery report.

    Args:
      folder: the pack.
      tables: its authoring folder, where there is one: the determinism gate then rebuilds the pack from it.
      issued_at: time of issue, ISO 8601 in UTC; default now. An unchanged pack keeps its report and time.

    A pack that fails is left as it was. Raises `OSError` where files cannot be written.
    """
    folder = folder.resolve()
    try:
        pack = load_language_folder(folder, require_seal=False)
        candidate = _candidate(pack, folder, tables)
    except (LanguagePackError, PackFormatError) as error:
        gates, reasons = failed_gates(str(error))
        return Outcome(folder.name, gates, reasons, written=False)
    gates = measure_gates(candidate)
    reasons = tuple(f"{g.name}: {g.measurement:.4f} is below {g.threshold:g}" for g in gates if not g.passed)
    written = not reasons and _seal(folder, candidate, gates, issued_at)
    return Outcome(pack.pack_id, gates, reasons, written)


def _candidate(pack: LanguagePack, folder: Path, tables: Path | None) -> Candidate:
    anchors: dict[str, tuple[LanguagePack, Vocabulary]] = {}
    for language in pack.manifest.anchors:
        other = load_beside(language, folder)
        anchors[language] = (other, compile_vocabulary(other))
    reproducible = _is_canonical(folder) and (tables is None or _rebuilds(folder, tables, anchors))
    return Candidate(pack, compile_vocabulary(pack), anchors, reproducible)


def _is_canonical(folder: Path) -> bool:
    """Does each file equal the one form of its own content?"""
    for name in PARTS:
        raw = read_once(folder / name, MAX_PART_BYTES)
        if strict_json.file_bytes(strict_json.loads(raw, source=name)) != raw:
            return False
    return True


def _rebuilds(folder: Path, tables: Path, anchors: dict[str, tuple[LanguagePack, Vocabulary]]) -> bool:
    """Do the tables give the same bytes again? The manifest is compared without its seal."""
    known = {language: anchor_from(*pair) for language, pair in anchors.items()}
    files = build_files(read_tables(tables), folder.name, known)
    manifest = strict_json.loads(read_once(folder / MANIFEST, MAX_MANIFEST_BYTES), source=MANIFEST)
    blank = strict_json.file_bytes({**manifest, seal.SEAL_FIELD: ""})
    current = {name: read_once(folder / name, MAX_PART_BYTES) for name in files if name != MANIFEST}
    return files == {**current, MANIFEST: blank}


def _seal(folder: Path, candidate: Candidate, gates: Sequence[Gate], issued_at: str | None) -> bool:
    manifest = strict_json.loads(read_once(folder / MANIFEST, MAX_MANIFEST_BYTES), source=MANIFEST)
    body: dict[str, Any] = {**manifest, seal.SEAL_FIELD: ""}
    traces = {
        "coordinates": coordinates_digest(candidate.vocabulary),
        "vocabulary": vocabulary_digest(candidate.vocabulary),
    }
    if _is_current(folder, candidate.pack, gates, traces):
        return False
    report = seal.build_report(
        body,
        gates=gates,
        trace_hashes=traces,
        failure_reasons=(),
        course_sha256=seal.sha256_hex(strict_json.canonical_bytes(COURSE)),
        plan_sha256=seal.sha256_hex(strict_json.canonical_bytes({k: manifest[k] for k in ("files", "sources")})),
        issued_at=issued_at or datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    pack_bytes, report_bytes = seal.sealed_files(body, report)
    sealed = strict_json.loads(pack_bytes, source=MANIFEST)
    seal.verify_seal(sealed, pack_bytes, report_bytes, required_gates=REQUIRED_LANGUAGE_GATES)
    write_together([(_report_path(folder), report_bytes), (folder / MANIFEST, pack_bytes)])
    return True


def _is_current(folder: Path, pack: LanguagePack, gates: Sequence[Gate], traces: dict[str, str]) -> bool:
    if not pack.ratified:
        return False
    report = strict_json.loads(read_once(_report_path(folder), seal.MAX_REPORT_BYTES), source="report")
    measured = {gate.name: gate.measurement for gate in gates}
    return report["trace_hashes"] == traces and measured == {g["name"]: g["measurement"] for g in report["gates"]}


def _report_path(folder: Path) -> Path:
    return folder / f"{folder.name}{seal.REPORT_ENDING}"
