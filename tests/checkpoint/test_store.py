"""Checkpoints: what comes back is what went in, and nothing else is ever restored."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from engine.base.errors import (
    CheckpointLockedError,
    CheckpointMismatchError,
    CheckpointWriteError,
    ConfigError,
    PrecisionError,
    VersorClosureError,
)
from engine.checkpoint import CheckpointStore
from engine.field import FieldState

DIGESTS = {"safety_sha256": "a" * 64, "identity_sha256": "b" * 64}


class Walker(eqx.Module):
    position: jax.Array
    key: jax.Array
    empty: jax.Array
    count: int
    scale: float
    name: str
    mode: str = eqx.field(static=True)


def walker(mode: str = "plain") -> Walker:
    return Walker(
        position=jnp.arange(32.0).reshape(2, 16),
        key=jax.random.key(7),
        empty=jnp.zeros((0, 16)),
        count=3,
        scale=0.1,
        name="truth",
        mode=mode,
    )


def same(left: Any, right: Any) -> bool:
    def bits(leaf: Any) -> Any:
        if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        return (type(leaf).__name__, np.asarray(leaf).dtype, np.asarray(leaf).shape, np.asarray(leaf).tobytes())

    return jax.tree.structure(left) == jax.tree.structure(right) and all(
        bits(a) == bits(b) for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    )


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    return CheckpointStore(tmp_path / "checkpoints", digests=DIGESTS)


def test_everything_comes_back_bit_for_bit(store: CheckpointStore) -> None:
    state = {"walker": walker(), "table": np.array([1, 2, 3]), "flags": jnp.array([True, False]), "none": None}
    with store:
        store.save(5, state, {"config": {"alpha": 0.5}})
    restored = store.restore(state)
    assert restored.step == 5
    assert restored.notes == {"config": {"alpha": 0.5}}
    assert same(restored.state, state)
    assert isinstance(restored.state["table"], np.ndarray)


def test_the_newest_is_the_default_and_retention_keeps_the_last(store: CheckpointStore) -> None:
    with store:
        for step in range(5):
            store.save(step, {"x": jnp.full(3, float(step))})
    assert store.steps() == (2, 3, 4)
    assert float(store.restore({"x": jnp.zeros(3)}).state["x"][0]) == 4.0
    assert float(store.restore({"x": jnp.zeros(3)}, 3).state["x"][0]) == 3.0


def test_an_asynchronous_save_keeps_the_values_of_its_moment(store: CheckpointStore) -> None:
    values = np.zeros((64, 16))
    with store:
        pending = store.save_async(0, {"x": values})
        values[:] = 1.0
        assert pending.wait().is_dir()
    assert not np.asarray(store.restore({"x": values}).state["x"]).any()


def test_leaving_the_store_waits_for_a_pending_save(store: CheckpointStore) -> None:
    with store:
        store.save_async(0, {"x": jnp.ones((256, 16))})
    assert store.steps() == (0,)


def test_a_failed_asynchronous_save_is_raised(store: CheckpointStore) -> None:
    def fail_to_close() -> None:
        with store:
            store.save(0, {"x": jnp.ones(2)})
            shutil.rmtree(store.folder)
            store.save_async(1, {"x": jnp.ones(2)})

    with pytest.raises(CheckpointWriteError, match="cannot be written"):
        fail_to_close()


def test_a_failure_that_was_reported_is_not_raised_again_on_close(store: CheckpointStore) -> None:
    with store:
        store.save(0, {"x": jnp.ones(2)})
        shutil.rmtree(store.folder)
        with pytest.raises(CheckpointWriteError):
            store.save(1, {"x": jnp.ones(2)})


def test_a_restore_goes_to_another_mesh(store: CheckpointStore) -> None:
    def placed(count: int) -> NamedSharding:
        return NamedSharding(Mesh(np.array(jax.devices()[:count]), ("data",)), PartitionSpec("data"))

    rows = jnp.arange(128.0).reshape(8, 16)
    with store:
        store.save(0, {"x": jax.device_put(rows, placed(4))})
    for count in (1, 2, 8):
        target = jax.ShapeDtypeStruct(rows.shape, rows.dtype, sharding=placed(count))
        value = store.restore({"x": target}).state["x"]
        assert value.sharding == placed(count)
        assert np.array_equal(value, rows)
    with pytest.raises(CheckpointMismatchError, match="sharding does not fit"):
        store.restore({"x": jax.ShapeDtypeStruct(rows.shape, rows.dtype, sharding=placed(3))})


TARGETS: dict[str, tuple[Any, str]] = {
    "float32 target": ({"x": jnp.zeros((4, 16), jnp.float32)}, r"float64\[4,16\] in the checkpoint, float32\[4,16\]"),
    "int target": ({"x": jnp.zeros((4, 16), jnp.int32)}, "int32"),
    "other shape": ({"x": jnp.zeros((5, 16))}, r"float64\[5,16\]"),
    "other name": ({"y": jnp.zeros((4, 16))}, r"\['x'\], the target \['y'\]"),
    "more leaves": ({"x": jnp.zeros((4, 16)), "y": jnp.zeros(1)}, "1 leaves, the target 2"),
    "a scalar": ({"x": 3}, "int in the target"),
    "a tuple": (((jnp.zeros((4, 16)),)), "target"),
}


@pytest.mark.parametrize("name", TARGETS)
def test_another_target_is_refused_by_name(store: CheckpointStore, name: str) -> None:
    target, message = TARGETS[name]
    with store:
        store.save(0, {"x": jnp.ones((4, 16))})
    with pytest.raises(CheckpointMismatchError, match=message):
        store.restore(target)


def test_other_static_fields_are_refused(store: CheckpointStore) -> None:
    with store:
        store.save(0, walker("plain"))
    with pytest.raises(CheckpointMismatchError, match="static fields differ"):
        store.restore(walker("mirrored"))


@pytest.mark.parametrize("digests", [{**DIGESTS, "identity_sha256": "c" * 64}, {"safety_sha256": "a" * 64}])
def test_other_packs_are_refused_naming_both(store: CheckpointStore, digests: dict[str, str]) -> None:
    with store:
        store.save(0, {"x": jnp.ones(2)})
    other = CheckpointStore(store.folder, digests=digests)
    with pytest.raises(CheckpointMismatchError, match=f"identity_sha256 is {'b' * 64} in the checkpoint"):
        other.restore({"x": jnp.ones(2)})


def test_without_x64_nothing_is_read(store: CheckpointStore) -> None:
    with store:
        store.save(0, {"x": jnp.ones(2)})
    with jax.enable_x64(False), pytest.raises(PrecisionError):
        store.restore({"x": np.ones(2)})


def test_a_state_that_is_no_versor_is_refused_after_the_restore(store: CheckpointStore) -> None:
    state = FieldState(motor=jnp.zeros((2, 16)).at[:, 0].set(1.0))
    broken = dataclasses.replace(state, motor=state.motor.at[1, 3].set(0.5))
    with store:
        store.save(0, state)
        store.save(1, broken)
    with pytest.raises(VersorClosureError):
        store.restore(state, 1)
    assert same(store.restore(state, 0).state, state)


def test_two_writers_never_write_together(store: CheckpointStore) -> None:
    other = CheckpointStore(store.folder, digests=DIGESTS)
    with store:
        store.save(0, {"x": jnp.ones(2)})
        with pytest.raises(CheckpointLockedError, match="another process"):
            other.save(1, {"x": jnp.ones(2)})
    with other:
        other.save(1, {"x": jnp.ones(2)})


def test_the_guard_is_asked_before_each_save(tmp_path: Path) -> None:
    def refuse() -> None:
        raise ConfigError("the safety pack changed")

    with CheckpointStore(tmp_path, digests=DIGESTS, guard=refuse) as store, pytest.raises(ConfigError):
        store.save(0, {"x": jnp.ones(2)})
    assert store.steps() == ()


BAD_USE: dict[str, Callable[[Path], object]] = {
    "no safety digest": lambda path: CheckpointStore(path, digests={}),
    "keep nothing": lambda path: CheckpointStore(path, digests=DIGESTS, keep=0),
    "a function leaf": lambda path: CheckpointStore(path, digests=DIGESTS).save(0, {"f": len}),
}


@pytest.mark.parametrize("name", BAD_USE)
def test_wrong_use_is_a_config_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError):
        BAD_USE[name](tmp_path)


def _files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_flipped_bit_in_any_file_is_refused(store: CheckpointStore) -> None:
    state = {"x": jnp.arange(64.0).reshape(4, 16), "key": jax.random.key(1)}
    with store:
        where = store.save(0, state)
    names = _files(where)
    assert len(names) >= 6
    random = np.random.default_rng(0)
    for name in names:
        path = where / name
        good = path.read_bytes()
        for position in {0, len(good) - 1, *random.integers(0, len(good), 6).tolist()}:
            bad = bytearray(good)
            bad[position] ^= 1 << int(random.integers(0, 8))
            path.write_bytes(bad)
            with pytest.raises(CheckpointMismatchError):
                store.restore(state)
        path.write_bytes(good)
    assert same(store.restore(state).state, state)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "emptied": lambda path: path.write_bytes(b""),
    "deleted": lambda path: path.unlink(),
    "a folder instead": lambda path: (path.unlink(), path.mkdir()),
    "a symlink instead": lambda path: (path.rename(f"{path}.moved"), path.symlink_to(f"{path}.moved")),
    "a FIFO instead": lambda path: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_of_any_name_is_refused(store: CheckpointStore, damage: str) -> None:
    state = {"x": jnp.arange(64.0).reshape(4, 16)}
    with store:
        where = store.save(0, state)
    for name in _files(where):
        shutil.copytree(where, where.with_name("kept"))
        DAMAGE[damage](where / name)
        with pytest.raises(CheckpointMismatchError):
            store.restore(state)
        shutil.rmtree(where)
        where.with_name("kept").rename(where)


def test_a_file_too_many_is_refused(store: CheckpointStore) -> None:
    with store:
        where = store.save(0, {"x": jnp.ones(2)})
    (where / "arrays" / "extra").write_text("x")
    with pytest.raises(CheckpointMismatchError, match="extra is in the folder"):
        store.restore({"x": jnp.ones(2)})


def test_a_hostile_manifest_is_refused_in_one_type(store: CheckpointStore) -> None:
    with store:
        where = store.save(0, {"x": jnp.ones(2)})
    for text in (
        "[]\n",
        "{}\n",
        '{"files":{}}\n',
        '{"files":[]}\n',
        '{"files":{"a":1}}\n',
        "[" * 100_000,
        "\ud800",
        "NaN",
    ):
        (where / "manifest.json").write_bytes(text.encode("utf-8", "surrogatepass"))
        with pytest.raises(CheckpointMismatchError):
            store.restore({"x": jnp.ones(2)})


def test_a_forged_metadata_record_is_refused_in_one_type(store: CheckpointStore) -> None:
    """The manifest is integrity, not authenticity: whoever rewrites both still meets the comparisons."""
    from engine.checkpoint import files

    state = {"x": jnp.ones(2)}
    with store:
        where = store.save(0, state)
    good = json.loads((where / "metadata.json").read_bytes())
    forgeries: list[dict[str, Any]] = [
        {**good, "leaves": []},
        {**good, "leaves": 3},
        {**good, "leaves": [{"path": "x"}]},
        {**good, "digests": []},
        {**good, "step": 9},
        {key: value for key, value in good.items() if key != "notes"},
        {**good, "engine_version": "9.9.9"},
        {**good, "structure": None},
    ]
    for forged in [*forgeries, [], None]:
        (where / "metadata.json").write_bytes(files.canonical(forged))
        (where / "manifest.json").unlink()
        files.write_manifest(where)
        with pytest.raises(CheckpointMismatchError):
            store.restore(state)


def test_leftovers_of_killed_writers_are_ignored_and_cleaned(store: CheckpointStore) -> None:
    leftover = store.folder / ".tmp-killed" / "arrays"
    leftover.mkdir(parents=True)
    assert store.steps() == ()
    with store:
        store.save(0, {"x": jnp.ones(2)})
    assert not leftover.parent.exists()
    assert store.steps() == (0,)


@pytest.mark.slow
def test_a_kill_at_any_moment_loses_nothing_reported(tmp_path: Path) -> None:
    """A short form of `make faults`, which does this 200 times."""
    random = np.random.default_rng(3)
    loop = [sys.executable, "-m", "tests.checkpoint.saving_loop", str(tmp_path)]
    for _ in range(4):
        with subprocess.Popen(loop, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            acknowledged = int(process.stdout.readline())
            for _ in range(int(random.integers(0, 6))):
                acknowledged = int(process.stdout.readline())
            process.kill()
            acknowledged = max([acknowledged, *map(int, process.stdout.read().split())])
        store = CheckpointStore(tmp_path, digests={"safety_sha256": "0" * 64})
        restored = store.restore({"value": np.zeros((8, 16))})
        assert restored.step >= acknowledged
        assert (restored.state["value"] == float(restored.step)).all()
