"""Ratification writes report, seal and pin together, changes nothing when nothing changed, and refuses whole."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.base.errors import RatificationError
from engine.cli import main
from engine.formation import ratify
from engine.formation.gates import Run
from engine.formation.ratify import ratify_identity, ratify_safety
from packs import seal
from packs.errors import IdentityPackError, PackFormatError, SafetyPackError
from packs.language.model import LanguagePack
from packs.safety.loader import REQUIRED_BOUNDARIES, load_folder
from tests.attacks.environment_rows import copy_tree
from tests.attacks.workspace import OWN, OWN_ID, SAFETY, SAFETY_ID, edited, layout, load_own

STRICTER = "no_unattended_actuation"


@pytest.fixture(autouse=True)
def read_language_once(language: LanguagePack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ratify, "_language", lambda: language)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout of its own, with one identity pack to keep the replays few."""
    tree = copy_tree(tmp_path, checkout=True)
    for path in (tree / "packs" / "identity").glob("*.json"):
        if not path.name.startswith("default_general_v1"):
            path.unlink()
    return tree


def _ratify_tree(tree: Path) -> ratify.Ratification:
    return ratify_safety(tree / "packs" / "safety", identities=tree / "packs" / "identity")


def _edit(tree: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = tree / "packs" / "safety" / SAFETY.pack_name
    path.write_text(json.dumps(edited(path.read_bytes(), change)))


def _state(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def _run(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CORE_", "PYTHON"))}
    return subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=kept, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.slow
def test_a_stricter_pack_is_authored_ratified_and_run(tree: Path) -> None:
    """The steps of docs/packs.md, "Deploy a stricter safety pack"."""
    folder = tree / "packs" / "safety"

    def add(pack: dict[str, Any], version: str) -> None:
        pack["version"] = version
        pack["boundary_ids"].append(STRICTER)
        pack["boundary_descriptions"][STRICTER] = "Nothing moves without a person at the switch."

    _edit(tree, lambda pack: add(pack, "1.0.1"))
    before = _state(folder)
    with pytest.raises(RatificationError, match=rf"{STRICTER} was added since 1\.0\.0, so the version must be 1\.1\.0"):
        _ratify_tree(tree)
    assert _state(folder) == before
    assert _run(tree, "-m", "engine.cli", "packs", "list").returncode == 1

    _edit(tree, lambda pack: pack.update(version="1.1.0"))
    done = _ratify_tree(tree)
    assert (done.version, done.changed) == ("1.1.0", True)
    assert done.sha256 in (folder / "pinned.py").read_text()
    written = _state(folder)
    assert not _ratify_tree(tree).changed
    assert _state(folder) == written

    verified = _run(tree, "-m", "engine.cli", "packs", "verify", "packs/safety")
    assert verified.returncode == 0, verified
    assert done.sha256 in verified.stdout
    program = (
        "from engine.base.precision import enable_x64; enable_x64()\n"
        "from engine.runtime import Composition, runtime_from\n"
        "from engine.runtime.compose import compose_manifold\n"
        "from packs.identity.loader import load_identity_manifold\n"
        "from packs.language.loader import load_language_pack\n"
        "from packs.safety.loader import load_safety_pack\n"
        "identity, safety = load_identity_manifold('default_general_v1'), load_safety_pack()\n"
        "language = load_language_pack('en', require_seal=False)\n"
        "runtime = runtime_from(Composition(identity, safety, language, compose_manifold(identity, safety)))\n"
        "table = runtime.evaluate(['What is truth?'])\n"
        f"verdict = [v for v in table.verdicts[0] if v.boundary == '{STRICTER}'][0]\n"
        "print(sorted(runtime.manifold.boundary_ids))\n"
        "print(table.rows[0]['status'], verdict.status, safety.ratified)\n"
    )
    ran = _run(tree, "-c", program)
    assert ran.returncode == 0, ran.stderr
    boundaries, outcome = ran.stdout.splitlines()
    assert set(json.loads(boundaries.replace("'", '"'))) == REQUIRED_BOUNDARIES | {STRICTER}
    assert outcome == "ok not_checkable True"


@pytest.mark.slow
def test_an_edit_breaks_the_seal_until_the_pack_is_ratified_again(tree: Path) -> None:
    folder = tree / "packs" / "safety"
    _edit(tree, lambda pack: pack.update(description="Other words.", version="1.0.1"))
    with pytest.raises(SafetyPackError, match="not those pinned"):
        load_folder(folder, pin=(SAFETY_ID, seal.sha256_hex(SAFETY.pack)))
    done = _ratify_tree(tree)
    pack = load_folder(folder, pin=(SAFETY_ID, done.sha256))
    assert (pack.version, pack.ratified) == ("1.0.1", True)
    report = json.loads((folder / SAFETY.report_name).read_bytes())
    assert [gate["name"] for gate in report["gates"]] == list(seal.REQUIRED_GATES)
    assert all(gate["measurement"] == 1.0 for gate in report["gates"])


def test_a_failed_gate_leaves_every_file_as_it_was(
    tree: Path, monkeypatch: pytest.MonkeyPatch, safety_run: Run
) -> None:
    folder = tree / "packs" / "safety"
    before = _state(folder)
    broken = Run(safety_run.pack, safety_run.course, safety_run.plan, safety_run.first[1:], safety_run.second)
    monkeypatch.setattr(ratify, "run_course", lambda candidate: broken)
    monkeypatch.setattr(ratify, "_ratified_identities", lambda folder, path: [])
    with pytest.raises(RatificationError, match="replay_determinism_eq_1 measured 0"):
        _ratify_tree(tree)
    assert _state(folder) == before


def test_a_changed_report_or_a_missing_boundary_is_refused_before_the_engine_starts(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(candidate: object) -> Run:
        raise AssertionError("the engine was started")

    monkeypatch.setattr(ratify, "run_course", never)
    report = tree / "packs" / "safety" / SAFETY.report_name
    report.write_bytes(report.read_bytes().replace(b"1.0", b"0.0", 1))
    with pytest.raises(RatificationError, match="altered since it was sealed"):
        _ratify_tree(tree)
    report.write_bytes(SAFETY.report)
    _edit(tree, lambda pack: (pack["boundary_ids"].pop(), pack["boundary_descriptions"].pop("preserve_versor_closure")))
    with pytest.raises(PackFormatError, match="without the boundary preserve_versor_closure"):
        _ratify_tree(tree)
    (tree / "packs" / "safety" / "other_v1.json").write_bytes(SAFETY.pack)
    with pytest.raises(RatificationError, match="2 packs in the folder"):
        _ratify_tree(tree)


def test_a_new_id_needs_a_decision_record(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []

    def stop(candidate: object) -> Run:
        started.append(candidate)
        raise RatificationError("stop here")

    monkeypatch.setattr(ratify, "run_course", stop)
    folder, records = tree / "packs" / "safety", tree / "docs" / "decisions"
    records.mkdir(parents=True)
    other = edited(SAFETY.pack, lambda pack: pack.update(pack_id="core_safety_axes_v2", version="2.0.0"))
    (folder / SAFETY.pack_name).unlink()
    (folder / "core_safety_axes_v2.json").write_bytes(layout(other))
    with pytest.raises(RatificationError, match="needs a decision record"):
        _ratify_tree(tree)
    (records / "0099-other.md").write_text("core_safety_axes_v2 replaces core_safety_axes_v1.")
    with pytest.raises(RatificationError, match="stop here"):
        _ratify_tree(tree)
    assert started


@pytest.mark.slow
def test_a_users_pack_is_ratified_by_command_and_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The shipped courses are replayed elsewhere; here the user's own folder is what matters.
    monkeypatch.setattr(ratify, "_ratified_safety", lambda folder: [])
    OWN.write(tmp_path)
    path = tmp_path / OWN.pack_name
    path.write_text(json.dumps(edited(OWN.pack, lambda pack: pack.update(alignment_threshold=0.5))))
    with pytest.raises(IdentityPackError):
        load_own(tmp_path)
    assert main(["packs", "ratify", str(path)]) == 0
    assert f"ratified: {OWN_ID} 1.0.0, 8 gates passed" in capsys.readouterr().out
    assert load_own(tmp_path).ratified
    written = _state(tmp_path)
    assert not ratify_identity(path).changed
    assert _state(tmp_path) == written


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (SAFETY.pack, "a safety pack is ratified into the installation"),
        (b"{", "not JSON"),
        (layout(edited(OWN.pack, lambda pack: pack.update(boundary_ids=["allow_hot_path_repair"]))), "looks like"),
    ],
)
def test_the_command_refuses_in_one_line(
    content: bytes, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / OWN.pack_name
    path.write_bytes(content)
    assert main(["packs", "ratify", str(path)]) == 1
    captured = capsys.readouterr()
    assert error in captured.err
    assert captured.err.count("\n") == 1
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == [OWN.pack_name]


def test_an_empty_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["packs", "ratify", str(tmp_path)]) == 1
    assert "no pack in this folder" in capsys.readouterr().err
