"""Save and restore checkpoints so that nothing reported as saved is lost and nothing damaged is restored.

Save: lock, own temporary folder, Orbax (synchronous) into it, metadata, SHA-256 manifest, fsync of files and folders,
rename, fsync of the parent, and only then the return. Restore: manifest first, then versions, digests, dtypes, shapes
and shardings, then Orbax, then the closure of every field state.
"""

import contextlib
import dataclasses
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from engine import __version__
from engine.base.errors import CheckpointMismatchError, CheckpointWriteError, ConfigError
from engine.base.precision import require_x64
from engine.checkpoint import files
from engine.checkpoint.leaves import LeafRecord, Leaves, compare, flatten, rebuild

SCHEMA = "1.0.0"
ARRAYS = "arrays"
METADATA = "metadata.json"
_STEP = re.compile(r"step-(\d{12})\Z")
_LIBRARIES = ("jax", "jaxlib", "numpy", "orbax-checkpoint")


@dataclasses.dataclass(frozen=True)
class Restored:
    """What a restore returns: the state, its step, and the notes that were saved beside it."""

    state: PyTree
    step: int
    notes: Mapping[str, Any]


class PendingSave:
    """A save under way. `wait` returns its folder, or raises what went wrong; `close` of the store waits as well."""

    def __init__(self, future: "Future[Path]") -> None:
        self._future = future
        self.waited = False

    def wait(self) -> Path:
        """Block until the checkpoint is durable and return its folder."""
        self.waited = True
        return self._future.result()


