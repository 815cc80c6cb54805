"""Attack table of identity packs: hostile bytes, bounds, boundaries that imitate safety's, ids that are paths."""

import json
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from packs import seal
from packs.errors import IdentityPackError
from packs.identity.loader import available_packs, load_identity_manifold
from packs.safety.loader import REQUIRED_BOUNDARIES
from tests.attacks.hostile_json import hostile_bytes
from tests.attacks.rows import Row
from tests.attacks.safety_rows import NOT_IDS, NOT_TEXTS
from tests.attacks.workspace import (
    OWN,
    OWN_ID,
    SAFETY_PACK,
    SAFETY_REPORT,
    Edit,
    Files,
    as_nobody,
    edited,
    layout,
    load_own,
    resealed,
)

NOT_NUMBERS: tuple[Any, ...] = (None, True, False, "1", "", [], {}, [1.0])


def rows() -> Iterator[Row]:
    """Yield every row of the table."""
    for name, data in hostile_bytes(OWN.pack):
        assert data != OWN.pack, name
        yield _row("identity files", f"pack bytes: {name}", replace(OWN, pack=data))
    for name, edit in _edits():
        value = edited(OWN.pack, edit)
        yield _row("identity files", f"edited, seal kept: {name}", replace(OWN, pack=layout(value)))
        yield _row("identity bounds", f"edited and re-sealed: {name}", resealed(value, OWN))
    for boundary, safety in _lookalikes():
        value = edited(OWN.pack, _append_boundary(boundary))
        yield _row("identity look-alikes", f"{boundary} for {safety}", resealed(value, OWN))
    yield from _folder_rows()
    yield from _id_rows()
    yield from _controls()


def _row(table: str, name: str, files: Files) -> Row:
    def act(folder: Path) -> object:
        files.write(folder)
        return load_own(folder)

    return Row(table, name, IdentityPackError, act)


def _edits() -> Iterator[tuple[str, Edit]]:
    for field in json.loads(OWN.pack):
        if field != "surface_preferences":
            yield f"without {field}", lambda pack, f=field: pack.pop(f)
    for field in ("boundary_descriptions", "safety", "override", "boundaries", "remove_boundaries", "Pack_id"):
        yield f"unknown field {field}", _setter(field, [])
    for value in NOT_IDS:
        yield f"pack_id {value!a:.30}", _setter("pack_id", value)
        yield f"a boundary {value!a:.30}", _append_boundary(value)
        yield f"an axis_id {value!a:.30}", _axis("axis_id", value)
    for value in NOT_TEXTS:
        yield f"description {value!a:.30}", _setter("description", value)
        yield f"axis name {value!a:.30}", _axis("name", value)
        if value not in ("", "   "):
            yield f"axis note {value!a:.30}", _axis("note", value)
        for field in ("preferred_hedge_strong", "preferred_hedge_soft", "preferred_qualifier"):
            yield f"{field} {value!a:.30}", _preference(field, value)
    for value in (None, True, {}, "no_overstatement", []):
        yield f"boundary_ids {value!r}", _setter("boundary_ids", value)
    yield "a boundary twice", _append_boundary("no_overstatement")
    yield "300 boundaries", _setter("boundary_ids", [f"never_do_{i}" for i in range(300)])
    yield from _axis_edits()
    yield from _threshold_edits()


def _axis_edits() -> Iterator[tuple[str, Edit]]:
    for value in (None, True, {}, "truthfulness", [], ["truthfulness"], [[]], [None]):
        yield f"value_axes {value!r}", _setter("value_axes", value)
    yield (
        "33 axes",
        lambda pack: pack.update(value_axes=[{**pack["value_axes"][0], "axis_id": f"axis_{i}"} for i in range(33)]),
    )
    yield "two axes of one id", lambda pack: pack["value_axes"].append(pack["value_axes"][0])
    yield "every weight zero", lambda pack: [axis.update(weight=0.0) for axis in pack["value_axes"]]
    yield (
        "axes that cancel out",
        lambda pack: pack.update(
            value_axes=[
                {**pack["value_axes"][0], "axis_id": "a", "direction": [1.0, 0.0, 0.0], "weight": 1.0},
                {**pack["value_axes"][0], "axis_id": "b", "direction": [-1.0, 0.0, 0.0], "weight": 1.0},
            ]
        ),
    )
    yield (
        "only a weightless axis is not zero",
        lambda pack: pack.update(value_axes=[{**pack["value_axes"][0], "weight": 1e-9}]),
    )
    for value in (*NOT_NUMBERS, -0.1, -1, 10.0001, 11, 1e300):
        yield f"weight {value!r}", _axis("weight", value)
    for value in (*NOT_NUMBERS, 1.0001, -1.0001, 2, 1e300):
        yield f"direction component {value!r}", _axis("direction", [0.5, value, 0.5])
    for value in (
        None,
        "x",
        {},
        [],
        [1.0],
        [1.0, 0.0],
        [1.0, 0.0, 0.0, 0.0],
        [[1.0, 0.0, 0.0]],
        [0, 0, 0],
        [1e-5, 0, 0],
    ):
        yield f"direction {value!r}", _axis("direction", value)
    for field in ("axis_id", "name", "direction", "weight", "note"):
        yield f"axis without {field}", lambda pack, f=field: pack["value_axes"][0].pop(f)
    yield "axis with an unknown field", _axis("safety", False)


