"""Sweeps on a full and on a read-only file system: one typed line, nothing half-written, and a run that goes on."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from experiments import rundir
from experiments.results import read_rows

SWEEP = ("limit=2", "perturb=0.1")


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A small file system of memory at `folder`."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def core(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "engine.cli", "sweep", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )


needs_mount = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="mounting a tmpfs needs root on Linux"
)


@needs_mount
def test_a_full_disk_is_said_and_the_run_goes_on_where_there_is_room(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "size=48k") as small:
        run = small / "run"
        full = core(*SWEEP, f"hydra.run.dir={run}", folder=tmp_path)
        assert full.returncode == 1, full.stdout + full.stderr
        assert "cannot be written (No space left on device)" in full.stderr
        assert "Traceback" not in full.stderr
        assert not list(run.rglob("*.tmp"))
        assert not (run / rundir.MANIFEST).exists()
        assert all(path.stat().st_size for path in run.rglob("*.parquet"))
        subprocess.run(["mount", "-o", "remount,size=64m", str(small)], check=True)
        more = core(f"resume={run}", folder=tmp_path)
        assert more.returncode == 0, more.stderr
        assert len(read_rows(run / "results.parquet")) == 2
        assert rundir.check_manifest(run) == []


@needs_mount
def test_a_read_only_file_system_is_said(tmp_path: Path) -> None:
    with mounted(tmp_path / "fixed", "ro") as fixed:
        done = core(*SWEEP, f"hydra.run.dir={fixed / 'run'}", folder=tmp_path)
        assert done.returncode == 1
        assert "cannot be made (Read-only file system)" in done.stderr
        assert "Traceback" not in done.stderr
