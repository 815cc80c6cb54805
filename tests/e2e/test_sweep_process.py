"""Sweeps as processes: Ctrl-C and resume, channels without effect, a killed worker, variables that are refused."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments import rundir, sweep
from experiments.results import read_rows
from packs.safety.loader import load_safety_pack
from tests.e2e.processes import wait_for

CORE = [sys.executable, "-m", "engine.cli", "sweep"]
MODULE = [sys.executable, "-P", "-m", "experiments.sweep"]
# So many jobs that the few seconds between a signal and its arrival on a loaded machine cannot outlast them.
MANY = ["-m", "seed=range(0,60)", "perturb=0.1"]


def start(command: list[str], *arguments: str, folder: Path, **extra: str) -> "subprocess.Popen[str]":
    kept = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
    return subprocess.Popen(
        [*command, *arguments],
        cwd=folder,
        env={**kept, **extra},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    output, errors = process.communicate(timeout=500)
    return process.returncode, output, errors


def done_jobs(folder: Path) -> int:
    states = [rundir.read_json(path)["state"] for path in folder.glob("jobs/*/status.json")]
    return states.count("done")


def children_of(parent: int) -> Iterator[tuple[int, bytes]]:
    """Yield the id and the whole command line of each child of `parent`; a listing by `ps` may be cut to a width."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            command = (stat.parent / "cmdline").read_bytes()
        except OSError:
            continue  # It ended while it was looked at.
        if int(fields[1]) == parent:
            yield int(stat.parent.name), command


def workers_of(process: "subprocess.Popen[str]") -> list[int]:
    """Return the ids of the joblib workers that `process` has started."""
    return [child for child, command in children_of(process.pid) if b"popen_loky" in command]


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prompts") / "prompts.txt"
    path.write_text("What is truth?\nWhy does doubt matter?\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(prompts: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The table of the sweep that the tests below interrupt, made without an interruption."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert sweep.run([*MANY, f"prompts={prompts}", f"hydra.sweep.dir={folder}"]) == 0
    return (folder / "results.parquet").read_bytes()


@pytest.mark.slow
def test_ctrl_c_stops_cleanly_and_a_resumed_run_is_bit_identical(tmp_path: Path, prompts: Path, whole: bytes) -> None:
    folder = tmp_path / "run"
    process = start(CORE, *MANY, f"prompts={prompts}", f"hydra.sweep.dir={folder}", folder=tmp_path)
    wait_for(process, lambda: done_jobs(folder) >= 3)
    process.send_signal(signal.SIGINT)
    code, output, errors = finish(process)
    assert (code, output) == (130, ""), errors
    assert "Traceback" not in errors
    assert f"continue with: core sweep resume={folder}" in errors
    assert not (folder / "manifest.json").exists()
    assert rundir.read_json(folder / "status.json") == {"state": "interrupted"}
    assert 3 <= done_jobs(folder) < 60
    assert sweep.run([f"resume={folder}"]) == 0
    assert (folder / "results.parquet").read_bytes() == whole


@pytest.mark.slow
def test_a_killed_worker_is_named_and_the_run_resumes(tmp_path: Path, prompts: Path, whole: bytes) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    folder = tmp_path / "run"
    launcher = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2", f"hydra.sweep.dir={folder}"]
    process = start(CORE, *MANY, f"prompts={prompts}", *launcher, folder=tmp_path)
    # Killed at once: no job can be done, so that the outcome does not depend on how fast the machine is.
    worker = wait_for(process, lambda: workers_of(process))[0]
    os.kill(worker, signal.SIGKILL)
    code, output, errors = finish(process)
    assert code == 1, errors
    assert "job 59 lost: identity=default_general_v1 language=en seed=59" in output
    assert "Traceback" not in errors
    assert rundir.read_json(folder / "status.json") == {"state": "failed"}
    assert sweep.run([f"resume={folder}"]) == 0
    assert (folder / "results.parquet").read_bytes() == whole


@pytest.mark.slow
def test_channels_without_effect_change_no_byte_of_the_table(tmp_path: Path, prompts: Path) -> None:
    before = load_safety_pack()
    without_effect = {
        "HYDRA_FULL_ERROR": "1",
        "EQX_ON_ERROR": "nan",
        "JAX_ENABLE_X64": "0",
        "PYTHONOPTIMIZE": "2",
        "OC_CAUSE": "1",
    }
    for name in ("safety.json", "core_safety_axes_v1.json", "config.yaml", ".env", "sitecustomize.py"):
        (tmp_path / name).write_text("safety: none\n")
    processes = [
        start(CORE, f"prompts={prompts}", folder=tmp_path),
        start(MODULE, f"prompts={prompts}", folder=tmp_path, **without_effect),
    ]
    outcomes = [finish(process) for process in processes]
    assert [code for code, _, _ in outcomes] == [0, 0], outcomes
    folders = list((tmp_path / "runs").iterdir())
    assert len(folders) == 2, "two runs that start together get two folders"
    assert len({(folder / "results.parquet").read_bytes() for folder in folders}) == 1
    assert load_safety_pack() == before
    rows = read_rows(folders[0] / "results.parquet")
    assert {(row["safety_sha256"], row["ratified"]) for row in rows} == {(before.sha256, True)}


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"CORE_SAFETY_PACK_PATH": "/tmp"}, "CORE_SAFETY_PACK_PATH"),
        ({"HYDRA_INSTANTIATE_ALLOWLIST_OVERRIDE": "*"}, "HYDRA_INSTANTIATE_ALLOWLIST_OVERRIDE"),
        ({"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}, "fast_math"),
    ],
)
def test_a_weakening_variable_is_refused_by_the_real_command(tmp_path: Path, extra: dict[str, str], words: str) -> None:
    code, output, errors = finish(start(CORE, folder=tmp_path, **extra))
    assert (code, output) == (1, "")
    assert len(errors.splitlines()) == 1
    assert words in errors
    assert list(tmp_path.iterdir()) == []


def test_configs_in_the_working_directory_are_refused_under_python_m(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "__init__.py").write_text("raise SystemExit('planted code ran')\n")
    code, _, errors = finish(start([sys.executable, "-m", "experiments.sweep"], folder=tmp_path))
    assert code == 1
    assert "SafetyOverrideError: configs comes from" in errors
