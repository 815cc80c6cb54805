"""The bounds of an identity pack, each at its edge: what is just allowed, and what is just refused."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest

from packs.errors import PackFormatError
from packs.identity.schema import MAX_AXES, SHORTEST_DIRECTION, parse_body
from tests.attacks.workspace import OWN, OWN_ID, edited

Edit = Callable[[dict[str, Any]], object]


def axis(number: int, **changes: Any) -> dict[str, Any]:
    return {"axis_id": f"axis{number}", "name": "n", "direction": [1.0, 0.0, 0.0], "weight": 1.0, "note": ""} | changes


def axes(*values: dict[str, Any]) -> Edit:
    """Replace the axes, and drop the preferences, which name axes."""

    def edit(pack: dict[str, Any]) -> None:
        pack.pop("surface_preferences")
        pack["value_axes"] = list(values)

    return edit


def preference(**changes: Any) -> Edit:
    return lambda pack: pack["surface_preferences"].update(changes)


ALLOWED: dict[str, Edit] = {
    "as many axes as there may be": axes(*(axis(i) for i in range(MAX_AXES))),
    "one axis": axes(axis(0)),
    "an axis of weight 0 beside another": axes(axis(0), axis(1, weight=0)),
    "axes that cancel but for the bound": axes(
        axis(0), axis(1, direction=[-(1.0 - SHORTEST_DIRECTION), 0.0, 0.0]), axis(2, weight=0)
    ),
    "the shortest direction": axes(axis(0, direction=[0.0, SHORTEST_DIRECTION, 0.0], weight=10.0)),
    "a name of 200 characters": axes(axis(0, name="n" * 200)),
    "a phrase of 200 characters": preference(preferred_qualifier="q" * 200),
    "equal thresholds": preference(hedge_threshold_strong=0.5, hedge_threshold_soft=0.5, qualified_band_high=0.5),
    "thresholds at the ends": preference(hedge_threshold_strong=0, hedge_threshold_soft=1, qualified_band_high=1),
}
REFUSED: dict[str, tuple[Edit, str]] = {
    "an axis too many": (axes(*(axis(i) for i in range(MAX_AXES + 1))), "1 to 32 axes"),
    "no axis": (axes(), "1 to 32 axes"),
    "two axes of one id": (axes(axis(0), axis(0)), "same axis_id"),
    "only axes of weight 0": (axes(axis(0, weight=0), axis(1, weight=0.0)), "every axis has weight 0"),
    "axes that cancel": (axes(axis(0), axis(1, direction=[-1.0, 0.0, 0.0])), "cancel out"),
    "axes that nearly cancel": (axes(axis(0), axis(1, direction=[-0.9995, 0.0, 0.0])), "cancel out"),
    "a direction below the shortest": (axes(axis(0), axis(1, direction=[0.0, 9e-4, 0.0])), "direction is zero"),
    "a direction of two numbers": (axes(axis(0, direction=[1.0, 0.0])), "three numbers"),
    "a direction beyond 1": (axes(axis(0, direction=[1.0000001, 0.0, 0.0])), "direction"),
    "a name of 201 characters": (axes(axis(0, name="n" * 201)), "longer than 200"),
    "a phrase of 201 characters": (preference(preferred_qualifier="q" * 201), "longer than 200"),
    "an axis phrase of 201 characters": (preference(axis_hedges={"AXIS": {"strong": "s" * 201}}), "longer than 200"),
    "an axis without a phrase": (preference(axis_hedges={"AXIS": {}}), "at least one phrase"),
    "a phrase for no axis": (preference(axis_hedges={"nobody": {"strong": "s"}}), "no axis of this pack"),
    "a soft threshold below the strong": (preference(hedge_threshold_strong=0.9), "must not fall"),
    "a band below the soft threshold": (preference(qualified_band_high=0.0), "must not fall"),
}


def parsed(edit: Edit) -> Any:
    value = edited(OWN.pack, edit)
    preferences = value.get("surface_preferences", {})
    if "AXIS" in preferences.get("axis_hedges", {}):
        preferences["axis_hedges"] = {value["value_axes"][0]["axis_id"]: preferences["axis_hedges"]["AXIS"]}
    return parse_body(value, stem=OWN_ID)


@pytest.mark.parametrize("name", ALLOWED)
def test_what_lies_on_a_bound_is_allowed(name: str) -> None:
    assert parsed(ALLOWED[name]).pack_id == OWN_ID


@pytest.mark.parametrize("name", REFUSED)
def test_what_lies_beyond_a_bound_is_refused(name: str) -> None:
    edit, reason = REFUSED[name]
    with pytest.raises(PackFormatError, match=reason):
        parsed(edit)


def test_phrases_keep_their_order_and_their_axis() -> None:
    preferences = parsed(
        preference(
            preferred_hedge_strong="one",
            preferred_hedge_soft="two",
            preferred_qualifier="three",
            axis_hedges={"AXIS": {"soft": "four"}},
        )
    ).surface_preferences
    assert preferences.preferred_hedge_strong == "one"
    assert preferences.preferred_hedge_soft == "two"
    assert preferences.preferred_qualifier == "three"
    (hedge,) = preferences.axis_hedges.values()
    assert (hedge.strong, hedge.soft, hedge.qualifier) == (None, "four", None)


def test_nothing_of_a_parsed_body_can_be_changed() -> None:
    body = parse_body(json.loads(OWN.pack), stem=OWN_ID)
    assert body.surface_preferences is not None
    hedged = parsed(preference(axis_hedges={"AXIS": {"soft": "s"}})).surface_preferences
    (hedge,) = hedged.axis_hedges.values()
    for part in (body, body.value_axes[0], body.surface_preferences, hedge):
        name = dataclasses.fields(part)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(part, name, None)
    with pytest.raises(TypeError):
        hedged.axis_hedges["x"] = None
