"""Run folders are unique and never overwrite; files appear whole; the manifest sees every change."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.base.errors import ConfigError, RecordError
from experiments import rundir


def test_runs_of_one_second_get_folders_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: rundir.create_run_folder(None, 1_000_000_000.0), range(24)))
    assert len(set(folders)) == 24
    assert folders[0].parent == tmp_path / "runs"
    assert {folder.name.split("-")[0] for folder in folders} == {"20010909T014640Z"}


def test_a_requested_folder_is_made_or_may_be_empty(tmp_path: Path) -> None:
    assert rundir.create_run_folder(str(tmp_path / "a" / "b")).is_dir()
    assert rundir.create_run_folder(str(tmp_path / "a" / "b")).is_dir()


@pytest.mark.parametrize("kind", ["file in it", "hidden file in it", "is a file", "is a link", "is a broken link"])
def test_an_occupied_folder_is_refused_and_left_alone(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "run"
    if kind == "is a file":
        folder.write_text("mine")
    elif kind == "is a link":
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
    elif kind == "is a broken link":
        folder.symlink_to(tmp_path / "nowhere")
    else:
        folder.mkdir()
        (folder / (".x" if "hidden" in kind else "x")).write_text("mine")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(ConfigError):
        rundir.create_run_folder(str(folder))
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_a_file_is_replaced_whole_and_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    rundir.write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="JSON"):
        rundir.write_json(path, {"a": float("nan")})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [child.name for child in tmp_path.iterdir()] == ["x.json"]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda run: (run / "jobs" / "x").write_bytes(b"axc"), "SHA-256"),
        (lambda run: (run / "a").unlink(), "not in the folder"),
        (lambda run: (run / "new").write_bytes(b""), "not in the manifest"),
    ],
)
def test_the_manifest_sees_every_change(tmp_path: Path, damage: object, words: str) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "jobs" / "x").write_bytes(b"abc")
    rundir.write_manifest(tmp_path)
    (tmp_path / rundir.REPORT).write_text("derived")
    assert rundir.check_manifest(tmp_path) == []
    damage(tmp_path)  # type: ignore[operator]
    (problem,) = rundir.check_manifest(tmp_path)
    assert words in problem


@pytest.mark.parametrize("text", ["", "{", '{"files": []}', "[]", '{"files": {"a": 1}}', '{"files": {}, "files": {}}'])
def test_a_damaged_manifest_is_a_record_error(tmp_path: Path, text: str) -> None:
    (tmp_path / rundir.MANIFEST).write_text(text)
    with pytest.raises(RecordError):
        rundir.check_manifest(tmp_path)
