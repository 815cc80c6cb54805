"""Launchers for real: workers killed mid-job, retries that go on from the checkpoint, losses that are named."""

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.base.errors import CheckpointMismatchError
from experiments import rundir, sweep
from experiments.segments import CHECKPOINTS
from tests.e2e.processes import wait_for

CORE = [sys.executable, "-m", "engine.cli", "sweep"]
PROMPTS = 60
"""So many one-prompt segments, each made durable, that a kill at the third finds the job still running."""


def needs(library: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(library) is None, reason=f"{library} is not installed")


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prompts") / "prompts.txt"
    path.write_text("What is truth?\nWhy does doubt matter?\n" * (PROMPTS // 2), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(prompts: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The table of the job that the tests below kill, made without an interruption."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    process = start(prompts, folder, folder.parent)
    output, errors = process.communicate(timeout=500)
    assert process.returncode == 0, output + errors
    return (folder / "results.parquet").read_bytes()


IN_BACKGROUND = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"]
"""What `command &` is to a shell without job control: SIGINT is ignored, by whatever the command starts too."""


def start(
    prompts: Path, folder: Path, place: Path, *arguments: str, under: Sequence[str] = ()
) -> "subprocess.Popen[str]":
    task = ["-m", "perturb=0.1", f"prompts={prompts}", "checkpoint.every=1", f"hydra.sweep.dir={folder}"]
    return subprocess.Popen(
        [*under, *CORE, *task, *arguments],
        cwd=place,
        env={key: value for key, value in os.environ.items() if key != "XLA_FLAGS"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def saved(folder: Path) -> int:
    """Return the newest step of job 0's checkpoints."""
    steps = (folder / "jobs" / "0" / CHECKPOINTS).glob("step-*")
    return max((int(path.name.removeprefix("step-")) for path in steps), default=0)


def worker_of(folder: Path) -> int:
    """Return the id of the process that has job 0's log open."""
    log = str(folder / "jobs" / "0" / "job.log")
    for entry in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(entry) == log:
                return int(entry.parts[2])
        except OSError:
            continue  # It was closed, or is not ours, while it was looked at.
    return 0


def segments_logged(folder: Path) -> list[int]:
    """Return the segments that all attempts at job 0 evaluated, in order, by its log."""
    lines = (folder / "jobs" / "0" / "job.log").read_text().splitlines()
    return [int(line.split("up to ")[1].split()[0]) for line in lines if "evaluated" in line]


def check_resumed(folder: Path, whole: bytes) -> None:
    """The job went on from its checkpoint: the attempts' segments join without a gap or a repeat beyond the last."""
    status = rundir.read_json(folder / "jobs" / "0" / "status.json")
    assert status["resumed_at"] >= 3
    logged = segments_logged(folder)
    second = logged[-(PROMPTS - status["resumed_at"]) :]
    assert second == list(range(status["resumed_at"] + 1, PROMPTS + 1))
    # The kill may fall between a checkpoint and its line in the log.
    assert logged[: -len(second)][-1] in (status["resumed_at"], status["resumed_at"] - 1)
    assert (folder / "results.parquet").read_bytes() == whole
    assert not (folder / "jobs" / "0" / CHECKPOINTS).exists()
    assert rundir.check_manifest(folder) == []


@pytest.mark.slow
def test_a_job_killed_with_sigkill_goes_on_from_its_own_last_checkpoint(
    tmp_path: Path, prompts: Path, whole: bytes
) -> None:
    folder = tmp_path / "run"
    process = start(prompts, folder, tmp_path)
    wait_for(process, lambda: saved(folder) >= 3)
    process.kill()
    process.communicate()
    assert not (folder / "results.parquet").exists()
    assert sweep_again(folder, tmp_path) == 0
    check_resumed(folder, whole)


def sweep_again(folder: Path, place: Path, *arguments: str) -> int:
    """Continue a run in a process like the one that began it: with this process's eight devices it is refused."""
    environment = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
    command = [*CORE, f"resume={folder}", *arguments]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, timeout=500, check=False).returncode


@pytest.mark.slow
def test_sigterm_in_the_middle_of_a_job_stops_cleanly_and_goes_on_in_the_middle(
    tmp_path: Path, prompts: Path, whole: bytes
) -> None:
    folder = tmp_path / "run"
    process = start(prompts, folder, tmp_path)
    wait_for(process, lambda: saved(folder) >= 3)
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=300)
    assert (process.returncode, output) == (130, ""), errors
    assert f"continue with: core sweep resume={folder}" in errors
    assert "Traceback" not in errors
    # The eight devices of this process are not the one that the job began with.
    assert sweep.run([f"resume={folder}"]) == 1
    error = rundir.read_json(folder / "jobs" / "0" / "status.json")
    assert error["error_type"] == CheckpointMismatchError.__name__
    assert "devices is 1 x cpu cpu in the checkpoint, 8 x cpu cpu here" in error["error"]
    assert sweep_again(folder, tmp_path) == 0
    check_resumed(folder, whole)


LAUNCHERS = [
    pytest.param("joblib", ["hydra.launcher.n_jobs=2"], marks=needs("joblib")),
    pytest.param("submitit_local", ["hydra.launcher.n_jobs=2"], marks=needs("submitit")),
    pytest.param("ray", ["hydra.launcher.n_jobs=2"], marks=needs("ray")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("launcher", "arguments"), LAUNCHERS)
def test_a_crashed_worker_is_retried_from_its_checkpoint(
    tmp_path: Path, prompts: Path, whole: bytes, launcher: str, arguments: list[str]
) -> None:
    folder = tmp_path / "run"
    process = start(prompts, folder, tmp_path, f"hydra/launcher={launcher}", "retries=2", *arguments)
    wait_for(process, lambda: saved(folder) >= 3)
    os.kill(wait_for(process, lambda: worker_of(folder)), signal.SIGKILL)
    output, errors = process.communicate(timeout=500)
    assert process.returncode == 0, output + errors
    assert "jobs without a result: 0; retry 1 of 2" in errors
    (retried,) = rundir.read_json(folder / "summary.json")["retried_jobs"]
    assert (retried["job"], retried["attempts"], retried["state"]) == (0, 2, "done")
    assert "job 0 done after 2 attempts" in output
    check_resumed(folder, whole)


@pytest.mark.slow
@pytest.mark.parametrize(("launcher", "arguments"), LAUNCHERS[1:])
def test_a_sweep_that_lost_a_job_keeps_the_others_names_it_and_fails(
    tmp_path: Path, prompts: Path, launcher: str, arguments: list[str]
) -> None:
    folder = tmp_path / "run"
    process = start(prompts, folder, tmp_path, "seed=0,1", f"hydra/launcher={launcher}", *arguments)
    wait_for(process, lambda: saved(folder) >= 3)
    os.kill(wait_for(process, lambda: worker_of(folder)), signal.SIGKILL)
    output, errors = process.communicate(timeout=500)
    assert process.returncode == 1, output + errors
    (lost,) = rundir.read_json(folder / "summary.json")["failed_jobs"]
    assert (lost["job"], lost["state"]) == (0, "lost")
    assert "job 0 lost: identity=default_general_v1 language=en seed=0" in output
    assert rundir.read_json(folder / "jobs" / "1" / "status.json")["state"] == "done"


@pytest.mark.slow
@pytest.mark.parametrize("under", [pytest.param([], id="foreground"), pytest.param(IN_BACKGROUND, id="background")])
@pytest.mark.parametrize(("launcher", "arguments"), LAUNCHERS[1:])
def test_sigterm_stops_the_workers_too(
    tmp_path: Path, prompts: Path, whole: bytes, launcher: str, arguments: list[str], under: list[str]
) -> None:
    folder = tmp_path / "run"
    process = start(prompts, folder, tmp_path, f"hydra/launcher={launcher}", *arguments, under=under)
    wait_for(process, lambda: saved(folder) >= 3)
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=300)
    assert (process.returncode, output) == (130, ""), errors
    assert worker_of(folder) == 0
    assert sweep_again(folder, tmp_path) == 0
    check_resumed(folder, whole)
