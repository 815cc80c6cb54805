"""Verification of runs that were made on other devices than the ones that are here."""

import shutil
from pathlib import Path

import pytest

from experiments import rundir, sweep
from experiments.verify import verify_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished run whose rows were spread over two devices."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert sweep.run(["limit=4", "devices=2", "perturb=0.1", f"hydra.run.dir={folder}"]) == 0
    return folder


def test_a_run_over_two_devices_is_made_again_over_two(run: Path) -> None:
    assert rundir.read_json(run / "environment.json")["devices"] == 2
    findings = verify_run(run, all_rows=True)
    assert findings.ok, findings.lines()
    assert not findings.not_checked
    assert any("4 of 4 rows made again: 4 bit-identical" in line for line in findings.checked)


@pytest.mark.parametrize(
    ("changes", "said"), [({"devices": 64}, "devices=64"), ({"device": "gpu"}, "device=gpu: there is none")]
)
def test_devices_that_are_not_here_are_named_and_the_rows_compared_to_the_tolerance(
    run: Path, tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    plan = rundir.read_json(copy / "plan.json")
    for job in plan["jobs"]:
        job.update(changes)
    rundir.write_json(copy / "plan.json", plan)
    rundir.write_manifest(copy)
    findings = verify_run(copy, all_rows=True)
    assert findings.ok, findings.lines()
    assert any(said in line and "one processor" in line for line in findings.not_checked), findings.lines()
    assert any("bit-identity" in line and "devices" in line for line in findings.not_checked), findings.lines()
    assert any(line.startswith("4 of 4 rows made again") for line in findings.checked)
