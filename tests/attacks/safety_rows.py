"""Attack table of the safety pack's files: each hostile file twice, against the shipped pin and re-pinned over it."""

import json
import os
import random
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from packs import seal
from packs.errors import SafetyPackError
from packs.safety.loader import MAX_PACK_BYTES, REQUIRED_BOUNDARIES
from tests.attacks.hostile_json import hostile_bytes
from tests.attacks.rows import Row
from tests.attacks.workspace import (
    IDENTITY_PACK,
    IDENTITY_REPORT,
    SAFETY,
    SAFETY_PACK,
    SAFETY_REPORT,
    Edit,
    Files,
    as_nobody,
    edited,
    layout,
    load_safety,
    passing_report,
    resealed,
    with_report,
)

NOT_TEXTS: tuple[Any, ...] = (
    None,
    True,
    0,
    1.5,
    [],
    {},
    "",
    "   ",
    "a\nb",
    "a\u200bb",
    "\u202eabc",
    "a\x00",
    "x" * 3000,
)
NOT_IDS: tuple[Any, ...] = (
    "",
    " no_x",
    "no_x ",
    "No_x",
    "NO_X",
    "no x",
    "no-x",
    "no.x",
    "../no_x",
    "/no_x",
    "1no_x",
    "_no_x",
    "no_x\n",
    "no\u200b_x",
    "n\u043e_x",
    "\uff4eo_x",
    "no_\u00ef",
    "a" * 65,
    "${no_x}",
    None,
    True,
    7,
    ["no_x"],
    {"no_x": 1},
)


def rows() -> Iterator[Row]:
    """Yield every row of the table."""
    for name, files in _hostile_files():
        yield _row(f"{name} (shipped pin)", files, repin=False)
        yield _row(f"{name} (re-pinned)", files, repin=True)
    yield from _sweeps()
    yield from _folder_rows()
    yield from _controls()


def _row(name: str, files: Files, *, repin: bool) -> Row:
    def act(folder: Path) -> object:
        files.write(folder)
        return load_safety(folder, repin=repin)

    return Row("safety files", name, SafetyPackError, act)


def _hostile_files() -> Iterator[tuple[str, Files]]:
    for name, data in hostile_bytes(SAFETY_PACK):
        assert data != SAFETY_PACK, name
        yield f"pack bytes: {name}", replace(SAFETY, pack=data)
    for name, data in hostile_bytes(SAFETY_REPORT.replace(b"{\n", b'{\n  "version": "1.0.0",\n  "n": "x",\n', 1)):
        if not name.startswith("value") and "version" not in name:
            yield f"report bytes: {name}", replace(SAFETY, report=data)
    for name, edit in _body_edits():
        yield f"body edited, seal kept: {name}", replace(SAFETY, pack=layout(edited(SAFETY_PACK, edit)))
        yield f"body edited and re-sealed: {name}", resealed(edited(SAFETY_PACK, edit), SAFETY)
    for name, edit in _report_edits():
        report = edited(SAFETY_REPORT, edit)
        yield f"report edited: {name}", replace(SAFETY, report=layout(report))
        if "seal" not in name:
            yield f"report edited and re-sealed: {name}", with_report(SAFETY_PACK, report, SAFETY)
    yield from _foreign_reports()
    yield from _layouts()


