"""Load the safety pack of this installation, or refuse to start.

`load_safety_pack()` takes no argument. It reads the folder of this very module, compares the pack's raw bytes with the
pin in `packs.safety.pinned` before a byte is parsed, checks schema, seal and verdict, and then the floor below. Every
failure is a `SafetyPackError`; no other exception type escapes, and nothing may catch it to go on.
"""

import functools
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packs import strict_json
from packs.errors import PackFormatError
from packs.errors import SafetyOverrideError as SafetyOverrideError
from packs.errors import SafetyPackError as SafetyPackError
from packs.files import list_folder, open_folder, read_once
from packs.ids import require_id, shown
from packs.safety import pinned
from packs.safety.schema import SafetyBody, parse_body
from packs.seal import MAX_REPORT_BYTES, REPORT_ENDING, sha256_hex, verify_seal

REQUIRED_BOUNDARIES: frozenset[str] = frozenset(
    {
        "no_fabricated_source",
        "no_hot_path_repair",
        "no_identity_override",
        "no_silent_correction",
        "preserve_versor_closure",
    }
)
"""The floor: a pack without one of these refuses to start, sealed and pinned or not."""

MAX_PACK_BYTES = 64 * 1024
UNRATIFIED_VARIABLE = "CORE_ALLOW_UNRATIFIED_SAFETY"
_FORBIDDEN_PREFIX = "CORE_SAFETY_PACK"
INSTALLED_FOLDER = Path(os.path.abspath(__file__)).parent


@dataclass(frozen=True)
class SafetyPack:
    """The operative safety pack: a set of boundaries, no axes, no weights, no thresholds.

    `sha256` is the digest of the file's raw bytes; `ratified` is False only under `CORE_ALLOW_UNRATIFIED_SAFETY=1`.
    """

    pack_id: str
    version: str
    description: str
    boundary_ids: frozenset[str]
    boundary_descriptions: Mapping[str, str]
    sha256: str
    ratified: bool


def load_safety_pack() -> SafetyPack:
    """Return the safety pack of this installation.

    Raises:
      SafetyOverrideError: an environment variable tries to pick another pack.
      SafetyPackError: the pack or its report is missing, unreadable, altered, unsealed, not the pinned one, or without
        one of `REQUIRED_BOUNDARIES`.
    """
    refuse_variables(os.environ)
    unratified = _allows_unratified(os.environ.get(UNRATIFIED_VARIABLE), INSTALLED_FOLDER.parent.parent)
    pack = load_folder(INSTALLED_FOLDER, pin=(pinned.PACK_ID, pinned.PACK_SHA256), unratified=unratified)
    if unratified:
        _warn(f"{UNRATIFIED_VARIABLE}=1: seal and pin of the safety pack are NOT checked; every record is stamped so")
    return pack


def load_folder(folder: Path, *, pin: tuple[str, str], unratified: bool = False) -> SafetyPack:
    """Return the one safety pack in `folder`; `load_safety_pack` calls it with this installation's folder and pin.

    Args:
      folder: the folder that holds exactly one pack and its report.
      pin: the id and the SHA-256 of the pack's raw bytes.
      unratified: skip seal and pin, never schema or floor; the result then says `ratified=False`.

    Raises:
      SafetyPackError: one line that says what is wrong.
    """
    try:
        pack_id, pack_bytes, report_bytes = _read_folder(folder, pin[0], unratified)
        if not unratified and sha256_hex(pack_bytes) != pin[1]:
            raise PackFormatError(f"{pack_id}: the bytes are not those pinned in packs/safety/pinned.py")
        body = _check_pack(pack_id, pack_bytes, None if unratified else report_bytes)
    except (PackFormatError, OSError, RecursionError) as error:
        raise SafetyPackError(f"safety pack: {error}") from None
    return _operative(body, pack_bytes, ratified=not unratified)


