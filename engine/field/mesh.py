"""Batches over devices: a mesh with one data axis, rows padded and masked, and streams of rows larger than memory.

Every row moves alone, so that spreading rows changes nothing but the shapes that are compiled: results agree with those
of one device to the rounding of a different instruction order (docs/decisions/0083-rows-over-a-mesh.md).
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from engine.algebra.arguments import MotorLike, coefficients
from engine.base.errors import ConfigError, DeviceError, ShapeError, VersorClosureError
from engine.field.closure import Closure, assert_closed
from engine.field.propagate import aligned, program_for
from engine.field.state import FieldState

AXIS = "data"
"""Name of the mesh axis that rows are spread over."""

T = TypeVar("T")


def data_mesh(count: int | None = None, devices: Sequence[jax.Device] | None = None) -> Mesh:
    """Return a mesh over the first `count` of `devices` (default: all devices of the default backend, all processes).

    Raises `DeviceError` where fewer are there than were asked for; never takes others instead.
    """
    found = list(jax.devices() if devices is None else devices)
    wanted = len(found) if count is None else count
    if not 1 <= wanted <= len(found):
        kinds = ", ".join(sorted({device.platform for device in found})) or "no"
        raise DeviceError(f"{wanted} devices were asked for; there are {len(found)} ({kinds})")
    return Mesh(np.array(found[:wanted]), (AXIS,), axis_types=(AxisType.Auto,))


def padded_rows(count: int, mesh: Mesh | None) -> int:
    """Return the least multiple of the mesh's size that holds `count` rows."""
    size = 1 if mesh is None else mesh.size
    return -(-count // size) * size


def place_rows(mesh: Mesh | None, tree: T) -> T:
    """Return a tree of arrays with their leading axis spread over the mesh, whose size divides it.

    The arrays are whole on every process of the mesh; each keeps its own rows of them. Without a mesh they go to the
    default device. Raises `ShapeError` where the rows cannot be shared out equally.
    """
    if mesh is None:
        return jax.tree.map(jnp.asarray, tree)
    for leaf in jax.tree.leaves(tree):
        if leaf.shape[0] % mesh.size:
            raise ShapeError(f"{leaf.shape[0]} rows cannot be shared out equally over {mesh.size} devices")
    return _place(mesh, tree, PartitionSpec(AXIS))


def place_whole(mesh: Mesh | None, tree: T) -> T:
    """Return a tree of arrays that every device of the mesh holds whole."""
    return jax.tree.map(jnp.asarray, tree) if mesh is None else _place(mesh, tree, PartitionSpec())


def _place(mesh: Mesh, tree: T, spec: PartitionSpec) -> T:
    sharding = NamedSharding(mesh, spec)

    def place(leaf: Any) -> jax.Array:
        host = np.asarray(leaf)
        return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])

    return jax.tree.map(place, tree)


def to_host(tree: T) -> T:
    """Return a tree as NumPy arrays, whole on every process."""
    if all(leaf.is_fully_addressable or leaf.is_fully_replicated for leaf in jax.tree.leaves(tree)):
        return jax.tree.map(np.asarray, tree)
    return multihost_utils.process_allgather(tree, tiled=True)


def propagate_over(mesh: Mesh, state: FieldState, versors: MotorLike) -> tuple[FieldState, Closure]:
    """`propagate` with the batch of `state` (..., 16) spread over `mesh`; `versors` are (steps, ..., 16).

    Each device runs the program of `propagate` on its own rows. A batch that the devices cannot share out equally is
    padded with the identity, which is cut off again. Raises what `propagate` does.
    """
    state, rows = aligned(state, versors)
    batch = state.motor.shape[:-1]
    count, steps = math.prod(batch), rows.shape[0]
    size = padded_rows(max(count, 1), mesh)
    shared = math.prod(rows.shape[1:-1]) == 1
    motors = _padded(np.asarray(state.motor).reshape(count, 16), size)
    if shared:
        moves = place_whole(mesh, np.asarray(rows).reshape(steps, 1, 16))
    else:
        whole = np.broadcast_to(np.asarray(rows), (steps, *batch, 16)).reshape(steps, count, 16)
        moves = _place(mesh, np.stack([_padded(step, size) for step in whole]), PartitionSpec(None, AXIS))
    moved, closure = _program_over(mesh, shared)(place_rows(mesh, motors), moves)
    trimmed = jax.tree.map(lambda leaf: leaf[:count].reshape(*batch, *leaf.shape[1:]), (moved, closure))
    return FieldState(trimmed[0]), trimmed[1]