def _body_edits() -> Iterator[tuple[str, Edit]]:
    for boundary in sorted(REQUIRED_BOUNDARIES):
        yield f"without {boundary}", _drop_boundary(boundary)
        yield f"look-alike of {boundary}", _rename_boundary(boundary, boundary.replace("o", "0", 1))
        yield f"negation of {boundary}", _rename_boundary(boundary, f"not_{boundary}")
    yield "no boundary left", lambda pack: pack.update(boundary_ids=[], boundary_descriptions={})
    yield "another boundary only", lambda pack: pack.update(boundary_ids=["no_x"], boundary_descriptions={"no_x": "x"})
    yield "a boundary twice", lambda pack: pack["boundary_ids"].append(pack["boundary_ids"][0])
    for value in (None, True, 1, "no_hot_path_repair", {}, {"no_hot_path_repair": True}):
        yield f"boundary_ids is {value!r}", _setter("boundary_ids", value)
        yield f"boundary_descriptions is {value!r}", _setter("boundary_descriptions", value)
    for value in NOT_IDS:
        yield f"an extra boundary {value!a:.30}", _add_boundary(value)
        yield f"pack_id {value!a:.30}", _setter("pack_id", value)
    for value in NOT_TEXTS:
        yield f"a description that is {value!a:.30}", _describe(value)
        yield f"the pack's description is {value!a:.30}", _setter("description", value)
    yield "a description of no boundary", lambda pack: pack["boundary_descriptions"].update(no_x="x")
    yield "a boundary without description", lambda pack: pack["boundary_descriptions"].pop("no_hot_path_repair")
    for version in (
        "1.0",
        "1",
        "v1.0.0",
        "1.0.0-beta",
        "01.0.0",
        "1.0.0\n",
        "\uff11.0.0",
        "1.0." + "9" * 40,
        1,
        None,
        True,
    ):
        yield f"version {version!a:.30}", _setter("version", version)
    for version in ("2.0.0", "1.0.1", "", 1, None):
        yield f"schema_version {version!r}", _setter("schema_version", version)
    for field in (
        "value_axes",
        "alignment_threshold",
        "surface_preferences",
        "weight",
        "comment",
        "Pack_id",
        "pack_id ",
    ):
        yield f"unknown field {field}", _setter(field, [])
    for field in json.loads(SAFETY_PACK):
        yield f"without the field {field}", _dropper(field)
    yield "another pack's id", _setter("pack_id", "core_safety_axes_v2")


def _report_edits() -> Iterator[tuple[str, Edit]]:
    for field in json.loads(SAFETY_REPORT):
        if field != seal.REPORT_SEAL_FIELD:
            yield f"without {field}", _dropper(field)
            yield f"{field} is null", _setter(field, None)
            yield f"{field} is a number", _setter(field, 1)
    yield "without its own seal", _dropper(seal.REPORT_SEAL_FIELD)
    yield "own seal blank", _setter(seal.REPORT_SEAL_FIELD, "")
    yield "own seal in capitals", lambda report: report.update(report_sha256=report["report_sha256"].upper())
    yield "own seal of zeros", _setter(seal.REPORT_SEAL_FIELD, "0" * 64)
    yield "unknown field", _setter("note", "x")
    yield "another pack's id", _setter("pack_id", "core_safety_axes_v2")
    yield "another body", _setter("pack_sha256", "0" * 64)
    yield "another schema", _setter("schema_version", "2.0.0")
    yield "ratified false", _setter("ratified", False)
    yield "ratified as text", _setter("ratified", "true")
    yield "a failure reason", _setter("failure_reasons", ["x"])
    yield "failure_reasons an object", _setter("failure_reasons", {})
    yield "no traces", _setter("trace_hashes", {})
    yield "traces a list", _setter("trace_hashes", ["0" * 64])
    yield "a trace that is no digest", _setter("trace_hashes", {"step": "0"})
    for value in ("", "yesterday", "2026-01-01", "2026-01-01T00:00:00Z\n", "2026-01-01T00:00:00+00:00"):
        yield f"issued_at {value!r}", _setter("issued_at", value)
    yield "no gates", _setter("gates", [])
    yield "gates an object", _setter("gates", {})
    yield "a gate that is a text", lambda report: report["gates"].append("passed")
    yield "an unknown gate", lambda report: report["gates"].append({**report["gates"][0], "name": "x"})
    yield "a gate whose name is a list", lambda report: report["gates"].append({**report["gates"][0], "name": ["x"]})
    yield "a gate twice", lambda report: report["gates"].append(report["gates"][0])
    for number in range(len(seal.REQUIRED_GATES)):
        yield f"gate {number} missing", lambda report, n=number: report["gates"].pop(n)
        for name, change in (
            ("failed", {"passed": False}),
            ("measured 0 and still passed", {"measurement": 0.0}),
            ("measured just below", {"measurement": 0.9999999999999999}),
            ("measured above 1", {"measurement": 2.0}),
            ("without a measurement", {"measurement": None}),
            ("measured true", {"measurement": True}),
            ("measured as text", {"measurement": "1.0"}),
            ("with threshold 0", {"threshold": 0.0, "measurement": 0.0}),
            ("with threshold null", {"threshold": None}),
            ("with a note", {"note": "x"}),
        ):
            yield f"gate {number} {name}", lambda report, n=number, c=change: report["gates"][n].update(c)
        yield f"gate {number} without its verdict", lambda report, n=number: report["gates"][n].pop("passed")


