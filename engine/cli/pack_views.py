"""What a person or a program sees of packs: text and JSON documents, built from loaded packs and never from files."""

from collections.abc import Iterable
from typing import Any

from packs.errors import CoreError
from packs.identity.loader import IdentityPack, available_packs, load_identity_manifold
from packs.safety.loader import REQUIRED_BOUNDARIES, SafetyPack


def safety_document(pack: SafetyPack) -> dict[str, Any]:
    """Return the safety pack as a JSON document: boundaries with descriptions, digest, ratified or not."""
    return {
        "kind": "safety",
        "pack_id": pack.pack_id,
        "version": pack.version,
        "description": pack.description,
        "sha256": pack.sha256,
        "ratified": pack.ratified,
        "boundaries": [
            {"id": name, "description": pack.boundary_descriptions[name], "required": name in REQUIRED_BOUNDARIES}
            for name in sorted(pack.boundary_ids)
        ],
    }


def safety_text(pack: SafetyPack) -> str:
    """Return the safety pack as text, one boundary a line."""
    width = max(len(name) for name in pack.boundary_ids)
    lines = [f"  {name:<{width}}  {pack.boundary_descriptions[name]}" for name in sorted(pack.boundary_ids)]
    return "\n".join([_headline(pack), *lines])


def identity_document(pack: IdentityPack) -> dict[str, Any]:
    """Return an identity pack as a JSON document."""
    preferences = pack.surface_preferences
    return {
        "kind": "identity",
        "pack_id": pack.pack_id,
        "version": pack.version,
        "description": pack.description,
        "sha256": pack.sha256,
        "ratified": pack.ratified,
        "alignment_threshold": pack.alignment_threshold,
        "boundary_ids": list(pack.boundary_ids),
        "value_axes": [
            {
                "axis_id": axis.axis_id,
                "name": axis.name,
                "direction": list(axis.direction),
                "weight": axis.weight,
                "note": axis.note,
            }
            for axis in pack.value_axes
        ],
        "surface_preferences": None
        if preferences is None
        else {
            **{name: value for name, value in vars(preferences).items() if name != "axis_hedges"},
            "axis_hedges": {name: vars(hedge) for name, hedge in preferences.axis_hedges.items()},
        },
    }


def identity_text(pack: IdentityPack) -> str:
    """Return an identity pack as text: axes, threshold, boundaries, claim strength."""
    width = max(len(axis.axis_id) for axis in pack.value_axes)
    axes = [
        f"  {axis.axis_id:<{width}}  weight {axis.weight:g}, direction ({', '.join(f'{x:g}' for x in axis.direction)})"
        for axis in pack.value_axes
    ]
    strength = "none" if pack.surface_preferences is None else pack.surface_preferences.claim_strength
    return "\n".join(
        [
            _headline(pack),
            *axes,
            f"  alignment threshold {pack.alignment_threshold:g}, claim strength {strength}",
            f"  boundaries {', '.join(sorted(pack.boundary_ids))} (the safety pack's are always added)",
        ]
    )


def identity_list(search_paths: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """Return one document for each identity pack; one that does not load gives its `pack_id` and `error`."""
    paths = None if search_paths is None else tuple(search_paths)
    documents: list[dict[str, Any]] = []
    for pack_id in available_packs(search_paths=paths):
        try:
            documents.append(identity_document(load_identity_manifold(pack_id, search_paths=paths)))
        except CoreError as error:
            documents.append({"kind": "identity", "pack_id": pack_id, "error": str(error)})
    return documents


def list_text(documents: Iterable[dict[str, Any]]) -> str:
    """Return documents of packs as a table, one pack a line."""
    rows = [
        (
            item["kind"],
            item["pack_id"],
            item.get("version", "-"),
            item["sha256"][:12] if "sha256" in item else "-",
            item["error"] if "error" in item else ("ratified" if item["ratified"] else "NOT RATIFIED"),
        )
        for item in documents
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(4)] if rows else []
    return "\n".join("  ".join([*(f"{row[i]:<{widths[i]}}" for i in range(4)), row[4]]) for row in rows)


def _headline(pack: SafetyPack | IdentityPack) -> str:
    state = "ratified" if pack.ratified else "NOT RATIFIED"
    return f"{pack.pack_id} {pack.version} ({state}, sha256 {pack.sha256})\n  {pack.description}"
