"""A copy of one shipped pack and its report, and the ways in which an attacker edits, re-seals and re-pins them."""

import copy
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import packs
from packs import seal
from packs.identity.loader import IdentityPack, load_identity_manifold
from packs.safety import loader, pinned
from packs.safety.loader import SafetyPack

PACKS = Path(packs.__file__).parent
SAFETY_ID = pinned.PACK_ID
SAFETY_PACK = (PACKS / "safety" / f"{SAFETY_ID}.json").read_bytes()
SAFETY_REPORT = (PACKS / "safety" / f"{SAFETY_ID}{seal.REPORT_ENDING}").read_bytes()
IDENTITY_ID = "precision_first_v1"
IDENTITY_PACK = (PACKS / "identity" / f"{IDENTITY_ID}.json").read_bytes()
IDENTITY_REPORT = (PACKS / "identity" / f"{IDENTITY_ID}{seal.REPORT_ENDING}").read_bytes()
OWN_ID = "own_pack_v1"
NOBODY = 65534

Edit = Callable[[dict[str, Any]], object]


@dataclass(frozen=True)
class Files:
    """The names and bytes of one pack and its report."""

    pack_name: str
    report_name: str
    pack: bytes
    report: bytes

    def write(self, folder: Path) -> None:
        """Write both files into `folder`."""
        (folder / self.pack_name).write_bytes(self.pack)
        (folder / self.report_name).write_bytes(self.report)


SAFETY = Files(f"{SAFETY_ID}.json", f"{SAFETY_ID}{seal.REPORT_ENDING}", SAFETY_PACK, SAFETY_REPORT)


def edited(data: bytes, edit: Edit) -> dict[str, Any]:
    """Return the parsed object of `data` after `edit` changed it in place."""
    value: dict[str, Any] = copy.deepcopy(json.loads(data))
    edit(value)
    return value


def layout(value: dict[str, Any]) -> bytes:
    """Return `value` as a sealed file lies on disk; unlike the house's writer it also writes what is not sound."""
    return (json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def passing_report(pack: dict[str, Any], gates: dict[str, float] | None = None) -> dict[str, Any]:
    """Return a report that says that every gate passed, as an attacker who has the code would make it."""
    wanted = dict(seal.REQUIRED_GATES) if gates is None else gates
    return seal.build_report(
        {"pack_id": pack.get("pack_id"), **pack},
        gates=[seal.Gate(name, threshold, threshold) for name, threshold in wanted.items()],
        trace_hashes={"step": "0" * 64},
        failure_reasons=[],
        course_sha256="0" * 64,
        plan_sha256="0" * 64,
        issued_at="2026-01-01T00:00:00Z",
    )


def resealed(pack: dict[str, Any], base: Files) -> Files:
    """Return files whose seal holds over the hostile `pack`: only schema, bounds and floor can still refuse them."""
    report = passing_report(pack)
    sealed = {**pack, seal.SEAL_FIELD: report[seal.REPORT_SEAL_FIELD]} if seal.SEAL_FIELD in pack else pack
    return Files(base.pack_name, base.report_name, layout(sealed), layout(report))


def with_report(pack: bytes, report: dict[str, Any], base: Files, *, self_seal: bool = True) -> Files:
    """Return files in which the pack carries the seal of the hostile `report`."""
    if self_seal and seal.REPORT_SEAL_FIELD in report:
        report = {**report, seal.REPORT_SEAL_FIELD: seal.report_digest(report)}
    value = {**json.loads(pack), seal.SEAL_FIELD: report.get(seal.REPORT_SEAL_FIELD, "0" * 64)}
    return Files(base.pack_name, base.report_name, layout(value), layout(report))


def load_safety(folder: Path, *, repin: bool, unratified: bool = False) -> SafetyPack:
    """Load the safety pack in `folder` against the shipped pin, or against a pin made over the hostile bytes."""
    pin = (SAFETY_ID, pinned.PACK_SHA256)
    if repin:
        path = folder / SAFETY.pack_name
        readable = path.is_file() and path.stat().st_size <= 2**20
        pin = (SAFETY_ID, seal.sha256_hex(path.read_bytes()) if readable else pinned.PACK_SHA256)
    return loader.load_folder(folder, pin=pin, unratified=unratified)


def own_identity() -> dict[str, Any]:
    """Return a sound identity pack with an id of its own, as a user would write it."""
    return edited(IDENTITY_PACK, lambda pack: pack.update(pack_id=OWN_ID))


OWN = resealed(own_identity(), Files(f"{OWN_ID}.json", f"{OWN_ID}{seal.REPORT_ENDING}", b"", b""))


def load_own(folder: Path) -> IdentityPack:
    """Load the user's identity pack in `folder` through the sanctioned door."""
    return load_identity_manifold(OWN_ID, search_paths=[folder])


def as_nobody(act: Callable[[], object]) -> None:
    """Run `act` without rights, since root reads every file; the effective user is put back whatever happens.

    No child is forked: the process may hold JAX's threads.
    """
    if os.geteuid() != 0:
        act()
        return
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        act()
    finally:
        os.seteuid(0)
        os.setegid(0)