def _foreign_reports() -> Iterator[tuple[str, Files]]:
    # Sound by themselves: only the report's own seal can tell that they were altered.
    for field, value in (
        ("issued_at", "2001-01-01T00:00:00Z"),
        ("course_sha256", "1" * 64),
        ("plan_sha256", "1" * 64),
        ("trace_hashes", {"step": "1" * 64}),
    ):
        altered = edited(SAFETY_REPORT, _setter(field, value))
        yield f"report with another sound {field}", replace(SAFETY, report=layout(altered))
    yield "report of an identity pack", replace(SAFETY, report=IDENTITY_REPORT)
    yield (
        "an identity pack under this name",
        Files(SAFETY.pack_name, SAFETY.report_name, IDENTITY_PACK, IDENTITY_REPORT),
    )
    yield "pack and report swapped", replace(SAFETY, pack=SAFETY_REPORT, report=SAFETY_PACK)
    yield "pack as its own report", replace(SAFETY, report=SAFETY_PACK)
    before = edited(SAFETY_PACK, lambda pack: pack.update(version="0.9.0"))
    old = resealed(before, SAFETY)
    yield "report rolled back to an earlier version", replace(SAFETY, report=old.report)
    yield "pack rolled back under the new report", replace(SAFETY, pack=old.pack)
    gutted = edited(SAFETY_PACK, _drop_boundary("no_identity_override"))
    sealed = {**gutted, seal.SEAL_FIELD: json.loads(SAFETY_REPORT)[seal.REPORT_SEAL_FIELD]}
    yield "gutted pack under the report of the good one", replace(SAFETY, pack=layout(sealed))
    for_good = passing_report(json.loads(SAFETY_PACK))
    yield "gutted pack sealed with a report on the good one", with_report(layout(gutted), for_good, SAFETY)
    yield (
        "one byte of the seal",
        replace(SAFETY, pack=_with_seal(lambda text: ("0" if text[0] != "0" else "1") + text[1:])),
    )
    yield "seal in capitals", replace(SAFETY, pack=_with_seal(str.upper))
    yield "seal blank", replace(SAFETY, pack=_with_seal(lambda text: ""))
    yield "seal null", replace(SAFETY, pack=layout(edited(SAFETY_PACK, _setter(seal.SEAL_FIELD, None))))


def _layouts() -> Iterator[tuple[str, Files]]:
    for name, change in (
        ("compact", lambda data: json.dumps(json.loads(data), sort_keys=True, separators=(",", ":")).encode()),
        ("indented by four", lambda data: json.dumps(json.loads(data), sort_keys=True, indent=4).encode()),
        ("CRLF line ends", lambda data: data.replace(b"\n", b"\r\n")),
        ("no final newline", lambda data: data[:-1]),
        ("one more newline", lambda data: data + b"\n"),
        ("keys in another order", lambda data: _reversed_keys(data)),
        ("one letter as an escape", lambda data: data.replace(b"pack_id", b"p\\u0061ck_id", 1)),
    ):
        yield f"pack laid out {name}", replace(SAFETY, pack=change(SAFETY_PACK))
        yield f"report laid out {name}", replace(SAFETY, report=change(SAFETY_REPORT))


def _sweeps() -> Iterator[Row]:
    """Yield one row for each kind of damage at every byte of pack and report; all of them have to be refused."""
    chance = random.Random(20260131)
    kinds: dict[str, Callable[[bytes, int], bytes]] = {
        "truncated at every byte": lambda data, i: data[:i],
        "one bit flipped at every byte": lambda data, i: _patched(data, i, data[i] ^ (1 << chance.randrange(8))),
        "every byte deleted": lambda data, i: data[:i] + data[i + 1 :],
        "every byte doubled": lambda data, i: data[: i + 1] + data[i:],
        "every byte zeroed": lambda data, i: _patched(data, i, 0),
        "head cut at every byte": lambda data, i: data[i + 1 :],
    }
    for name, damage in kinds.items():
        for part in ("pack", "report"):
            for repin in (False, True):
                pinned = "re-pinned" if repin else "shipped pin"
                yield Row("safety files", f"{part} {name} ({pinned})", SafetyPackError, _sweep(part, damage, repin), 10)


def _sweep(part: str, damage: Callable[[bytes, int], bytes], repin: bool) -> Callable[[Path], object]:
    def act(folder: Path) -> object:
        SAFETY.write(folder)
        name, data = (SAFETY.pack_name, SAFETY_PACK) if part == "pack" else (SAFETY.report_name, SAFETY_REPORT)
        last: SafetyPackError | None = None
        for i in range(len(data)):
            (folder / name).write_bytes(damage(data, i))
            try:
                load_safety(folder, repin=repin)
            except SafetyPackError as error:
                if not str(error).isprintable():
                    return f"not one line with byte {i} damaged"
                last = error
            else:
                return f"accepted with byte {i} damaged"
        raise last if last is not None else AssertionError("nothing was tried")

    return act