def _threshold_edits() -> Iterator[tuple[str, Edit]]:
    for value in (*NOT_NUMBERS, -0.01, 1.01, 45):
        yield f"alignment_threshold {value!r}", _setter("alignment_threshold", value)
        for field in ("hedge_threshold_strong", "hedge_threshold_soft", "qualified_band_high"):
            yield f"{field} {value!r}", _preference(field, value)
    yield "strong above soft", _preference("hedge_threshold_strong", 0.71)
    yield "soft above the band", _preference("hedge_threshold_soft", 0.86)
    yield "band below soft", _preference("qualified_band_high", 0.69)
    for value in (None, True, "", "Balanced", "none", ["balanced"], 1):
        yield f"claim_strength {value!r}", _preference("claim_strength", value)
    for value in (None, True, [], "x", 1):
        yield f"surface_preferences {value!r}", _setter("surface_preferences", value)
        yield f"axis_hedges {value!r}", _preference("axis_hedges", value)
    for value in (None, [], {}, "x", {"strong": ""}, {"strong": None}, {"other": "x"}, {"strong": "a\nb"}):
        yield f"hedge of an axis {value!r}", _preference("axis_hedges", {"truthfulness": value})
    yield "hedge of no axis", _preference("axis_hedges", {"kindness": {"strong": "x"}})
    yield "unknown preference", _preference("safety_phrase", "x")
    preferences = json.loads(OWN.pack)["surface_preferences"]
    for field in preferences:
        if field != "axis_hedges":
            yield f"without the preference {field}", lambda pack, f=field: pack["surface_preferences"].pop(f)


def _lookalikes() -> Iterator[tuple[str, str]]:
    for safety in sorted(REQUIRED_BOUNDARIES):
        bare = safety.removeprefix("no_").removeprefix("preserve_")
        made = {
            safety.replace("o", "0"),
            safety.replace("i", "1", 1),
            safety.replace("i", "l", 1),
            safety.replace("e", "3", 1),
            safety + "_",
            safety + "__",
            safety.replace("_", "__", 1),
            safety.replace("_", ""),
            safety + "s",
            safety[:-1],
            safety[:5] + safety[6:],
            safety[:4] + safety[5] + safety[4] + safety[6:],
            safety + "_off",
            safety + "_disabled",
            safety + "_v2",
            safety + "_unless_asked",
            "not_" + safety,
            "allow_" + bare,
            "allow_" + safety,
            "disable_" + safety,
            "skip_" + safety,
            "never_" + safety,
            "un_" + safety,
            "may_" + bare,
            "ignore_" + safety.replace("o", "0"),
            "_".join(reversed(safety.split("_"))),
        }
        if safety.startswith("no_"):
            made |= {bare, "yes_" + bare, "n0_" + bare}
        for boundary in sorted(made - REQUIRED_BOUNDARIES):
            yield boundary, safety


def _folder_rows() -> Iterator[Row]:
    acts: dict[str, Callable[[Path], object]] = {
        "report missing": lambda f: (f / OWN.report_name).unlink(),
        "report of the safety pack": lambda f: (f / OWN.report_name).write_bytes(SAFETY_REPORT),
        "the safety pack under this name": lambda f: (f / OWN.pack_name).write_bytes(SAFETY_PACK),
        "pack a link": lambda f: _linked(f / OWN.pack_name),
        "report a link": lambda f: _linked(f / OWN.report_name),
        "pack a FIFO": lambda f: _fifo(f / OWN.pack_name),
        "report a FIFO": lambda f: _fifo(f / OWN.report_name),
        "pack a folder": lambda f: ((f / OWN.pack_name).unlink(), (f / OWN.pack_name).mkdir()),
        "pack of 8 GiB of holes": lambda f: os.truncate(f / OWN.pack_name, 8 * 1024**3),
        "report of 8 GiB of holes": lambda f: os.truncate(f / OWN.report_name, 8 * 1024**3),
        "pack renamed": lambda f: (f / OWN.pack_name).rename(f / "other_pack_v1.json"),
        "pack in capitals": lambda f: (f / OWN.pack_name).rename(f / OWN.pack_name.upper()),
    }
    for name, prepare in acts.items():

        def act(folder: Path, prepare: Callable[[Path], object] = prepare) -> object:
            OWN.write(folder)
            prepare(folder)
            return load_own(folder)

        yield Row("identity folder", name, IdentityPackError, act)
    yield Row("identity folder", "a user's pack under a shipped id", IdentityPackError, _shadow)
    yield Row("identity folder", "two folders with one id", IdentityPackError, _twice)
    yield Row("identity folder", "the search path is a file", IdentityPackError, _search_file)
    yield Row("identity folder", "pack that may not be read", IdentityPackError, _unreadable)


