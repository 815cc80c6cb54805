"""Which change of the safety pack asks for which version (docs/decisions/0030-safety-pack-versions.md).

What was ratified before is read from the sealed report beside the pack: its plan names the version and the boundaries,
and its body digest tells whether anything changed at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.base.errors import RatificationError
from packs.ids import parse_version
from packs.safety.loader import REQUIRED_BOUNDARIES
from packs.seal import body_digest


@dataclass(frozen=True)
class Ratified:
    """What the last report says about the pack it ratified."""

    pack_id: str
    version: str
    boundary_ids: frozenset[str]
    body_sha256: str


def ratified_before(report: Mapping[str, Any]) -> Ratified | None:
    """Return what a sealed safety report ratified, or None for a report without a course that names it."""
    composed = [step.split("/") for step in report["trace_hashes"] if step.startswith("compose/")]
    if len(composed) != 1 or len(composed[0]) != 3:
        return None
    boundaries = frozenset(step.removeprefix("seed/") for step in report["trace_hashes"] if step.startswith("seed/"))
    _, pack_id, version = composed[0]
    return Ratified(pack_id, version, boundaries, report["pack_sha256"])


def check_version(pack: Mapping[str, Any], before: Ratified | None) -> None:
    """Raise `RatificationError` unless the pack's version and id fit what changed since `before`.

    Nothing changed: the same version. Words only: the next patch. A boundary added: the next minor, the same id. A
    boundary removed: a new id, the next major (and a decision record); never one of the five.
    """
    boundaries = frozenset(pack["boundary_ids"])
    missing = sorted(REQUIRED_BOUNDARIES - boundaries)
    if missing:
        raise RatificationError(f"{pack['pack_id']}: the boundary {missing[0]} can never be removed")
    if before is None:
        return
    major, minor, patch = parse_version(before.version, what="the ratified version")
    removed, added = sorted(before.boundary_ids - boundaries), sorted(boundaries - before.boundary_ids)
    if pack["pack_id"] != before.pack_id:
        expected, why = (major + 1, 0, 0), f"a new id replaces {before.pack_id}"
    elif removed:
        raise RatificationError(
            f"{pack['pack_id']}: {removed[0]} was removed; that asks for a new id, version {major + 1}.0.0 "
            "and a decision record"
        )
    elif body_digest(pack) == before.body_sha256:
        expected, why = (major, minor, patch), "nothing changed"
    elif added:
        expected, why = (major, minor + 1, 0), f"{added[0]} was added"
    else:
        expected, why = (major, minor, patch + 1), "only words changed"
    if parse_version(pack["version"], what="version") != expected:
        wanted = ".".join(str(part) for part in expected)
        raise RatificationError(f"{pack['pack_id']}: {why} since {before.version}, so the version must be {wanted}")
