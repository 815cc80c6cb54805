"""Verify one pack file or folder of any kind and say in one line what it is, or what is wrong with it.

This is a diagnosis: it works without an operative safety pack, and imports nothing but the loaders.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packs import strict_json
from packs.errors import IdentityPackError, PackFormatError, SafetyPackError
from packs.files import list_folder, open_folder, read_once
from packs.identity.loader import load_file as load_identity_file
from packs.safety import loader as safety
from packs.safety import pinned
from packs.safety.schema import parse_body as parse_safety
from packs.seal import MAX_REPORT_BYTES, REPORT_ENDING, sha256_hex, verify_seal

MANIFEST = "manifest.json"
_KINDS = ("identity", "safety")


@dataclass(frozen=True)
class Verified:
    """A pack that holds: what kind, which id and version, the digest of its bytes, and a remark."""

    kind: str
    pack_id: str
    version: str
    sha256: str
    remark: str = ""

    def line(self) -> str:
        """Return the one line that is shown for it."""
        remark = f"; {self.remark}" if self.remark else ""
        return f"ok: {self.kind} pack {self.pack_id} {self.version}, sha256 {self.sha256}{remark}"


def verify_path(path: Path) -> tuple[Verified, ...]:
    """Return what was verified at `path`, a pack file, a report, or a folder of packs.

    Raises:
      PackFormatError, SafetyPackError, IdentityPackError, LanguagePackError: the first thing that does not hold.
    """
    if not os.path.lexists(path):
        raise PackFormatError(f"{str(path)!a}: there is no such file or folder")
    if not path.is_dir():
        return (_verify_file(path),)
    if path.resolve() == safety.INSTALLED_FOLDER:
        return (_verify_installed_safety(),)
    names = _json_names(path)
    if MANIFEST in names:
        return (_verify_language(path),)
    packs = [name for name in names if not name.endswith(REPORT_ENDING)]
    orphans = [name for name in names if name.endswith(REPORT_ENDING) and _pack_of(name) not in packs]
    if orphans:
        raise PackFormatError(f"{orphans[0]}: a report without its pack")
    found = tuple(_verify_file(path / name) for name in packs) + tuple(_verify_language(p) for p in _languages(path))
    # The layout of a folder of packs (`packs_path`): identity packs in a folder of their own, languages beside it.
    found += tuple(one for name in _KINDS if (path / name).is_dir() for one in verify_path(path / name))
    if not found:
        raise PackFormatError(f"{path.name!a}: no pack in this folder")
    return found


def _verify_file(path: Path) -> Verified:
    if path.name == MANIFEST:
        return _verify_language(path.parent)
    if path.name.endswith(REPORT_ENDING):
        path = path.with_name(_pack_of(path.name))
    if not path.name.endswith(".json"):
        raise PackFormatError(f"{path.name!a}: a pack file ends in .json")
    data = read_once(path, safety.MAX_PACK_BYTES * 4)
    value = strict_json.loads(data, source=path.name)
    if "value_axes" in value or "alignment_threshold" in value:
        return _verify_identity(path)
    return _verify_safety(path)


def _verify_identity(path: Path) -> Verified:
    try:
        pack = load_identity_file(path)
    except PackFormatError as error:
        raise IdentityPackError(f"identity pack: {error}") from None
    return Verified("identity", pack.pack_id, pack.version, pack.sha256)


def _verify_safety(path: Path) -> Verified:
    if path.parent.resolve() == safety.INSTALLED_FOLDER:
        return _verify_installed_safety()
    stem = path.name[: -len(".json")]
    try:
        with open_folder(path.parent, follow=True) as folder:
            data = read_once(path.name, safety.MAX_PACK_BYTES, folder=folder)
            value = strict_json.loads(data, source=path.name)
            body = parse_safety(value, stem=stem)
            verify_seal(value, data, read_once(f"{stem}{REPORT_ENDING}", MAX_REPORT_BYTES, folder=folder))
        safety.check_floor(body.boundary_ids, pack_id=stem)
    except PackFormatError as error:
        raise SafetyPackError(f"safety pack: {error}") from None
    digest = sha256_hex(data)
    same = digest == pinned.PACK_SHA256
    remark = "the pack that this installation pins" if same else "not the pack that this installation pins"
    return Verified("safety", body.pack_id, body.version, digest, remark)


def _verify_installed_safety() -> Verified:
    pack = safety.load_folder(safety.INSTALLED_FOLDER, pin=(pinned.PACK_ID, pinned.PACK_SHA256))
    return Verified("safety", pack.pack_id, pack.version, pack.sha256, "the pack that this installation pins")


def _verify_language(path: Path) -> Verified:
    from packs.language.loader import load_language_folder

    pack = load_language_folder(path)
    return Verified("language", pack.pack_id, pack.manifest.version, pack.sha256)


def _json_names(path: Path) -> tuple[str, ...]:
    with open_folder(path, follow=True) as folder:
        return tuple(name for name in list_folder(folder) if name.lower().endswith(".json"))


def _languages(path: Path) -> Iterator[Path]:
    yield from sorted(child for child in path.iterdir() if (child / MANIFEST).is_file())


def _pack_of(report_name: str) -> str:
    return f"{report_name[: -len(REPORT_ENDING)]}.json"