def _folder_rows() -> Iterator[Row]:
    for name, prepare in _folders():
        for repin in (False, True):
            pinned = "re-pinned" if repin else "shipped pin"

            def act(folder: Path, prepare: Callable[[Path], Path] = prepare, repin: bool = repin) -> object:
                SAFETY.write(folder)
                return load_safety(prepare(folder), repin=repin)

            yield Row("safety folder", f"{name} ({pinned})", SafetyPackError, act)
    for name, mode_of in (("pack", SAFETY.pack_name), ("report", SAFETY.report_name), ("folder", "")):
        yield Row("safety folder", f"{name} that may not be read", SafetyPackError, _unreadable(mode_of))


def _folders() -> Iterator[tuple[str, Callable[[Path], Path]]]:
    for part, name in (("pack", SAFETY.pack_name), ("report", SAFETY.report_name)):
        yield f"{part} missing", _after(lambda f, n=name: (f / n).unlink())
        yield f"{part} a symbolic link to a good copy", _after(lambda f, n=name: _linked(f / n))
        yield f"{part} a dangling link", _after(lambda f, n=name: _replaced(f / n).symlink_to("nowhere"))
        yield f"{part} a link to itself", _after(lambda f, n=name: _replaced(f / n).symlink_to(n))
        yield f"{part} a link to /dev/zero", _after(lambda f, n=name: _replaced(f / n).symlink_to("/dev/zero"))
        yield f"{part} a FIFO", _after(lambda f, n=name: os.mkfifo(_replaced(f / n)))
        yield f"{part} a folder", _after(lambda f, n=name: _replaced(f / n).mkdir())
        yield f"{part} a socket", _after(lambda f, n=name: _bind(_replaced(f / n)))
        yield f"{part} of 8 GiB of holes", _after(lambda f, n=name: os.truncate(f / n, 8 * 1024**3))
        yield f"{part} in capitals", _after(lambda f, n=name: (f / n).rename(f / n.upper()))
    yield "pack one byte over the cap", _after(lambda f: _pad(f / SAFETY.pack_name, MAX_PACK_BYTES + 1))
    for extra in (
        "other.json",
        "other.JSON",
        ".hidden.json",
        f"other{seal.REPORT_ENDING}",
        "a.json.json",
        "\u202ex.json",
    ):
        yield f"beside it {extra!a}", _after(lambda f, e=extra: (f / e).write_bytes(SAFETY_PACK))
    yield "beside it a folder x.json", _after(lambda f: (f / "x.json").mkdir())
    yield "beside it a name that is not UTF-8", _after(lambda f: _raw_name(f))
    yield "pack under another id", _after(lambda f: (f / SAFETY.pack_name).rename(f / "core_safety_axes_v2.json"))
    yield "the folder is missing", lambda f: f / "missing"
    yield "the folder is a file", lambda f: f / SAFETY.pack_name
    yield "the folder is a symbolic link", lambda f: _link_folder(f)
    yield "the folder is empty", lambda f: _made(f / "empty")


def _controls() -> Iterator[Row]:
    """Yield what must load, so that a loader that refuses everything fails the table."""

    def superset(pack: dict[str, Any]) -> None:
        pack["boundary_ids"].append("no_unattended_actuation")
        pack["boundary_descriptions"]["no_unattended_actuation"] = "Nothing moves without a person at the switch."

    def expect(
        files: Files, repin: bool, boundaries: int, ratified: bool, unratified: bool
    ) -> Callable[[Path], object]:
        def act(folder: Path) -> None:
            files.write(folder)
            pack = load_safety(folder, repin=repin, unratified=unratified)
            assert len(pack.boundary_ids) == boundaries
            assert pack.boundary_ids >= REQUIRED_BOUNDARIES
            assert pack.ratified is ratified

        return act

    stricter = resealed(edited(SAFETY_PACK, superset), SAFETY)
    reworded = edited(SAFETY_PACK, _setter("description", "Other words."))
    control = "safety controls"
    yield Row(control, "the shipped pack", None, expect(SAFETY, False, 5, True, False))
    yield Row(control, "the shipped pack, pinned again", None, expect(SAFETY, True, 5, True, False))
    yield Row(control, "a stricter pack, re-sealed and re-pinned", None, expect(stricter, True, 6, True, False))
    yield Row(
        control, "new words, re-sealed and re-pinned", None, expect(resealed(reworded, SAFETY), True, 5, True, False)
    )
    yield Row(
        control,
        "an edited draft under the hatch",
        None,
        expect(replace(SAFETY, pack=layout(reworded)), False, 5, False, True),
    )
    # Sound by itself, sealed and ratified by somebody: only the pin can tell that it is not ours.
    yield _row("a sound pack of other words, re-sealed (shipped pin)", resealed(reworded, SAFETY), repin=False)
    yield _row("a stricter pack, re-sealed (shipped pin)", stricter, repin=False)
    for name, edit in _body_edits():
        if name not in ("a boundary twice",) and not name.startswith(("without the field mastery", "the pack's desc")):
            yield Row("safety hatch", f"floor and schema stay: {name}", SafetyPackError, _under_hatch(edit))


