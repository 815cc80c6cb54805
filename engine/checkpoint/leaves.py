"""Between a pytree and what can be stored: arrays for Orbax, everything else as plain JSON records.

Orbax cannot save empty arrays, turns a typed PRNG key into uint32 and does not save static fields. Each leaf therefore
has a record (path, kind, dtype, shape), and only non-empty numeric arrays are handed to Orbax, under neutral names.
"""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from engine.base.errors import CheckpointMismatchError, ConfigError, PrecisionError

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


@dataclasses.dataclass(frozen=True)
class LeafRecord:
    """One leaf: where it stands, what it is, and its value where it is no stored array."""

    path: str
    kind: str
    """`array`, `empty` (an array without elements), `key` (typed PRNG key) or `scalar` (a Python value)."""
    dtype: str
    shape: tuple[int, ...]
    value: str | None = None

    def describe(self) -> str:
        """Return the leaf's type as a person would write it, for instance `float64[4,16]`."""
        shape = f"[{','.join(map(str, self.shape))}]" if self.kind != "scalar" else ""
        return f"{self.dtype}{shape}" if self.kind != "key" else f"{self.dtype}{shape} key"


@dataclasses.dataclass(frozen=True)
class Leaves:
    """A flattened tree: its structure (static fields included), a record per leaf, the arrays by stored name."""

    structure: str
    records: tuple[LeafRecord, ...]
    arrays: Mapping[str, Any]


def flatten(tree: PyTree) -> Leaves:
    """Flatten `tree`. Raises `ConfigError` for a leaf that cannot be stored."""
    paths, structure = jax.tree_util.tree_flatten_with_path(tree)
    records = []
    arrays = {}
    for number, (path, leaf) in enumerate(paths):
        record, stored = _record(jax.tree_util.keystr(path), leaf)
        records.append(record)
        if stored is not None:
            arrays[stored_name(number)] = stored
    return Leaves(_ADDRESS.sub("", str(structure)), tuple(records), arrays)


def stored_name(number: int) -> str:
    """Return the neutral name under which leaf `number` is handed to Orbax."""
    return f"leaf_{number:05d}"


def _record(path: str, leaf: Any) -> tuple[LeafRecord, Any]:
    if isinstance(leaf, bool | int | float | str):
        value = leaf.hex() if isinstance(leaf, float) else str(leaf)
        return LeafRecord(path, "scalar", type(leaf).__name__, (), value), None
    if not hasattr(leaf, "dtype") or not hasattr(leaf, "shape"):
        raise ConfigError(f"checkpoint leaf {path} is a {type(leaf).__name__}; only arrays, keys and scalars are saved")
    shape = tuple(int(size) for size in leaf.shape)
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        data = jax.eval_shape(jax.random.key_data, leaf)
        if isinstance(leaf, jax.Array):
            data = jax.random.key_data(leaf)
        return LeafRecord(path, "key", str(leaf.dtype), shape), None if 0 in shape else data
    if 0 in shape:
        return LeafRecord(path, "empty", str(leaf.dtype), shape), None
    return LeafRecord(path, "array", str(leaf.dtype), shape), leaf


def compare(saved: Leaves, wanted: Leaves, where: str) -> None:
    """Raise `CheckpointMismatchError`, naming both sides, unless `saved` fits `wanted` leaf by leaf."""
    if len(saved.records) != len(wanted.records):
        raise CheckpointMismatchError(
            f"{where}: the checkpoint has {len(saved.records)} leaves, the target {len(wanted.records)}"
        )
    for left, right in zip(saved.records, wanted.records, strict=True):
        if left.path != right.path:
            raise CheckpointMismatchError(f"{where}: the checkpoint has leaf {left.path}, the target {right.path}")
        if (left.kind, left.dtype, left.shape) != (right.kind, right.dtype, right.shape):
            raise CheckpointMismatchError(
                f"{where}: leaf {left.path} is {left.describe()} in the checkpoint, {right.describe()} in the target"
            )
    if saved.structure != wanted.structure:
        raise CheckpointMismatchError(
            f"{where}: tree structure or static fields differ: checkpoint {saved.structure}, target {wanted.structure}"
        )


def rebuild(template: PyTree, saved: Leaves, arrays: Mapping[str, Array]) -> PyTree:
    """Return `template`'s tree with the saved values in it; NumPy leaves come back as NumPy."""
    leaves, structure = jax.tree_util.tree_flatten(template)
    values = [
        _value(record, leaf, arrays.get(stored_name(number)))
        for number, (record, leaf) in enumerate(zip(saved.records, leaves, strict=True))
    ]
    return jax.tree_util.tree_unflatten(structure, values)


def _value(record: LeafRecord, leaf: Any, array: Any) -> Any:
    if record.kind == "scalar":
        assert record.value is not None
        return _SCALARS[record.dtype](record.value)
    if record.kind == "empty":
        empty = np.zeros(record.shape, np.dtype(record.dtype))
        return empty if isinstance(leaf, np.ndarray) else jnp.asarray(empty)
    if record.kind == "key" and array is None:
        return leaf
    if record.kind == "key":
        return jax.random.wrap_key_data(array, impl=_key_implementation(record.dtype))
    if str(array.dtype) != record.dtype:
        raise PrecisionError(f"leaf {record.path} was saved as {record.dtype} and read back as {array.dtype}")
    return np.asarray(array) if isinstance(leaf, np.ndarray) else array


_SCALARS: Mapping[str, Any] = {"bool": lambda text: text == "True", "int": int, "float": float.fromhex, "str": str}


def _key_implementation(dtype: str) -> str:
    """Return the implementation name in a key dtype such as `key<fry>`, as `wrap_key_data` expects it."""
    short = dtype.removeprefix("key<").removesuffix(">")
    for name in ("threefry2x32", "rbg", "unsafe_rbg"):
        if str(jax.eval_shape(lambda name=name: jax.random.key(0, impl=name)).dtype) == f"key<{short}>":
            return name
    raise CheckpointMismatchError(f"the checkpoint holds a PRNG key of unknown kind {dtype}")
