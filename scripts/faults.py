"""Inject faults into real saves and restores and print what survived (`make faults`).

Every row counts attempts and the outcomes that must be zero. Exit code 1 if any of those is not zero.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jax
import numpy as np

from engine.base.errors import (
    CheckpointLockedError,
    CheckpointMismatchError,
    CheckpointWriteError,
    PrecisionError,
)
from engine.base.precision import enable_x64
from engine.checkpoint import CheckpointStore

DIGESTS = {"safety_sha256": "0" * 64}
TEMPLATE = {"value": np.zeros((8, 16))}
LOOP = [sys.executable, "-m", "tests.checkpoint.saving_loop"]


@dataclass(frozen=True)
class Row:
    """One kind of fault: how often it was tried, and how often what must never happen happened."""

    fault: str
    tried: int
    bad: int
    meaning: str


def _kill_once(folder: Path, delay: float) -> tuple[int, int]:
    """Start a saving loop in `folder`, kill it `delay` seconds after its first save; return (lost, corrupt)."""
    with subprocess.Popen([*LOOP, str(folder)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(delay)
        process.kill()
        steps = [int(line) for line in (first, *process.stdout.read().split("\n")) if line.strip().isdigit()]
    store = CheckpointStore(folder, digests=DIGESTS)
    try:
        restored = store.restore(TEMPLATE)
    except CheckpointMismatchError:
        return int(bool(steps)), 1
    intact = bool((restored.state["value"] == float(restored.step)).all())
    return int(bool(steps) and restored.step < max(steps)), int(not intact)


def kills(root: Path, times: int) -> Iterator[Row]:
    """kill -9 at random moments of a saving loop; the next loop goes on in the same folder."""
    random = np.random.default_rng(0)
    delays = random.uniform(0.0, 0.25, times)
    lanes = 2

    def lane(number: int) -> list[tuple[int, int]]:
        return [_kill_once(root / f"lane-{number}", float(delay)) for delay in delays[number::lanes]]

    with ThreadPoolExecutor(lanes) as pool:
        outcomes = [outcome for part in pool.map(lane, range(lanes)) for outcome in part]
    yield Row("kill -9 while saving", times, sum(lost for lost, _ in outcomes), "acknowledged steps lost")
    yield Row("kill -9 while saving", times, sum(bad for _, bad in outcomes), "damaged states restored or refused")


def _silent(store: CheckpointStore, state: Any) -> int:
    """Return 1 where a restore of a damaged checkpoint went through without a refusal."""
    return _not_raised(CheckpointMismatchError, lambda: store.restore(state))


def damage(root: Path, flips: int) -> Iterator[Row]:
    """Flip bits in, truncate and delete every file of a checkpoint."""
    state = {"value": np.arange(128.0).reshape(8, 16), "key": jax.random.key(3), "empty": np.zeros((0, 16))}
    with CheckpointStore(root, digests=DIGESTS) as store:
        where = store.save(0, state)
    random = np.random.default_rng(1)
    names = sorted(path for path in where.rglob("*") if path.is_file())
    flipped = cut = gone = 0
    for path in names:
        good = path.read_bytes()
        for bit in random.integers(0, len(good) * 8, flips).tolist():
            path.write_bytes(_flip(good, bit))
            flipped += _silent(store, state)
        for length in random.integers(0, len(good), 5).tolist():
            path.write_bytes(good[:length])
            cut += _silent(store, state)
        path.unlink()
        gone += _silent(store, state)
        path.write_bytes(good)
    store.restore(state)
    yield Row("one bit flipped, each file", flips * len(names), flipped, "restored without a word")
    yield Row("file truncated, each file", 5 * len(names), cut, "restored without a word")
    yield Row("file deleted, each file", len(names), gone, "restored without a word")


def _flip(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)


def full_disk(root: Path) -> Iterator[Row]:
    """Save until a small file system is full: the failed save is typed, what was saved before is intact."""
    mounted = _mount_small(root)
    if not mounted:
        yield Row("disk full (needs the right to mount a tmpfs)", 0, 0, "not tried here")
        return
    bad = tried = 0
    try:
        with CheckpointStore(root, digests=DIGESTS, keep=None) as store:
            saved = -1
            for tried in range(1, 200):
                try:
                    store.save(tried, {"value": np.random.default_rng(tried).normal(size=(2048, 16))})
                except CheckpointWriteError:
                    break
                saved = tried
            else:
                bad += 1
            restored = store.restore({"value": np.zeros((2048, 16))})
            expected = np.random.default_rng(saved).normal(size=(2048, 16))
            bad += int(restored.step != saved or not np.array_equal(restored.state["value"], expected))
            bad += len([path for path in root.iterdir() if path.name.startswith(".tmp-")])
    finally:
        subprocess.run(["umount", str(root)], check=True)
    yield Row("disk full", tried, bad, "untyped, lost, damaged or left over")


def _mount_small(root: Path) -> bool:
    root.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(root)]
    return (
        shutil.which("mount") is not None and subprocess.run(command, check=False, capture_output=True).returncode == 0
    )


def refusals(root: Path) -> Iterator[Row]:
    """Read-only folder, file size limit, two writers, other dtypes, x64 off, other packs."""
    state = {"value": np.ones((8, 16))}
    with CheckpointStore(root / "a", digests=DIGESTS) as store:
        store.save(0, state)
        second = CheckpointStore(root / "a", digests=DIGESTS)
        yield Row("two writers", 1, _not_raised(CheckpointLockedError, lambda: second.save(1, state)), "wrote together")
    targets: list[Any] = [np.ones((8, 16), kind) for kind in (np.float32, np.int32, np.int64, np.float16)]
    wrong = sum(_silent(store, {"value": target}) for target in targets)
    yield Row("another dtype", len(targets), wrong, "cast without a word")
    with jax.enable_x64(False):
        yield Row("x64 off", 1, _not_raised(PrecisionError, lambda: store.restore(state)), "read as float32")
    other = CheckpointStore(root / "a", digests={"safety_sha256": "1" * 64})
    yield Row("other packs", 1, _not_raised(CheckpointMismatchError, lambda: other.restore(state)), "restored")
    blocked = root / "file"
    blocked.write_text("a file where the folder should be")
    store = CheckpointStore(blocked / "b", digests=DIGESTS)
    yield Row("unwritable folder", 1, _not_raised(CheckpointWriteError, lambda: store.save(0, state)), "untyped")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
    try:
        with CheckpointStore(root / "c", digests=DIGESTS) as store:
            bad = _not_raised(CheckpointWriteError, lambda: store.save(0, state)) + len(store.steps())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    yield Row("file size limit", 1, bad, "untyped or half-written")


def _not_raised(kind: type[BaseException], action: Callable[[], object]) -> int:
    try:
        action()
    except kind:
        return 0
    return 1


PROCESSES = {
    "kill -9 in a long propagation": "tests/checkpoint/test_segments.py -k killed_with_sigkill",
    "kill -9 of a sweep in the middle of its job": "tests/e2e/test_launchers.py -k killed_with_sigkill",
    "kill -9 of a joblib worker": "tests/e2e/test_sweep_process.py -k killed_worker",
    "kill -9 of a worker, each launcher": "tests/e2e/test_launchers.py -k crashed_worker",
    "the same without retries": "tests/e2e/test_launchers.py -k lost_a_job",
    "SIGTERM in the middle of a job": "tests/e2e/test_launchers.py -k sigterm",
    "Ctrl-C in a sweep": "tests/e2e/test_sweep_process.py -k ctrl_c",
    "disk full, read-only, in a sweep": "tests/e2e/test_sweep_disk.py",
    "another mesh at restore": "tests/checkpoint/test_store.py -k another_mesh",
    "kill -9 of a process of a cluster": "tests/e2e/test_cluster.py -k lost_process",
}
"""Faults of real processes, and the tests that inject them."""


def processes(root: Path) -> Iterator[Row]:
    """Run the tests that kill, stop and fill up real sweeps; those that lack an extra are not counted as tried."""
    root.mkdir()
    for number, (fault, tests) in enumerate(PROCESSES.items()):
        report = root / f"{number}.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"--junitxml={report}",
            *tests.split(),
        ]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        suite = next(ElementTree.parse(report).getroot().iter("testsuite"))
        for line in _what_failed(suite):
            sys.stderr.write(f"{fault}: {line}\n")
        tried, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
        bad = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        yield Row(fault, tried - skipped, bad, "not refused, not resumed, or other rows")


def _what_failed(suite: ElementTree.Element) -> Iterator[str]:
    """Yield each failed test and the first line of its message."""
    for case in suite.iter("testcase"):
        for found in (*case.iter("failure"), *case.iter("error")):
            message = found.get("message", "").partition("\n")[0]
            yield f"{case.get('classname')}.{case.get('name')}: {message}"


def main() -> int:
    """Run every fault and print the table; return 1 if anything that must be zero is not."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--flips", type=int, default=25, help="bit flips per file")
    parser.add_argument("--without-processes", action="store_true", help="leave out the faults of whole sweeps")
    arguments = parser.parse_args()
    enable_x64()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    rows: list[Row] = []
    print(f"{'fault':45} {'tried':>6} {'bad':>4}  what must not happen")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        parts = (
            refusals(root / "refusals"),
            damage(root / "damage", arguments.flips),
            full_disk(root / "full"),
            kills(root / "kills", arguments.kills),
            () if arguments.without_processes else processes(root / "processes"),
        )
        (root / "refusals").mkdir()
        for part in parts:
            for row in part:
                rows.append(row)
                print(f"{row.fault:45} {row.tried:6d} {row.bad:4d}  {row.meaning}", flush=True)
    return int(any(row.bad for row in rows))


if __name__ == "__main__":
    sys.exit(main())
