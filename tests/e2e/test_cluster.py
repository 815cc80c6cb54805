"""A sweep shared out over real processes: the rows of one process, a lost process said in bounded time, and resumed."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.results import read_rows
from tests.e2e.processes import wait_for

EXACT = ("prompt_id", "status", "refusal", "surface", "tokens", "hedge", "flagged")
ROUNDING = 1e-12
"""As in tests/runtime/test_placement.py."""

BOUND_S = 120
"""Within this the survivors have to be gone: twice the heartbeat's default, for a machine under load."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Member:
    """A running command. Its output goes to files: a pipe that nobody reads would stop it once it is full."""

    process: "subprocess.Popen[str]"
    output: Path
    errors: Path


def start(folder: Path, *arguments: str) -> Member:
    kept = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
    logs = Path(tempfile.mkdtemp(dir=folder.parent))
    with open(logs / "output", "w") as output, open(logs / "errors", "w") as errors:
        command = [sys.executable, "-m", "engine.cli", *arguments]
        process = subprocess.Popen(command, cwd=folder, env=kept, stdout=output, stderr=errors, text=True)
    return Member(process, logs / "output", logs / "errors")


def cluster(folder: Path, processes: int, *sweep: str) -> list[Member]:
    address = f"127.0.0.1:{free_port()}"
    leader = start(folder, "sweep", *sweep, f"cluster.coordinator={address}", f"cluster.processes={processes}")
    count = str(processes)
    return [leader] + [
        start(folder, "follow", address, "--processes", count, "--index", str(index)) for index in range(1, processes)
    ]


def ended(members: list[Member], timeout: float = 500) -> list[tuple[int, str, str]]:
    try:
        return [
            (member.process.wait(timeout), member.output.read_text(), member.errors.read_text()) for member in members
        ]
    finally:
        for member in members:
            member.process.kill()
            member.process.wait()


def assert_same_rows(first: Any, second: Any) -> None:
    assert len(first) == len(second) > 0
    for one, other in zip(first, second, strict=True):
        assert [one[name] for name in EXACT] == [other[name] for name in EXACT]
        for name in ("alignment", "max_residual"):
            assert (one[name] is None) == (other[name] is None)
            if one[name] is not None:
                assert abs(one[name] - other[name]) < ROUNDING
        assert (one["final_motor"] is None) == (other["final_motor"] is None)
        if one["final_motor"] is not None:
            motors = [np.fromstring(row["final_motor"].strip("[]"), sep=",") for row in (one, other)]
            np.testing.assert_allclose(*motors, atol=ROUNDING, rtol=0)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("alone")
    [(code, _, errors)] = ended([start(folder, "sweep", "limit=20", "seed=3", "perturb=0.1", "hydra.run.dir=run")])
    assert code == 0, errors
    return read_rows(folder / "run" / "results.parquet")


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 4])
def test_processes_share_out_the_rows_of_a_sweep(tmp_path: Path, alone: Any, processes: int) -> None:
    members = cluster(tmp_path, processes, "limit=20", "seed=3", "perturb=0.1", "hydra.run.dir=run")
    for code, output, errors in ended(members):
        assert code == 0, (output, errors)
    assert_same_rows(read_rows(tmp_path / "run" / "results.parquet"), alone)
    [(code, output, errors)] = ended([start(tmp_path, "verify", "run")])
    assert code == 0, (output, errors)


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_lost_process_ends_the_others_in_bounded_time_and_the_run_resumes(tmp_path: Path, victim: int) -> None:
    job = ("limit=20", "seed=3", "perturb=0.1", "checkpoint.every=1", "hydra.run.dir=run")
    members = cluster(tmp_path, 3, *job)
    step = tmp_path / "run" / "jobs" / "0" / "checkpoints" / "step-000000000001"
    wait_for(members[0].process, step.is_dir)
    members[victim].process.send_signal(signal.SIGKILL)
    begun = time.monotonic()
    results = ended(members, timeout=BOUND_S)
    assert time.monotonic() - begun < BOUND_S
    for number, (code, output, errors) in enumerate(results):
        if number == victim:
            assert code == -signal.SIGKILL
        else:
            assert code != 0
            # The engine's line, or JAX's own where it ends the process first.
            said = output + errors
            assert "another process of the cluster was lost" in said or "another task died" in said, said
    members = cluster(tmp_path, 3, "resume=run")
    for code, output, errors in ended(members):
        assert code == 0, (output, errors)
    [(code, _, errors)] = ended([start(tmp_path, "sweep", "limit=20", "seed=3", "perturb=0.1", "hydra.run.dir=whole")])
    assert code == 0, errors
    assert_same_rows(*(read_rows(tmp_path / name / "results.parquet") for name in ("run", "whole")))


def test_a_process_that_nobody_joins_says_so(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    alone = [
        start(tmp_path, "follow", address, "--processes", "2", "--index", "1", "--timeout", "2"),
        start(tmp_path, "sweep", "cluster.timeout_s=2", f"cluster.coordinator=127.0.0.1:{free_port()}",
              "cluster.processes=2", "hydra.run.dir=run"),
    ]  # fmt: skip
    for code, _, errors in ended(alone, timeout=BOUND_S):
        assert code != 0
        assert "could not join" in errors or "DEADLINE_EXCEEDED" in errors, errors
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sweep", "cluster.coordinator=host"), "expected HOST:PORT"),
        (("sweep", "cluster.coordinator=h:1"), "a cluster needs"),
        (("sweep", "cluster.processes=2"), "a cluster needs"),
        (("sweep", "cluster.coordinator=h:1", "cluster.processes=1"), "expected 2 to"),
        (("sweep", "cluster.coordinator=h:99999", "cluster.processes=2"), "expected HOST:PORT"),
        (("sweep", "cluster.coordinator=h:1", "cluster.processes=2", "devices=2"), "devices=N is for one process"),
        (("sweep", "-m", "cluster.coordinator=h:1", "cluster.processes=2", "hydra/launcher=joblib"), "basic launcher"),
        (("sweep", "cluster.coordinator=$(id):1", "cluster.processes=2"), "interpolation is refused"),
        (("follow", "h:1", "--processes", "2", "--index", "0"), "is the leader"),
        (("follow", "h:1", "--processes", "2", "--index", "2"), "expected 2 to"),
        (("follow", "h:1", "--processes", "2", "--index", "1", "--timeout", "0"), "seconds"),
        (("sweep", "devices=0"), "devices=0"),
        (("sweep", "devices=2,4", "-m"), "one value"),
    ],
)
def test_what_makes_no_cluster_is_refused_in_a_line(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    [(code, output, errors)] = ended([start(tmp_path, *arguments)])
    assert code in (1, 2)
    assert message in errors, errors
    assert "Traceback" not in errors
    assert output == ""
    assert not list(tmp_path.iterdir())