class CheckpointStore:
    """A folder of checkpoints, one writer at a time.

    `digests` names what the state belongs to (`safety_sha256` always, packs and configuration as the caller has them);
    a restore refuses a checkpoint with other digests. `keep` is the number of newest checkpoints to retain (`None`:
    all); those whose step is a multiple of `keep_multiples_of` stay beside them. `guard` is called before each
    save, for instance to look at the safety digest again.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        digests: Mapping[str, str],
        keep: int | None = 3,
        keep_multiples_of: int | None = None,
        guard: Callable[[], object] | None = None,
    ) -> None:
        if "safety_sha256" not in digests:
            raise ConfigError("a checkpoint store needs the safety pack's digest (digests['safety_sha256'])")
        if keep is not None and keep < 1:
            raise ConfigError(f"checkpoint retention keep={keep} would keep nothing; use 1 or more, or null for all")
        if keep_multiples_of is not None and keep_multiples_of < 1:
            raise ConfigError(f"keep_multiples_of={keep_multiples_of}: use a step count of 1 or more, or null for none")
        self.folder = Path(folder).absolute()
        self._digests = dict(digests)
        self._keep = keep
        self._multiples = keep_multiples_of
        self._guard = guard
        self._lock: files.WriterLock | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._pending: PendingSave | None = None

    def __enter__(self) -> "CheckpointStore":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Wait for a pending save, then let other writers in."""
        try:
            self._settle()
        finally:
            if self._pool is not None:
                self._pool.shutdown(wait=True)
                self._pool = None
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def steps(self) -> tuple[int, ...]:
        """Return the steps that were saved completely, in order. Leftovers of killed writers are not among them."""
        if not self.folder.is_dir():
            return ()
        found = (_STEP.match(path.name) for path in self.folder.iterdir())
        return tuple(sorted(int(match[1]) for match in found if match))

    def save(self, step: int, state: PyTree, notes: Mapping[str, Any] | None = None) -> Path:
        """Write `state` as checkpoint `step` and return its folder once it is durable.

        `notes` are small JSON values kept beside it. Raises `CheckpointWriteError` (disk full, read-only folder, step
        exists), `CheckpointLockedError` (another writer) or `ConfigError` (a leaf that cannot be saved).
        """
        return self.save_async(step, state, notes).wait()

    def save_async(self, step: int, state: PyTree, notes: Mapping[str, Any] | None = None) -> PendingSave:
        """Like `save`, but write in the background from a copy taken now. One save at a time; errors come on `wait`."""
        self._settle()
        if self._guard is not None:
            self._guard()
        if self._lock is None:
            self._lock = files.WriterLock(self.folder)
            files.remove_leftovers(self.folder)
        if step < 0 or step in self.steps():
            raise CheckpointWriteError(f"{self.folder}: step {step} is negative or already saved")
        leaves = flatten(state)
        snapshot = {name: _to_host(array) for name, array in leaves.arrays.items()}
        leaves = dataclasses.replace(leaves, arrays=snapshot)
        metadata = files.canonical(self._metadata(step, leaves, dict(notes or {})))
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._pending = PendingSave(self._pool.submit(self._write, step, leaves, metadata))
        return self._pending

    def wait(self) -> None:
        """Block until a pending save is durable; raises what went wrong with it, unless that was raised before."""
        self._settle()

    def _settle(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None and not pending.waited:
            pending.wait()

    def _metadata(self, step: int, leaves: Leaves, notes: dict[str, Any]) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA,
            "engine_version": __version__,
            "libraries": {name: version(name) for name in _LIBRARIES},
            "step": step,
            "digests": self._digests,
            "structure": leaves.structure,
            "leaves": [dataclasses.asdict(record) for record in leaves.records],
            "notes": notes,
        }

    def _write(self, step: int, leaves: Leaves, metadata: bytes) -> Path:
        final = self.folder / f"step-{step:012d}"
        temporary = None
        try:
            temporary = Path(tempfile.mkdtemp(prefix=files.TEMPORARY_PREFIX, dir=self.folder))
            if leaves.arrays:
                _orbax_save(temporary / ARRAYS, leaves.arrays)
            (temporary / METADATA).write_bytes(metadata)
            files.write_manifest(temporary)
            files.sync_tree(temporary)
            temporary.rename(final)
            files.sync(self.folder)
        except OSError as error:
            raise CheckpointWriteError(f"{final}: cannot be written ({error.strerror or error})") from error
        finally:
            if temporary is not None and temporary.exists():
                shutil.rmtree(temporary, ignore_errors=True)
        self._retire()
        return final

    def _retire(self) -> None:
        for step in self.steps()[: -self._keep] if self._keep is not None else ():
            if self._multiples is not None and step % self._multiples == 0:
                continue
            old = self.folder / f"step-{step:012d}"
            doomed = self.folder / f"{files.TEMPORARY_PREFIX}retired-{step:012d}-{os.getpid()}"
            old.rename(doomed)
            shutil.rmtree(doomed)

    def restore(self, template: PyTree, step: int | None = None) -> Restored:
        """Return checkpoint `step` (default: the newest) in the shape of `template`.

        Array leaves of `template` may be arrays or `jax.ShapeDtypeStruct`s; a sharding on them is where the value goes,
        so that a state can be restored on another device count or mesh. Raises `CheckpointMismatchError`, naming both
        sides, for damage and for anything that was saved for something else; a damaged checkpoint is never skipped in
        silence for an older one.
        """
        require_x64()
        steps = self.steps()
        if not steps or (step is not None and step not in steps):
            raise CheckpointMismatchError(f"{self.folder}: no checkpoint {'' if step is None else step} here")
        number = steps[-1] if step is None else step
        where = self.folder / f"step-{number:012d}"
        files.check_manifest(where)
        metadata = files.read_canonical(where / METADATA)
        try:
            saved = self._compare_metadata(metadata, number, where)
            notes = dict(metadata["notes"])
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            if isinstance(error, CheckpointMismatchError):
                raise
            raise CheckpointMismatchError(f"{where / METADATA}: not a checkpoint's metadata ({error})") from None
        wanted = flatten(template)
        compare(saved, wanted, str(where))
        arrays = _orbax_restore(where / ARRAYS, _targets(saved, wanted, where)) if wanted.arrays else {}
        state = rebuild(template, saved, arrays)
        _check_closure(state, where)
        return Restored(state, number, notes)

    def _compare_metadata(self, metadata: Any, step: int, where: Path) -> Leaves:
        pairs = [
            ("checkpoint schema", metadata.get("schema_version"), SCHEMA),
            ("engine version", metadata.get("engine_version"), __version__),
            ("step", metadata.get("step"), step),
        ]
        saved = metadata["digests"]
        pairs += [(name, saved.get(name), self._digests.get(name)) for name in sorted({*saved, *self._digests})]
        for name, left, right in pairs:
            if left != right:
                raise CheckpointMismatchError(f"{where}: {name} is {left} in the checkpoint, {right} here")
        records = (LeafRecord(**{**leaf, "shape": tuple(leaf["shape"])}) for leaf in metadata["leaves"])
        return Leaves(metadata["structure"], tuple(records), {})