@functools.lru_cache(maxsize=64)
def _program_over(mesh: Mesh, shared: bool) -> Callable[..., tuple[jax.Array, Closure]]:
    """Return the compiled propagation of (rows, 16) by (steps, rows or 1, 16) over a mesh; the state is donated."""
    spread = PartitionSpec(AXIS)

    def local(motor: jax.Array, versors: jax.Array) -> tuple[jax.Array, Closure]:
        state, closure = program_for(FieldState(motor), versors)
        return state.motor, closure

    moves = PartitionSpec() if shared else PartitionSpec(None, AXIS)
    mapped = jax.shard_map(local, mesh=mesh, in_specs=(spread, moves), out_specs=spread, check_vma=False)
    return jax.jit(mapped, donate_argnums=0)


def _padded(motors: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    rows = np.zeros((size, 16))
    rows[:, 0] = 1.0
    rows[: len(motors)] = motors
    return rows


def run_stream(
    motors: NDArray[Any],
    versors: MotorLike,
    *,
    out: NDArray[Any] | None = None,
    chunk: int = 65_536,
    mesh: Mesh | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[NDArray[np.float64], Closure]:
    """Move `motors` (rows, 16), which may be a memory map larger than memory, by `versors` (steps, 16 or rows, 16).

    Rows pass through the devices `chunk` at a time, in buffers that are donated and therefore used again: memory is
    bounded by two chunks and the closure, six numbers a row. `out` (rows, 16) takes the results and may be a memory
    map, or `motors` itself; without it one is made. `progress(done, rows)` is called after each chunk. The last chunk
    is padded with the identity: one shape is compiled.

    Returns `out` and the closure, which has been asserted: `VersorClosureError` names the sample and the step, and no
    row of its chunk is written. Raises `ShapeError`, `PrecisionError` and, for a chunk below 1, `ConfigError`.
    """
    moves: jax.Array = coefficients(versors, 16, "versors")
    out = np.empty((len(motors), 16)) if out is None else out
    _require_fitting(motors, moves, out, chunk)
    mesh = data_mesh(1, jax.local_devices()) if mesh is None else mesh
    size = padded_rows(min(chunk, max(len(motors), 1)), mesh)
    shared = moves.ndim == 2 or moves.shape[1] == 1
    program = _program_over(mesh, shared)
    closures: list[Closure] = []

    def receive(begin: int, end: int, result: tuple[jax.Array, Closure]) -> None:
        moved, closure = to_host(result)
        closure = jax.tree.map(lambda leaf: leaf[: end - begin], closure)
        _assert_rows(closure, begin)
        out[begin:end] = moved[: end - begin]
        closures.append(closure)
        if progress is not None:
            progress(end, len(motors))

    running: tuple[int, int, tuple[jax.Array, Closure]] | None = None
    for begin in range(0, len(motors), size):
        end = min(begin + size, len(motors))
        rows = place_rows(mesh, _padded(np.asarray(motors[begin:end]), size))
        started = (begin, end, program(rows, _moves_of(moves, begin, end, size, mesh)))
        if running is not None:
            receive(*running)
        running = started
    if running is not None:
        receive(*running)
    if not closures:
        closures.append(propagate_over(mesh, FieldState(motors), versors)[1])
    return out, _joined(closures)


def _require_fitting(motors: NDArray[Any], moves: jax.Array, out: NDArray[Any], chunk: int) -> None:
    if chunk < 1:
        raise ConfigError(f"chunk={chunk}: 1 or more rows are needed")
    if motors.ndim != 2 or motors.shape[1] != 16 or moves.ndim not in (2, 3):
        raise ShapeError(f"motors {motors.shape} and versors {moves.shape}; (rows, 16) and (steps, 16) are needed")
    if moves.ndim == 3 and moves.shape[1] not in (1, len(motors)):
        raise ShapeError(f"versors are given for {moves.shape[1]} rows, motors for {len(motors)}")
    if out.shape != motors.shape or out.dtype != np.float64:
        raise ShapeError(f"out is {out.dtype}{list(out.shape)}; float64{list(motors.shape)} is needed")


def _moves_of(moves: jax.Array, begin: int, end: int, size: int, mesh: Mesh) -> jax.Array:
    """Return the versors of rows `begin` to `end`, padded like them."""
    if moves.ndim == 2 or moves.shape[1] == 1:
        return place_whole(mesh, moves.reshape(moves.shape[0], 1, 16))
    padded: Any = np.stack([_padded(step, size) for step in np.asarray(moves[:, begin:end])])
    return _place(mesh, padded, PartitionSpec(None, AXIS))


def _assert_rows(closure: Closure, begin: int) -> None:
    """Raise the `VersorClosureError` of a chunk with its sample counted from the beginning of the stream."""
    try:
        assert_closed(jax.tree.map(jnp.asarray, closure))
    except VersorClosureError as error:
        raise VersorClosureError(
            f"in the rows from {begin}: {error}",
            sample=begin + (error.sample or 0),
            step=error.step,
            residual=error.residual,
            norm=error.norm,
            cause=error.cause,
        ) from error


def _joined(closures: Sequence[Closure]) -> Closure:
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *closures)