def _under_hatch(edit: Edit) -> Callable[[Path], object]:
    def act(folder: Path) -> object:
        replace(SAFETY, pack=layout(edited(SAFETY_PACK, edit))).write(folder)
        return load_safety(folder, repin=False, unratified=True)

    return act


def _unreadable(name: str) -> Callable[[Path], object]:
    def act(folder: Path) -> object:
        inner = _made(folder / "inner")
        SAFETY.write(inner)
        for parent in (folder, *folder.parents[:-2]):
            if parent.stat().st_uid == os.getuid():
                parent.chmod(parent.stat().st_mode | 0o055)
        (inner / name).chmod(0)
        try:
            return as_nobody(lambda: load_safety(inner, repin=False))
        finally:
            (inner / name).chmod(0o755)

    return act


def _setter(field: str, value: Any) -> Edit:
    return lambda pack: pack.update({field: value})


def _dropper(field: str) -> Edit:
    return lambda pack: pack.pop(field)


def _drop_boundary(boundary: str) -> Edit:
    def edit(pack: dict[str, Any]) -> None:
        pack["boundary_ids"].remove(boundary)
        del pack["boundary_descriptions"][boundary]

    return edit


def _rename_boundary(boundary: str, other: str) -> Edit:
    def edit(pack: dict[str, Any]) -> None:
        pack["boundary_ids"] = sorted({*pack["boundary_ids"], other} - {boundary})
        pack["boundary_descriptions"][other] = pack["boundary_descriptions"].pop(boundary)

    return edit


def _add_boundary(value: Any) -> Edit:
    def edit(pack: dict[str, Any]) -> None:
        pack["boundary_ids"].append(value)
        if isinstance(value, str):
            pack["boundary_descriptions"][value] = "x"

    return edit


def _describe(value: Any) -> Edit:
    return lambda pack: pack["boundary_descriptions"].update(no_hot_path_repair=value)


def _with_seal(change: Callable[[str], str]) -> bytes:
    return layout(edited(SAFETY_PACK, lambda pack: pack.update({seal.SEAL_FIELD: change(pack[seal.SEAL_FIELD])})))


def _reversed_keys(data: bytes) -> bytes:
    value = json.loads(data)
    return (json.dumps(dict(reversed(value.items())), indent=2, ensure_ascii=False) + "\n").encode()


def _patched(data: bytes, i: int, byte: int) -> bytes:
    return data[:i] + bytes([byte]) + data[i + 1 :]


def _after(prepare: Callable[[Path], object]) -> Callable[[Path], Path]:
    def prepared(folder: Path) -> Path:
        prepare(folder)
        return folder

    return prepared


def _replaced(path: Path) -> Path:
    path.unlink()
    return path


def _linked(path: Path) -> None:
    target = path.with_suffix(".copy")
    path.rename(target)
    path.symlink_to(target.name)


def _bind(path: Path) -> None:
    # Through the folder's descriptor: the address of a socket may have 107 bytes, and a test folder's path has more.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def _pad(path: Path, size: int) -> None:
    data = path.read_bytes()
    path.write_bytes(data + b" " * (size - len(data)))


def _raw_name(folder: Path) -> None:
    with open(os.fsencode(folder) + b"/\xff.json", "wb") as stream:
        stream.write(SAFETY_PACK)


def _link_folder(folder: Path) -> Path:
    link = folder / "link"
    real = _made(folder / "real")
    SAFETY.write(real)
    link.symlink_to("real")
    return link


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