def _id_rows() -> Iterator[Row]:
    for value in (
        "../safety/core_safety_axes_v1",
        "core_safety_axes_v1",
        "../identity/default_general_v1",
        "./default_general_v1",
        "default_general_v1.json",
        "default_general_v1\n",
        "default_general_v1\0",
        " default_general_v1",
        "DEFAULT_GENERAL_V1",
        "default-general-v1",
        "/etc/passwd",
        "~",
        "*",
        "${oc.env:HOME}",
        "",
        "default_general_v1/",
        "file:default_general_v1",
        "d\u0435fault_general_v1",
        "a" * 100_000,
        "default_general_v1.mastery_report",
        "null",
        "precision_first",
    ):
        yield Row("identity ids", f"{value!a:.40}", IdentityPackError, lambda f, v=value: load_identity_manifold(v))


def _controls() -> Iterator[Row]:
    def loads(edit: Edit) -> Callable[[Path], object]:
        def act(folder: Path) -> None:
            files = resealed(edited(OWN.pack, edit), OWN)
            files.write(folder)
            pack = load_own(folder)
            assert pack.pack_id == OWN_ID
            assert pack.ratified
            assert OWN_ID in available_packs(search_paths=[folder])
            assert math.hypot(*pack.value_axes[0].direction) > 0

        return act

    for name, edit in (
        ("as written", lambda pack: None),
        ("one axis", lambda pack: pack.update(value_axes=pack["value_axes"][:1])),
        (
            "32 axes",
            lambda pack: pack.update(
                value_axes=[{**pack["value_axes"][1], "axis_id": f"axis_{i}"} for i in range(32)],
                surface_preferences={k: v for k, v in pack["surface_preferences"].items() if k != "axis_hedges"},
            ),
        ),
        (
            "a weight of 10 and one of 0",
            lambda pack: [a.update(weight=w) for a, w in zip(pack["value_axes"], (10, 0, 1), strict=True)],
        ),
        ("no surface preferences", lambda pack: pack.pop("surface_preferences")),
        ("integers for numbers", _setter("alignment_threshold", 1)),
        (
            "thresholds all equal",
            lambda pack: pack["surface_preferences"].update(
                hedge_threshold_strong=0.5, hedge_threshold_soft=0.5, qualified_band_high=0.5
            ),
        ),
        ("an empty note", _axis("note", "")),
        ("a boundary of its own", _append_boundary("no_medical_dosage")),
        ("all five safety boundaries", _setter("boundary_ids", sorted(REQUIRED_BOUNDARIES))),
        ("Greek text", _setter("description", "\u1f00\u03bb\u03ae\u03b8\u03b5\u03b9\u03b1")),
    ):
        yield Row("identity controls", name, None, loads(edit))


def _setter(field: str, value: Any) -> Edit:
    return lambda pack: pack.update({field: value})


def _axis(field: str, value: Any) -> Edit:
    return lambda pack: pack["value_axes"][0].update({field: value})


def _preference(field: str, value: Any) -> Edit:
    return lambda pack: pack["surface_preferences"].update({field: value})


def _append_boundary(value: Any) -> Edit:
    return lambda pack: pack["boundary_ids"].append(value)


def _linked(path: Path) -> None:
    target = path.with_suffix(".copy")
    path.rename(target)
    path.symlink_to(target.name)


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _shadow(folder: Path) -> object:
    shipped = "default_general_v1"
    names = Files(f"{shipped}.json", f"{shipped}{seal.REPORT_ENDING}", b"", b"")
    resealed(edited(OWN.pack, _setter("pack_id", shipped)), names).write(folder)
    return load_identity_manifold(shipped, search_paths=[folder])


def _twice(folder: Path) -> object:
    folders = [folder / "a", folder / "b"]
    for inner in folders:
        inner.mkdir()
        OWN.write(inner)
    return load_identity_manifold(OWN_ID, search_paths=folders)


def _search_file(folder: Path) -> object:
    (folder / "file").write_text("x")
    return load_identity_manifold(OWN_ID, search_paths=[folder / "file"])


def _unreadable(folder: Path) -> object:
    OWN.write(folder)
    for parent in (folder, *folder.parents[:-2]):
        if parent.stat().st_uid == os.getuid():
            parent.chmod(parent.stat().st_mode | 0o055)
    (folder / OWN.pack_name).chmod(0)
    return as_nobody(lambda: load_own(folder))
