"""Which version a change of the safety pack asks for (docs/decisions/0030-safety-pack-versions.md)."""

import json
from typing import Any

import pytest

from engine.base.errors import RatificationError
from engine.formation.versioning import Ratified, check_version, ratified_before
from packs.safety.loader import REQUIRED_BOUNDARIES
from packs.seal import body_digest
from tests.attacks.workspace import SAFETY_PACK, SAFETY_REPORT, Edit, edited

BODY: dict[str, Any] = json.loads(SAFETY_PACK)
BEFORE = Ratified("core_safety_axes_v1", "1.2.3", REQUIRED_BOUNDARIES | {"no_x"}, "0" * 64)


def _with(version: str, *, drop: str | None = None, add: str | None = None, pack_id: str | None = None) -> Edit:
    def edit(pack: dict[str, Any]) -> None:
        pack["version"] = version
        pack["pack_id"] = pack_id or pack["pack_id"]
        names = {*pack["boundary_ids"], "no_x"} - {drop} | ({add} if add else set())
        pack["boundary_ids"] = sorted(names)

    return edit


def test_the_shipped_report_says_what_it_ratified() -> None:
    before = ratified_before(json.loads(SAFETY_REPORT))
    assert before == Ratified(BODY["pack_id"], BODY["version"], frozenset(BODY["boundary_ids"]), body_digest(BODY))
    check_version(BODY, before)


@pytest.mark.parametrize(
    ("edit", "wanted"),
    [
        (_with("1.2.4"), None),
        (_with("1.2.3"), "1.2.4"),
        (_with("1.2.5"), "1.2.4"),
        (_with("1.3.0"), "1.2.4"),
        (_with("2.0.0"), "1.2.4"),
        (_with("1.2.2"), "1.2.4"),
        (_with("1.3.0", add="no_y"), None),
        (_with("1.2.4", add="no_y"), "1.3.0"),
        (_with("1.3.1", add="no_y"), "1.3.0"),
        (_with("2.0.0", add="no_y"), "1.3.0"),
        (_with("2.0.0", drop="no_x", pack_id="core_safety_axes_v2"), None),
        (_with("1.3.0", drop="no_x", pack_id="core_safety_axes_v2"), "2.0.0"),
        (_with("2.0.0", drop="no_x"), "a new id"),
        (_with("2.0.0", drop="no_x", add="no_y"), "a new id"),
        (_with("2.0.0", drop="no_hot_path_repair", pack_id="core_safety_axes_v2"), "can never be removed"),
    ],
)
def test_each_change_asks_for_its_version(edit: Edit, wanted: str | None) -> None:
    pack = edited(SAFETY_PACK, edit)
    if wanted is None:
        check_version(pack, BEFORE)
        return
    with pytest.raises(RatificationError, match=wanted):
        check_version(pack, BEFORE)


def test_an_unchanged_pack_keeps_its_version() -> None:
    before = Ratified(BODY["pack_id"], BODY["version"], frozenset(BODY["boundary_ids"]), body_digest(BODY))
    check_version(BODY, before)
    with pytest.raises(RatificationError, match=r"nothing changed since 1\.0\.0, so the version must be 1\.0\.0"):
        check_version(
            {**BODY, "version": "1.0.1"},
            Ratified("core_safety_axes_v1", "1.0.0", before.boundary_ids, body_digest({**BODY, "version": "1.0.1"})),
        )


def test_a_first_ratification_has_nothing_to_compare_with() -> None:
    check_version(BODY, None)
    with pytest.raises(RatificationError, match="can never be removed"):
        check_version({**BODY, "boundary_ids": []}, None)
