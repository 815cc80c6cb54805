"""A job in segments: `checkpoint.every` prompts at a time, each made durable, so that a killed job goes on from there.

A segment's rows are a table of their own below `jobs/N/segments/`; the checkpoint after it (Orbax, below
`jobs/N/checkpoints/`) holds its field states, token paths, residuals, the seed's key, the position in the prompts and
the SHA-256 of every table so far. Nothing of a checkpoint is used before the safety pack has been loaded and compared.
A job that is done needs neither, and both are removed.
"""

import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.base.errors import CheckpointMismatchError
from experiments.prompts import Prompt
from experiments.results import Row, read_rows, table_bytes
from experiments.rundir import file_sha256, write_bytes
from packs.seal import sha256_hex
from packs.strict_json import canonical_bytes

if TYPE_CHECKING:
    from engine.checkpoint import CheckpointStore
    from engine.runtime.result import ResultTable

LOG = logging.getLogger("corefield.sweep")
CHECKPOINTS = "checkpoints"
TABLES = "segments"
WALKED = -1
"""`first_violation` of a row whose state is closed; only such states go into a checkpoint."""


@dataclass(frozen=True)
class Segments:
    """How a job is cut and kept. `every`: prompts a segment; `keep`: checkpoints retained; `digests`: what they bind.

    `guard` is called before each save and looks at the safety pack again; `config` is the resolved configuration.
    """

    folder: Path
    every: int
    keep: int
    asynchronous: bool
    seed: int
    steps: int
    digests: Mapping[str, str]
    config: Mapping[str, Any]
    guard: Callable[[], object]


@dataclass(frozen=True)
class Gathered:
    """The rows of a job, the worst residual at each step, and how many prompts an earlier attempt had already made."""

    rows: list[Row]
    residuals: NDArray[np.float64]
    resumed_at: int


def settings_sha256(config: Mapping[str, Any]) -> str:
    """Return the digest of a job's resolved configuration in canonical JSON."""
    return sha256_hex(canonical_bytes(config))


def run_segments(
    job: Segments, prompts: Sequence[Prompt], evaluate: Callable[[Sequence[Prompt]], "ResultTable"]
) -> Gathered:
    """Evaluate `prompts` segment after segment, beginning after the last one that an earlier attempt made durable.

    Raises `CheckpointMismatchError`, naming both sides, where the checkpoint is damaged, was written under other packs,
    settings, prompts, software or devices, or where a segment's table is not the one that the checkpoint names.
    """
    from engine.checkpoint import CheckpointStore

    count = -(-len(prompts) // job.every)
    with CheckpointStore(job.folder / CHECKPOINTS, digests=job.digests, keep=job.keep, guard=job.guard) as store:
        done, names, worst = _restored(store, job)
        (job.folder / TABLES).mkdir(exist_ok=True)
        for number in range(done, count):
            table = evaluate(prompts[number * job.every : (number + 1) * job.every])
            name = f"{number:06d}.parquet"
            write_bytes(job.folder / TABLES / name, table_bytes(table.rows))
            names = {**names, name: file_sha256(job.folder / TABLES / name)}
            worst = np.maximum(worst, table.residuals.max(axis=0))
            end = min((number + 1) * job.every, len(prompts))
            notes = {"config": dict(job.config), "tables": names, "prompts_done": end}
            pending = store.save_async(number + 1, _state(job, table, worst), notes)
            if not job.asynchronous:
                pending.wait()
            LOG.info("prompts up to %d of %d evaluated", end, len(prompts))
    rows = [row for name in sorted(names) for row in read_rows(job.folder / TABLES / name)]
    return Gathered(rows, worst, min(done * job.every, len(prompts)))


def forget_segments(folder: Path) -> None:
    """Remove what a finished job no longer needs."""
    for name in (CHECKPOINTS, TABLES):
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)


def _restored(store: "CheckpointStore", job: Segments) -> tuple[int, dict[str, str], NDArray[np.float64]]:
    """Return segments done, the digest of each one's table, and the worst residuals so far."""
    nothing = np.zeros(job.steps + 1)
    if not store.steps():
        return 0, {}, nothing
    restored = store.restore(_state(job, None, nothing))
    tables = dict(restored.notes["tables"])
    for name, expected in tables.items():
        path = job.folder / TABLES / name
        found = file_sha256(path) if path.is_file() else "absent"
        if found != expected:
            raise CheckpointMismatchError(f"{path}: SHA-256 is {expected} in the checkpoint, {found} in the folder")
    return restored.step, tables, restored.state["worst"]


def _state(job: Segments, table: "ResultTable | None", worst: NDArray[np.float64]) -> dict[str, Any]:
    """Return a checkpoint's arrays, padded to `every` rows; without a table, the template that a restore fits."""
    import jax

    from engine.field import FieldState

    motors = np.zeros((job.every, 16))
    motors[:, 0] = 1.0
    tokens = np.full((job.every, job.steps), -1, np.int32)
    residuals = np.zeros((job.every, job.steps + 1))
    walked = np.zeros(job.every, np.bool_)
    if table is not None:
        rows = len(table.rows)
        walked[:rows] = [row["first_violation"] == WALKED for row in table.rows]
        motors[:rows][walked[:rows]] = table.final_motors[walked[:rows]]
        tokens[:rows], residuals[:rows] = table.token_ids, table.residuals
    return {
        "field": FieldState(motors),
        "walked": walked,
        "token_ids": tokens,
        "residuals": residuals,
        "worst": worst,
        # Every draw of a row is folded from this key and the prompt's digest.
        "key": jax.random.fold_in(jax.random.key(0), job.seed),
    }
