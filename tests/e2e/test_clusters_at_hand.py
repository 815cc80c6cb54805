"""Sweeps on a SLURM cluster and on a running Ray cluster, where one is at hand: the rows of one process."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from experiments import rundir
from tests.e2e.processes import wait_for

RAY = str(Path(sys.executable).with_name("ray"))
CORE = [sys.executable, "-m", "engine.cli", "sweep"]
SWEEP = ("-m", "identity=glob(*)", "limit=3", "perturb=0.1", "checkpoint.every=1")
SLURM = ("hydra/launcher=submitit_slurm", "hydra.launcher.timeout_min=10", "hydra.launcher.cpus_per_task=1")


def answers(*command: str, says: str) -> bool:
    """Whether a command is there, succeeds and says something."""
    if shutil.which(command[0]) is None:
        return False
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode == 0 and says in done.stdout


def start(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "output", "w") as output, open(folder / "errors", "w") as errors:
        kept = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
        return subprocess.Popen([*CORE, *arguments], cwd=folder, env=kept, stdout=output, stderr=errors, text=True)


def ended(folder: Path, process: "subprocess.Popen[str]") -> str:
    code = process.wait(500)
    text = (folder / "output").read_text() + (folder / "errors").read_text()
    assert code == 0, text
    return text


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("alone")
    ended(folder, start(folder, *SWEEP, "hydra.sweep.dir=run"))
    return (folder / "run" / "results.parquet").read_bytes()


slurm = pytest.mark.skipif(
    importlib.util.find_spec("submitit") is None or not answers("sinfo", "-h", says="idle"),
    reason="no SLURM cluster answers, or submitit is missing (scripts/one_node_slurm.sh starts one)",
)


@slurm
@pytest.mark.slow
def test_a_slurm_array_gives_the_rows_of_one_process(tmp_path: Path, alone: bytes) -> None:
    ended(tmp_path, start(tmp_path, *SWEEP, *SLURM, "hydra.sweep.dir=run"))
    assert (tmp_path / "run" / "results.parquet").read_bytes() == alone


@slurm
@pytest.mark.slow
def test_a_killed_slurm_job_is_retried_from_its_checkpoint(tmp_path: Path) -> None:
    task = ("-m", "seed=0", "limit=40", "perturb=0.1", "checkpoint.every=1")
    process = start(tmp_path / "slurm", *task, *SLURM, "hydra.sweep.dir=run", "retries=2")
    run = tmp_path / "slurm" / "run"
    wait_for(process, lambda: bool(list(run.glob("jobs/0/checkpoints/step-*"))))
    # Of all that runs there only what was submitted from this folder: the cluster may be somebody's.
    command = ["squeue", "--me", "-h", "-t", "R", "-o", "%A %Z"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    mine = [line.split(" ", 1)[0] for line in listed if line.split(" ", 1)[1].startswith(str(tmp_path))]
    assert mine, listed
    subprocess.run(["scancel", "--full", "--signal=KILL", *mine], check=True)
    ended(tmp_path / "slurm", process)
    (retried,) = rundir.read_json(run / "summary.json")["retried_jobs"]
    assert retried["resumed_at"] > 0
    ended(tmp_path / "alone", start(tmp_path / "alone", *task, "hydra.sweep.dir=run"))
    assert (run / "results.parquet").read_bytes() == (tmp_path / "alone" / "run" / "results.parquet").read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None or not answers(RAY, "status", says="Active"),
    reason="no Ray cluster answers (ray start --head starts one), or ray is missing",
)
def test_a_running_ray_cluster_gives_the_rows_of_one_process(tmp_path: Path, alone: bytes) -> None:
    joined = ("hydra/launcher=ray", "hydra.launcher.address=auto", "hydra.sweep.dir=run")
    ended(tmp_path, start(tmp_path, *SWEEP, *joined))
    assert (tmp_path / "run" / "results.parquet").read_bytes() == alone
    assert answers(RAY, "status", says="Active")  # a cluster that was joined is not ended
