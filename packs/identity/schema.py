"""The schema of an identity pack, with a bound on everything in it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from packs.errors import PackFormatError
from packs.header import HEADER_FIELDS, require_header
from packs.identity.lookalike import refuse_lookalikes
from packs.ids import require_id, shown
from packs.safety.loader import REQUIRED_BOUNDARIES
from packs.seal import require_fields
from packs.text import require_number, require_text

MAX_AXES = 32
MAX_WEIGHT = 10.0
SHORTEST_DIRECTION = 1e-3
"""Directions and their weighted sum shorter than this have no angle worth measuring."""
CLAIM_STRENGTHS = ("balanced", "qualified", "affirmative")

_FIELDS = HEADER_FIELDS | {"alignment_threshold", "value_axes"}
_AXIS_FIELDS = frozenset({"axis_id", "name", "direction", "weight", "note"})
_PREFERENCE_FIELDS = frozenset(
    {
        "hedge_threshold_strong",
        "hedge_threshold_soft",
        "qualified_band_high",
        "preferred_hedge_strong",
        "preferred_hedge_soft",
        "preferred_qualifier",
        "claim_strength",
    }
)
_HEDGE_FIELDS = frozenset({"strong", "soft", "qualifier"})


@dataclass(frozen=True)
class ValueAxis:
    """One value: a direction of three components in [-1, 1] and a weight in [0, 10]."""

    axis_id: str
    name: str
    direction: tuple[float, float, float]
    weight: float
    note: str


@dataclass(frozen=True)
class AxisHedge:
    """Phrases of one axis, used instead of the generic ones when that axis deviates; None: no phrase of its own."""

    strong: str | None = None
    soft: str | None = None
    qualifier: str | None = None


@dataclass(frozen=True)
class SurfacePreferences:
    """How alignment is voiced: below `hedge_threshold_strong` the strong phrase, below `hedge_threshold_soft` the soft
    one, then up to `qualified_band_high` the qualifier if the claim strength is `qualified`."""

    hedge_threshold_strong: float
    hedge_threshold_soft: float
    qualified_band_high: float
    preferred_hedge_strong: str
    preferred_hedge_soft: str
    preferred_qualifier: str
    claim_strength: str
    axis_hedges: Mapping[str, AxisHedge]


@dataclass(frozen=True)
class IdentityBody:
    """The checked content of an identity pack, before its seal."""

    pack_id: str
    version: str
    description: str
    alignment_threshold: float
    boundary_ids: tuple[str, ...]
    value_axes: tuple[ValueAxis, ...]
    surface_preferences: SurfacePreferences | None


def parse_body(value: Mapping[str, Any], *, stem: str, sealed: bool = True) -> IdentityBody:
    """Return the checked content of the parsed pack file whose name without ending is `stem`.

    Args:
      value: the parsed JSON object.
      stem: the file's name without `.json`; the pack's id must equal it.
      sealed: whether the seal field must hold a digest (a draft's may be empty).

    Raises:
      PackFormatError: one line that says what is wrong.
    """
    fields = _FIELDS | {"surface_preferences"} if "surface_preferences" in value else _FIELDS
    boundary_ids = require_header(value, fields, stem=stem, sealed=sealed)
    refuse_lookalikes(boundary_ids, REQUIRED_BOUNDARIES, pack_id=stem)
    axes = _parse_axes(value["value_axes"], stem)
    return IdentityBody(
        pack_id=stem,
        version=value["version"],
        description=value["description"],
        alignment_threshold=require_number(value["alignment_threshold"], 0.0, 1.0, what=f"{stem}: alignment_threshold"),
        boundary_ids=boundary_ids,
        value_axes=axes,
        surface_preferences=(
            _parse_preferences(value["surface_preferences"], axes, stem) if "surface_preferences" in value else None
        ),
    )


def _parse_axes(value: object, stem: str) -> tuple[ValueAxis, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_AXES:
        raise PackFormatError(f"{stem}: value_axes must be a list of 1 to {MAX_AXES} axes")
    axes = tuple(_parse_axis(item, f"{stem}: value axis {i + 1}") for i, item in enumerate(value))
    names = [axis.axis_id for axis in axes]
    if len(set(names)) != len(names):
        raise PackFormatError(f"{stem}: two value axes have the same axis_id")
    if not any(axis.weight > 0 for axis in axes):
        raise PackFormatError(f"{stem}: every axis has weight 0")
    total = [math.fsum(axis.weight * axis.direction[k] for axis in axes) for k in range(3)]
    if math.hypot(*total) < SHORTEST_DIRECTION:
        raise PackFormatError(f"{stem}: the weighted axes cancel out, so that no alignment is defined")
    return axes


def _parse_axis(value: object, what: str) -> ValueAxis:
    if not isinstance(value, dict):
        raise PackFormatError(f"{what}: not an object")
    require_fields(value, _AXIS_FIELDS, name=what)
    axis_id = require_id(value["axis_id"], what=f"{what}: axis_id")
    direction = value["direction"]
    if not isinstance(direction, list) or len(direction) != 3:
        raise PackFormatError(f"{what}: direction must be three numbers")
    x, y, z = (require_number(component, -1.0, 1.0, what=f"{what}: direction") for component in direction)
    if math.hypot(x, y, z) < SHORTEST_DIRECTION:
        raise PackFormatError(f"{what}: the direction is zero")
    return ValueAxis(
        axis_id=axis_id,
        name=require_text(value["name"], what=f"{what}: name", longest=200),
        direction=(x, y, z),
        weight=require_number(value["weight"], 0.0, MAX_WEIGHT, what=f"{what}: weight"),
        note=require_text(value["note"], what=f"{what}: note", may_be_empty=True),
    )


def _parse_preferences(value: object, axes: tuple[ValueAxis, ...], stem: str) -> SurfacePreferences:
    what = f"{stem}: surface_preferences"
    if not isinstance(value, dict):
        raise PackFormatError(f"{what}: not an object")
    require_fields(value, _PREFERENCE_FIELDS | ({"axis_hedges"} & set(value)), name=what)
    strong, soft, band = (
        require_number(value[field], 0.0, 1.0, what=f"{what}: {field}")
        for field in ("hedge_threshold_strong", "hedge_threshold_soft", "qualified_band_high")
    )
    if not strong <= soft <= band:
        raise PackFormatError(f"{what}: the thresholds must not fall from strong to soft to qualified band")
    if value["claim_strength"] not in CLAIM_STRENGTHS:
        raise PackFormatError(f"{what}: claim_strength is none of {', '.join(CLAIM_STRENGTHS)}")
    phrases = [
        require_text(value[field], what=f"{what}: {field}", longest=200)
        for field in ("preferred_hedge_strong", "preferred_hedge_soft", "preferred_qualifier")
    ]
    return SurfacePreferences(
        hedge_threshold_strong=strong,
        hedge_threshold_soft=soft,
        qualified_band_high=band,
        preferred_hedge_strong=phrases[0],
        preferred_hedge_soft=phrases[1],
        preferred_qualifier=phrases[2],
        claim_strength=value["claim_strength"],
        axis_hedges=_parse_axis_hedges(value.get("axis_hedges", {}), axes, what),
    )


def _parse_axis_hedges(value: object, axes: tuple[ValueAxis, ...], what: str) -> Mapping[str, AxisHedge]:
    if not isinstance(value, dict):
        raise PackFormatError(f"{what}: axis_hedges is not an object")
    known = {axis.axis_id for axis in axes}
    hedges: dict[str, AxisHedge] = {}
    for axis_id, phrases in sorted(value.items()):
        if axis_id not in known:
            raise PackFormatError(f"{what}: axis_hedges names {shown(axis_id)}, which is no axis of this pack")
        if not isinstance(phrases, dict) or not phrases:
            raise PackFormatError(f"{what}: axis_hedges of {axis_id} must give at least one phrase")
        require_fields(phrases, _HEDGE_FIELDS & set(phrases), name=f"{what}: axis_hedges of {axis_id}")
        hedges[axis_id] = AxisHedge(
            **{
                field: require_text(text, what=f"{what}: {field} phrase of {axis_id}", longest=200)
                for field, text in phrases.items()
            }
        )
    return MappingProxyType(hedges)
