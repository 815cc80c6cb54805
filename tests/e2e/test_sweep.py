"""Real sweeps on a handful of prompts: the table, the folder, its verification, its report, and every bad input."""

import importlib.util
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from engine.base.command import run_command
from engine.base.errors import CheckpointMismatchError, ConfigError, RecordError
from experiments import orchestrate, rundir, sweep
from experiments.report import render_page, write_report
from experiments.results import REQUIRED_COLUMNS, read_rows
from experiments.verify import verify_run
from packs.safety.loader import load_safety_pack
from tests.attacks.workspace import IDENTITY_PACK, OWN, OWN_ID

PROMPTS = "What is truth?\nWhy does doubt matter?\nzzxqv blorp\nHow does knowledge differ from opinion?\n"
IDENTITIES = ("default_general_v1", "generosity_first_v1", "precision_first_v1")


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prompts") / "prompts.txt"
    path.write_text(PROMPTS, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(prompts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished multirun over all identities and two seeds, with a perturbation."""
    folder = tmp_path_factory.mktemp("runs") / "multi"
    arguments = [
        "-m",
        "identity=glob(*)",
        "seed=0,1",
        "perturb=0.05",
        f"prompts={prompts}",
        f"hydra.sweep.dir={folder}",
    ]
    assert sweep.run(arguments) == 0
    return folder


def test_a_row_for_each_prompt_identity_and_seed(run: Path) -> None:
    rows = read_rows(run / "results.parquet")
    assert len(rows) == 4 * 3 * 2
    assert set(REQUIRED_COLUMNS) <= set(rows[0])
    assert {row["identity"] for row in rows} == set(IDENTITIES)
    assert {row["safety_sha256"] for row in rows} == {load_safety_pack().sha256}
    assert len({row["identity_sha256"] for row in rows}) == 3


def test_a_prompt_without_a_known_word_is_a_refused_row_and_the_sweep_goes_on(run: Path) -> None:
    rows = [row for row in read_rows(run / "results.parquet") if row["prompt_id"] == "0003"]
    assert {row["status"] for row in rows} == {"refused"}
    assert all(row["refusal"] for row in rows)
    assert len(rows) == 6


def test_swapping_the_pack_changes_alignment_and_paths(run: Path) -> None:
    summary = rundir.read_json(run / "summary.json")
    means = {entry["identity"]: entry["alignment_mean"] for entry in summary["identities"]}
    assert len({round(mean, 3) for mean in means.values()}) == 3
    for entry in summary["identities"]:
        divergence = entry["divergence_from_default"]
        is_default = entry["identity"] == "default_general_v1"
        assert (divergence["motor_distance"] == 0.0) == is_default
        assert entry["worst_residual"] < 1e-6


def test_the_run_is_sealed_verified_and_reported(run: Path, tmp_path: Path) -> None:
    assert rundir.check_manifest(run) == []
    names = set(rundir.listed_files(run))
    assert {"results.parquet", "results.csv", "summary.json", "plan.json", "environment.json", "status.json"} <= names
    assert {"figures/alignment.png", "figures/residual.png", "figures/divergence_en.png", "jobs/5/job.log"} <= names
    findings = verify_run(run, all_rows=True)
    assert findings.ok, findings.lines()
    assert any("24 of 24 rows made again: 24 bit-identical" in line for line in findings.lines())
    page = write_report(run, tmp_path / "page.html").read_text(encoding="utf-8")
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(drawings) == 4
    ids = [node.get("id") for drawing in drawings for node in ElementTree.fromstring(drawing).iter() if node.get("id")]
    assert len(set(ids)) == len(ids)
    for identity in IDENTITIES:
        assert identity in page
    assert not any(outside in page for outside in ('src="http', 'href="http', "<script", "@import"))


def test_a_sample_is_verified_to_the_stated_tolerance(run: Path) -> None:
    findings = verify_run(run)
    assert findings.ok, findings.lines()


def resealed(run: Path, folder: Path, change: Callable[[list[dict[str, Any]]], None]) -> Path:
    """Return a copy of a run whose rows were changed and whose tables, summary and manifest were all made to agree."""
    import pyarrow as pa
    import pyarrow.parquet

    from experiments.results import csv_bytes
    from experiments.summary import summarise

    shutil.copytree(run, folder)
    rows = read_rows(folder / "results.parquet")
    change(rows)
    schema = pyarrow.parquet.read_schema(folder / "results.parquet")
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows, schema), folder / "results.parquet")
    (folder / "results.csv").write_bytes(csv_bytes(rows))
    for number in range(6):
        pyarrow.parquet.write_table(
            pa.Table.from_pylist(rows[4 * number : 4 * number + 4], schema),
            folder / "jobs" / str(number) / "results.parquet",
        )
    summary = rundir.read_json(folder / "summary.json")
    rundir.write_json(folder / "summary.json", {**summary, **summarise(rows)})
    rundir.write_manifest(folder)
    return folder


def test_a_forged_row_is_caught_even_when_every_digest_was_made_to_agree(run: Path, tmp_path: Path) -> None:
    def forge(rows: list[dict[str, Any]]) -> None:
        rows[5]["alignment"] += 1e-6

    (problem,) = verify_run(resealed(run, tmp_path / "forged", forge)).problems
    assert problem == "job 1, prompt 0002: alignment came out otherwise"


@pytest.mark.parametrize("name", ["results.parquet", "results.csv", "summary.json", "plan.json", "jobs/0/status.json"])
def test_a_changed_file_is_caught_and_shown_in_the_report(run: Path, tmp_path: Path, name: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    data = bytearray((copy / name).read_bytes())
    data[len(data) // 2] ^= 1
    (copy / name).write_bytes(data)
    findings = verify_run(copy)
    assert [problem for problem in findings.problems if name in problem]
    assert findings.not_checked
    if name == "results.csv":
        assert "not the ones that were written" in render_page(copy)


def test_a_folder_without_a_finished_run_is_a_record_error(tmp_path: Path) -> None:
    for function in (verify_run, write_report):
        with pytest.raises(RecordError):
            function(tmp_path)


def test_resume_makes_only_what_is_missing_and_ends_bit_identical(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    before = (copy / "results.parquet").read_bytes()
    kept = (copy / "jobs" / "1" / "job.log").read_text()
    shutil.rmtree(copy / "jobs" / "2")
    (copy / "jobs" / "4" / "results.parquet").write_bytes(b"torn")
    for name in ("results.parquet", "results.csv", "summary.json", "manifest.json"):
        (copy / name).unlink()
    assert sweep.run([f"resume={copy}"]) == 0
    assert (copy / "results.parquet").read_bytes() == before
    assert "rows in" not in (copy / "jobs" / "1" / "job.log").read_text().removeprefix(kept)
    assert rundir.check_manifest(copy) == []


def test_resume_refuses_a_run_begun_with_something_else(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    rundir.write_json(copy / rundir.PLAN, {**rundir.read_json(copy / rundir.PLAN), "safety_sha256": "0" * 64})
    with pytest.raises(CheckpointMismatchError, match=f"safety_sha256: {'0' * 64}, now {load_safety_pack().sha256}"):
        sweep.run([f"resume={copy}"])


def test_a_recorded_override_that_attacks_is_refused_at_resume(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    plan = rundir.read_json(copy / rundir.PLAN)
    rundir.write_json(copy / rundir.PLAN, {**plan, "overrides": [*plan["overrides"], "+safety=other"]})
    assert run_command("core sweep", lambda: sweep.run([f"resume={copy}"])) == 1


def test_a_second_writer_of_a_run_is_refused(tmp_path: Path) -> None:
    with (
        orchestrate.locked(tmp_path),
        pytest.raises(ConfigError, match="another process"),
        orchestrate.locked(tmp_path),
    ):
        pass
    with orchestrate.locked(tmp_path):
        pass


def test_a_users_own_pack_is_swept_beside_the_shipped_ones(prompts: Path, tmp_path: Path) -> None:
    (tmp_path / "packs" / "identity").mkdir(parents=True)
    OWN.write(tmp_path / "packs" / "identity")
    folder = tmp_path / "run"
    arguments = [f"packs_path={tmp_path / 'packs'}", f"prompts={prompts}", "limit=2", f"hydra.sweep.dir={folder}"]
    assert sweep.run(["-m", "identity=glob(*,exclude=gen*)", *arguments]) == 0
    first, own, last = (rundir.read_json(folder / "jobs" / str(job) / "status.json")["settings"] for job in range(3))
    assert (first["identity"], own["identity"], last["identity"]) == (
        "default_general_v1",
        OWN_ID,
        "precision_first_v1",
    )
    # The pack is a copy of precision_first_v1 under another name: it has to give that pack's rows.
    tokens = {identity: [] for identity in (OWN_ID, "precision_first_v1", "default_general_v1")}
    for row in read_rows(folder / "results.parquet"):
        tokens[row["identity"]].append((row["tokens"], row["alignment"]))
    assert tokens[OWN_ID] == tokens["precision_first_v1"] != tokens["default_general_v1"]


def test_a_users_pack_with_a_shipped_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "identity").mkdir()
    (tmp_path / "identity" / "precision_first_v1.json").write_bytes(IDENTITY_PACK)
    with pytest.raises(ConfigError, match="the name of a shipped pack"):
        sweep.run([f"packs_path={tmp_path}"])


def test_seeds_are_a_null_pair_without_a_perturbation(prompts: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert sweep.run(["-m", "seed=range(0,2)", f"prompts={prompts}", f"hydra.sweep.dir={folder}"]) == 0
    rows = read_rows(folder / "results.parquet")
    for row in rows:
        row.pop("seed")
    assert rows[:4] == rows[4:]
    (entry,) = rundir.read_json(folder / "summary.json")["identities"]
    assert entry["divergence_between_seeds"] == {
        "pairs": 3,
        "changed_paths": 0.0,
        "shared_words": 1.0,
        "motor_distance": 0.0,
    }


def test_json_is_all_that_stands_on_stdout(prompts: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert sweep.run([f"prompts={prompts}", "--json", "limit=2", f"hydra.run.dir={tmp_path / 'run'}"]) == 0
    captured = capfd.readouterr()
    assert json.loads(captured.out)["rows"] == 2
    assert "[1/1] default_general_v1 en seed 0: 2 rows" in captured.err


BAD_INPUT = {
    "unknown identity": (["identity=precision_frist_v1"], "IdentityPackError", "nearest: precision_first_v1"),
    "one of several unknown": (["-m", "identity=default_general_v1,nobody"], "IdentityPackError", "nobody"),
    "unknown language": (["language=tlh"], "LanguagePackError", "tlh"),
    "no language": (["language=null"], "LanguagePackError", "language pack"),
    "misspelt override": (["identiy=x"], "ConfigError", "did you mean identity"),
    "misspelt behind +": (["+identiy=x"], "SafetyOverrideError", "did you mean identity"),
    "missing prompts": (["prompts=/nowhere/p.txt"], "ConfigError", "does not exist"),
    "empty prompts": (["prompts=EMPTY"], "ConfigError", "no prompt"),
    "prompts that are not UTF-8": (["prompts=LATIN"], "ConfigError", "not UTF-8"),
    "a folder as prompts": (["prompts=FOLDER"], "ConfigError", "no regular file"),
    "out of the tree": (["identity=../../x"], "SafetyOverrideError", "never a path"),
    "not finite": (["perturb=nan"], "ConfigError", "finite"),
    "out of range": (["alpha=1.5"], "ConfigError", "alpha=1.5"),
    "no such device": (["device=tpu"], "DeviceError", "device=tpu"),
    "no such packs_path": (["packs_path=/nowhere"], "ConfigError", "no folder"),
    "occupied run folder": (["hydra.run.dir=FOLDER"], "ConfigError", "not empty"),
    "no run to resume": (["resume=/nowhere"], "RecordError", "no run folder"),
}
if importlib.util.find_spec("ray") is None:
    BAD_INPUT["launcher that is not installed"] = (["-m", "hydra/launcher=ray"], "ConfigError", "not installed")


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_one_line_and_nothing_is_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments, kind, words = BAD_INPUT[name]
    (tmp_path / "empty.txt").write_text("\n\n")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    places = {"EMPTY": tmp_path / "empty.txt", "LATIN": tmp_path / "latin.txt", "FOLDER": tmp_path}
    monkeypatch.chdir(tmp_path)
    for place, path in places.items():
        arguments = [argument.replace(place, str(path)) for argument in arguments]
    before = sorted(tmp_path.rglob("*"))
    assert run_command("core sweep", lambda: sweep.run(arguments)) == 1
    captured = capfd.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith(f"core sweep: {kind}: ")
    assert words in line
    assert sorted(tmp_path.rglob("*")) == before