def candidate(stem: str, data: bytes) -> SafetyPack:
    """Return the bytes of a pack under ratification, with schema and floor checked and `ratified` False.

    For formation only: nothing that serves a user may start from what this returns. Raises `PackFormatError`.
    """
    return _operative(_check_pack(stem, data, None), data, ratified=False)


def check_floor(boundary_ids: frozenset[str], *, pack_id: str) -> None:
    """Raise `PackFormatError` unless `boundary_ids` holds every one of `REQUIRED_BOUNDARIES`."""
    missing = sorted(REQUIRED_BOUNDARIES - boundary_ids)
    if missing:
        raise PackFormatError(f"{pack_id}: without the boundary {', '.join(missing)}, which no pack may drop")


def refuse_variables(environment: Mapping[str, str]) -> None:
    """Raise `SafetyOverrideError` if a variable looks like an attempt to pick a safety pack."""
    for name in environment:
        if name.upper().startswith(_FORBIDDEN_PREFIX):
            raise SafetyOverrideError(
                f"the environment variable {ascii(name)[1:-1][:80]} has no place here: the safety pack cannot be chosen"
            )


def is_source_checkout(root: Path) -> bool:
    """Return whether `root` is a source tree of this project: `pyproject.toml` and `.git`, not a site folder."""
    if {"site-packages", "dist-packages"} & set(root.parts):
        return False
    return (root / "pyproject.toml").is_file() and (root / ".git").exists()


def _allows_unratified(value: str | None, root: Path) -> bool:
    if value != "1":
        return False
    if is_source_checkout(root):
        return True
    _warn(f"{UNRATIFIED_VARIABLE}=1 has no effect outside a source checkout; the pack is checked in full")
    return False


def _read_folder(folder: Path, pack_id: str, unratified: bool) -> tuple[str, bytes, bytes | None]:
    """Return id, pack bytes and report bytes (None if unratified) of a folder with one pack and nothing else."""
    with open_folder(folder) as descriptor:
        names = [name for name in list_folder(descriptor) if name.lower().endswith(".json")]
        if unratified:
            pack_id = _only_pack(names)
        pack_name, report_name = f"{pack_id}.json", f"{pack_id}{REPORT_ENDING}"
        for name in (pack_name,) if unratified else (pack_name, report_name):
            if name not in names:
                raise PackFormatError(f"{name} is missing")
        for name in names:
            if name not in (pack_name, report_name):
                raise PackFormatError(f"{shown(name)} has no place beside the one pack and its report")
        pack_bytes = read_once(pack_name, MAX_PACK_BYTES, folder=descriptor)
        if unratified:
            return pack_id, pack_bytes, None
        return pack_id, pack_bytes, read_once(report_name, MAX_REPORT_BYTES, folder=descriptor)


def _only_pack(names: list[str]) -> str:
    packs = [name for name in names if not name.endswith(REPORT_ENDING)]
    if len(packs) != 1:
        raise PackFormatError(f"{len(packs)} packs in the folder, where one has to be")
    return require_id(packs[0].removesuffix(".json"), what="file name")


def _check_pack(pack_id: str, pack_bytes: bytes, report_bytes: bytes | None) -> SafetyBody:
    value = strict_json.loads(pack_bytes, source=f"{pack_id}.json")
    body = parse_body(value, stem=pack_id, sealed=report_bytes is not None)
    if report_bytes is not None:
        verify_seal(value, pack_bytes, report_bytes)
    check_floor(body.boundary_ids, pack_id=pack_id)
    return body


def _operative(body: SafetyBody, pack_bytes: bytes, *, ratified: bool) -> SafetyPack:
    return SafetyPack(
        pack_id=body.pack_id,
        version=body.version,
        description=body.description,
        boundary_ids=body.boundary_ids,
        boundary_descriptions=body.boundary_descriptions,
        sha256=sha256_hex(pack_bytes),
        ratified=ratified,
    )


@functools.cache
def _warn(text: str) -> None:
    """Say it once a process: a sweep loads the pack at every record."""
    sys.stderr.write(f"WARNING: {text}\n")
