"""Staging: a proposal, its diff and its lineage in a folder, and the one way by which a proposal becomes the live text.

What is staged holds no time and no run id, so that equal inputs stage equal bytes.
"""

import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.base.errors import StagingError
from engine.instruments.arms import PathLike, lineage_fields
from engine.instruments.constitution import ConstitutionUnreadable, constitution_paths
from engine.instruments.files import FileFault, read_bytes, text_sha256, write_atomic
from engine.instruments.synthesize.base import ClauseLineage

SCHEMA_VERSION = "1.0.0"
MANIFEST, PROPOSAL, DIFF, LINEAGE = "manifest.json", "proposal.md", "proposal.diff", "lineage.json"
HISTORY = ".history"
"""Folder inside the constitution's own that keeps replaced texts; its name hides it from `*.md`."""


@dataclass(frozen=True)
class Proposal:
    """What is staged. Texts are stripped; `current_text` is the file in force when the proposal was made."""

    constitution_dir: Path
    file: str
    current_text: str
    text: str
    diff: str
    lineage: tuple[ClauseLineage, ...] | None
    pattern_texts: Mapping[str, str]
    patterns_sha256: str
    generator: str
    generator_parameters: Mapping[str, Any]
    embedding_model: str
    key: int


@dataclass(frozen=True)
class Staged:
    """A staged proposal as read back and checked."""

    folder: Path
    constitution_dir: Path
    file: str
    current_sha256: str
    text: str
    diff: str

    @property
    def target(self) -> Path:
        """The file that adoption replaces."""
        return self.constitution_dir / self.file


def stage(proposal: Proposal, folder: PathLike) -> tuple[Path, ...]:
    """Write the proposal into `folder` (made if absent) and return the files. Raises `StagingError`.

    The manifest is written last and names the digest of every other file: a staging cut short does not read back.
    """
    root = Path(folder)
    contents = {
        PROPOSAL: f"{proposal.text}\n".encode(),
        DIFF: proposal.diff.encode(),
        LINEAGE: _encode({"clauses": lineage_fields(proposal.lineage), "patterns": _cited(proposal)}),
    }
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "constitution_dir": str(proposal.constitution_dir),
        "file": proposal.file,
        "current_sha256": text_sha256(proposal.current_text),
        "patterns_sha256": proposal.patterns_sha256,
        "generator": proposal.generator,
        "generator_parameters": dict(proposal.generator_parameters),
        "embedding_model": proposal.embedding_model,
        "key": proposal.key,
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(contents.items())},
    }
    try:
        root.mkdir(parents=True, exist_ok=True)
        (root / MANIFEST).unlink(missing_ok=True)
        for name, data in (*contents.items(), (MANIFEST, _encode(manifest))):
            write_atomic(root / name, data)
    except (OSError, FileFault) as error:
        raise StagingError(f"staging in {folder}: {getattr(error, 'strerror', None) or error}") from None
    return tuple(root / name for name in (PROPOSAL, DIFF, LINEAGE, MANIFEST))


def read_staged(folder: PathLike) -> Staged:
    """Return the proposal staged in `folder`. Raises `StagingError` if it is incomplete, altered or malformed."""
    root = Path(folder)
    manifest = _manifest(root)
    texts = {}
    for name in (PROPOSAL, DIFF, LINEAGE):
        data = _read(root / name)
        if hashlib.sha256(data).hexdigest() != manifest["files"].get(name):
            raise StagingError(f"{name} was altered since it was staged")
        texts[name] = data
    try:
        proposal, diff = texts[PROPOSAL].decode("utf-8").strip(), texts[DIFF].decode("utf-8")
    except UnicodeDecodeError:
        raise StagingError("the staged texts are not UTF-8") from None
    if not proposal:
        raise StagingError("the staged proposal is empty")
    return Staged(
        root, Path(manifest["constitution_dir"]), manifest["file"], manifest["current_sha256"], proposal, diff
    )


def adopt(staged: Staged) -> Path:
    """Put the proposal in force and return where the old text is kept. Raises `StagingError`.

    Refused if the file in force is no longer the text that the proposal was made for, is no longer the first file, or
    is a link. The old text is on the disk before the new one replaces it; the replacement is atomic and keeps the mode.
    """
    with _locked(staged.constitution_dir):
        old = _current_bytes(staged)
        kept = staged.constitution_dir / HISTORY / f"{Path(staged.file).stem}.{hashlib.sha256(old).hexdigest()[:16]}.md"
        try:
            mode = stat.S_IMODE(os.stat(staged.target, follow_symlinks=False).st_mode)
            kept.parent.mkdir(mode=0o700, exist_ok=True)
            write_atomic(kept, old, mode=mode)
            write_atomic(staged.target, f"{staged.text}\n".encode(), mode=mode)
        except (OSError, FileFault) as error:
            raise StagingError(f"{staged.file}: {getattr(error, 'strerror', None) or error}") from None
    return kept


def check_adoptable(staged: Staged) -> None:
    """Raise `StagingError` unless the text in force is the one that the proposal was made for."""
    _current_bytes(staged)


def _current_bytes(staged: Staged) -> bytes:
    try:
        paths = constitution_paths(staged.constitution_dir)
    except ConstitutionUnreadable as fault:
        raise StagingError(str(fault)) from None
    if not paths or paths[0] != staged.target:
        raise StagingError(f"{staged.file} is not the first *.md file in {staged.constitution_dir} any more")
    if staged.target.is_symlink():
        raise StagingError(f"{staged.file} is a symbolic link: adopt into the real folder")
    data = _read(staged.target)
    try:
        text = data.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise StagingError(f"{staged.file} is not UTF-8") from None
    if text_sha256(text) != staged.current_sha256:
        raise StagingError(f"{staged.file} changed since the proposal was staged: make a new one")
    return data


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, so that two adoptions cannot both find the old text in force."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StagingError(f"{folder}: {error.strerror}") from None
    try:
        _lock(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StagingError(f"{folder}: another adoption is going on") from None


def _manifest(root: Path) -> dict[str, Any]:
    data = _read(root / MANIFEST)
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError):
        raise StagingError(f"{MANIFEST} is not JSON") from None
    wanted = {"schema_version": str, "constitution_dir": str, "file": str, "current_sha256": str, "files": dict}
    if not isinstance(manifest, dict) or any(not isinstance(manifest.get(k), t) for k, t in wanted.items()):
        raise StagingError(f"{MANIFEST} lacks a field or has one of the wrong type")
    if manifest["schema_version"] != SCHEMA_VERSION:
        raise StagingError(f"{MANIFEST} has schema {manifest['schema_version']!r}, not {SCHEMA_VERSION}")
    name = manifest["file"]
    if Path(name).name != name or not name.endswith(".md") or name.startswith("."):
        raise StagingError(f"{MANIFEST} names {name!a}, which is not a file of a constitution")
    return manifest


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except FileFault as fault:
        raise StagingError(str(fault)) from None


def _cited(proposal: Proposal) -> dict[str, str]:
    ids = {pattern for clause in proposal.lineage or () for pattern in clause.pattern_ids}
    return {pattern: proposal.pattern_texts[pattern] for pattern in sorted(ids) if pattern in proposal.pattern_texts}


def _encode(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=True, allow_nan=False, sort_keys=True, indent=1) + "\n").encode("ascii")