def _to_host(array: Any) -> np.ndarray:
    if isinstance(array, jax.Array) and not array.is_fully_addressable:
        raise ConfigError("this process does not hold the whole array; gather it, or save each process's own rows")
    return np.array(array)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Orbax's own log, tracebacks included, off the terminal: what it raises is reported by us, in one line."""
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def _orbax_save(folder: Path, arrays: Mapping[str, np.ndarray]) -> None:
    checkpointer = _checkpointer()
    try:
        with _quiet():
            checkpointer.save(folder, dict(arrays))
    except (ValueError, RuntimeError) as error:  # tensorstore's own kinds for a full or failing disk
        raise OSError(f"Orbax: {str(error).splitlines()[0][:200]}") from error
    finally:
        checkpointer.close()


def _orbax_restore(folder: Path, targets: dict[str, jax.ShapeDtypeStruct]) -> Mapping[str, Any]:
    checkpointer = _checkpointer()
    try:
        with _quiet():
            restored: Mapping[str, Any] = checkpointer.restore(folder, targets)
    except (ValueError, RuntimeError, OSError, KeyError) as error:
        raise CheckpointMismatchError(f"{folder}: Orbax cannot read it: {str(error).splitlines()[0][:200]}") from error
    finally:
        checkpointer.close()
    return restored


def _checkpointer() -> Any:
    import orbax.checkpoint as orbax  # heavy, and only needed here

    # A store belongs to one process. Orbax would wait for all processes of a cluster, who know nothing of it.
    here = jax.process_index()
    alone = orbax.options.MultiprocessingOptions(
        primary_host=here, active_processes={here}, barrier_sync_key_prefix=f"process_{here}"
    )
    handler = orbax.StandardCheckpointHandler(multiprocessing_options=alone)
    return orbax.Checkpointer(handler, multiprocessing_options=alone)


def _targets(saved: Leaves, wanted: Leaves, where: Path) -> dict[str, jax.ShapeDtypeStruct]:
    default = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
    records = {f"leaf_{number:05d}": record for number, record in enumerate(saved.records)}
    targets = {}
    for name, leaf in wanted.arrays.items():
        sharding = getattr(leaf, "sharding", None) or default
        try:
            sharding.shard_shape(tuple(leaf.shape))
        except ValueError as error:
            reason = str(error).splitlines()[0]
            raise CheckpointMismatchError(
                f"{where}: leaf {records[name].path}: the sharding does not fit: {reason}"
            ) from None
        targets[name] = jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)
    return targets


def _check_closure(state: PyTree, where: Path) -> None:
    """Raise `CheckpointMismatchError` where a restored field state is no versor (its tolerance is the field's)."""
    from engine.field import FieldState, assert_closed, propagate

    nodes = jax.tree_util.tree_leaves(state, is_leaf=lambda node: isinstance(node, FieldState))
    for node in nodes:
        if isinstance(node, FieldState):
            _, closure = propagate(node, np.zeros((0, 16)))
            assert_closed(closure)
