"""An immutable table of field states: `store` returns a new vault, `recall` finds the nearest entries exactly."""

import math
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Float, Int, UInt64
from numpy.typing import NDArray

from engine.algebra import apply, embed_point, point_coordinates
from engine.algebra.arguments import MotorLike, coefficients, first_failure, is_concrete
from engine.base.errors import ConfigError, DeviceError, PointAtInfinityError, ShapeError, TracedCheckError
from engine.base.precision import require_float64
from engine.field.closure import assert_closed, measure_closure
from engine.vault.recall import ABSENT, SELF_MATCH, Query, Table, motor_marks, nearest, padded_capacity
from engine.vault.sharded import entry_axis, nearest_sharded, require_divisible

WHOLE = 1 << 16
"""Entries from which a store is one program of its own. Fewer go in parts of powers of two, so that storing now this
many and now that many compiles at most two programs for each power: one that copies the table, one in its place."""


class Status(IntEnum):
    """What a review found about an entry. Only coherent entries count as evidence when asked so."""

    UNREVIEWED = 0
    COHERENT = 1
    INCOHERENT = 2


AnyArray: TypeAlias = Array | NDArray[np.float64]


class Recall(eqx.Module):
    """What was recalled, nearest first: (..., k) entries of the vault.

    `index` is the entry's place in the vault, -1 where fewer than k may be recalled; there the distance is infinite
    and the other fields are zero. `distance` is between points, in the unit of their coordinates. `exact` marks the
    query itself: its motor or the negative, which is the same motion.
    """

    index: Int[Array, "*batch k"]
    distance: Float[Array, "*batch k"]
    exact: Bool[Array, "*batch k"]
    motor: Float[Array, "*batch k 16"]
    point: Float[Array, "*batch k 3"]
    status: Int[Array, "*batch k"]
    step: Int[Array, "*batch k"]


class Vault(eqx.Module):
    """Field states with the point each carries the origin to, its review status and the step it was stored at.

    Arrays have `capacity` rows, of which the first `count` are entries, in the order they were stored. Storing into a
    full vault doubles the capacity: programs compiled for smaller vaults stay, and nothing is indexed or rebuilt.
    """

    motors: Float[Array, "capacity 16"]
    marks: UInt64[Array, "capacity"]
    coordinates: Float[Array, "3 capacity"]
    statuses: Int[Array, "capacity"]
    steps: Int[Array, "capacity"]
    count: Int[Array, ""]

    @classmethod
    def empty(cls, capacity: int) -> "Vault":
        """A vault for at least `capacity` entries. Raises `ConfigError` unless that is a positive integer."""
        if isinstance(capacity, bool) or not isinstance(capacity, int | np.integer) or capacity < 1:
            raise ConfigError(f"a vault needs a capacity of at least 1, not {capacity!r}")
        rows = padded_capacity(int(capacity))
        return cls(
            motors=jnp.zeros((rows, 16)),
            marks=jnp.zeros(rows, jnp.uint64),
            coordinates=jnp.zeros((3, rows)),
            statuses=jnp.zeros(rows, jnp.int64),
            steps=jnp.zeros(rows, jnp.int64),
            count=jnp.zeros((), jnp.int64),
        )

    @property
    def capacity(self) -> int:
        """Entries that fit before the vault grows."""
        return self.motors.shape[0]

    @property
    def points(self) -> Float[Array, "capacity 3"]:
        """Coordinates of the entries' points."""
        return self.coordinates.T

    def __len__(self) -> int:
        return int(self.count)

    def store(
        self, motor: MotorLike, *, status: Status | str = Status.UNREVIEWED, step: Any = 0, donate: bool = False
    ) -> "Vault":
        """A vault with `motor`, (16,) or (entries, 16), appended; this one is left alone unless it is donated.

        `donate` hands this vault's arrays over to the new one, which then costs what is stored and not what is there.
        Whatever still holds this vault cannot use it afterwards: JAX refuses a deleted array with a `RuntimeError`.

        `step`: the step of the run a state comes from, one integer or one per entry. Raises `VersorClosureError` for a
        motor off the manifold, `PointAtInfinityError` for one that carries the origin to infinity, `PrecisionError` and
        `ShapeError`; `TracedCheckError` inside jit, where those checks would be dropped.
        """
        motors, points = _entries(motor)
        entries = motors.shape[0]
        code = np.full(entries, _status(status), np.int64)
        steps = np.broadcast_to(np.asarray(step, np.int64), (entries,))
        count = len(self) + entries
        vault = self
        if count > self.capacity:
            doublings = int(np.ceil(np.log2(count / self.capacity)))
            vault = grow_program(self, padded_capacity(self.capacity * 2**doublings))
        for part in _parts(entries):
            program = donating_program if donate or part.start else store_program
            vault = program(vault, *(jnp.asarray(values[part]) for values in (motors, points, code, steps)))
        return vault

    def review(self, index: int, status: Status | str) -> "Vault":
        """A vault in which the entry at `index` has another status. Raises `ConfigError` if there is no such entry."""
        if not 0 <= index < len(self):
            raise ConfigError(f"there is no entry {index}: the vault holds {len(self)}")
        return eqx.tree_at(lambda vault: vault.statuses, self, self.statuses.at[index].set(_status(status)))

    def recall(self, query: Any, k: int, *, coherent_only: bool = False) -> Recall:
        """The `k` entries nearest to `query`, a motor (..., 16) or a point (..., 3); see `Recall` for the shapes.

        Exact by the distance of points; the query's own motor comes first, ties go to the lowest index. With
        `coherent_only` only entries reviewed as coherent are found. Raises `VersorClosureError` for a motor off the
        manifold, `PointAtInfinityError` for a point that is not finite, `PrecisionError`, `ShapeError`, and
        `ConfigError` for k below 1. While tracing nothing is raised, and a query that is not finite recalls nothing.
        """
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ConfigError(f"k must be a positive integer, not {k!r}")
        return recall_program(self, _query(query), jnp.asarray(coherent_only), int(k), entry_axis(self.motors))

    def spread(self, mesh: Mesh, axis: str) -> "Vault":
        """This vault with its entries spread over the devices of `axis`; recall then runs on each of them.

        Raises `DeviceError` for an unknown axis or a capacity whose blocks the devices do not divide.
        """
        if axis not in mesh.shape:
            raise DeviceError(f"the mesh has no axis {axis!r}: its axes are {', '.join(map(str, mesh.axis_names))}")
        require_divisible(self.capacity, mesh.shape[axis])

        rows, columns, whole = (
            NamedSharding(mesh, spec) for spec in (PartitionSpec(axis), PartitionSpec(None, axis), PartitionSpec())
        )
        return Vault(
            motors=jax.device_put(self.motors, rows),
            marks=jax.device_put(self.marks, rows),
            coordinates=jax.device_put(self.coordinates, columns),
            statuses=jax.device_put(self.statuses, rows),
            steps=jax.device_put(self.steps, rows),
            count=jax.device_put(self.count, whole),
        )


def carried_points(motor: Float[Array, "*batch 16"]) -> Float[Array, "*batch 3"]:
    """The points to which motors carry the origin; not finite where that is infinity."""
    return point_coordinates(apply(motor, jnp.broadcast_to(embed_point(jnp.zeros(3)), (*motor.shape[:-1], 32))))


_carried_points = jax.jit(carried_points)


def _status(status: Status | str) -> int:
    if isinstance(status, str):
        names = {member.name.lower(): member for member in Status}
        if status not in names:
            raise ConfigError(f"unknown review status {status!r}: one of {', '.join(names)}")
        return int(names[status])
    return int(Status(status))


def _entries(motor: MotorLike) -> tuple[Float[AnyArray, "entries 16"], Float[AnyArray, "entries 3"]]:
    """Motors that may be stored, as rows, and their points; the checks are made now or not at all."""
    motors = coefficients(motor, 16, "motor")
    if motors.ndim > 2:
        raise ShapeError(f"motor has shape {motors.shape}; (16,) or (entries, 16) can be stored")
    if not is_concrete(motors):
        raise TracedCheckError("a vault checks what it stores on the host: call store outside jit, vmap and grad")
    rows: AnyArray = motors.reshape(-1, 16)
    if (count := rows.shape[0]) <= WHOLE:
        # On the host, where cutting compiles nothing. The identity fills up: it is closed, and its point finite.
        filling = np.zeros((_power_of_two(count) - count, 16))
        filling[:, 0] = 1.0
        rows = np.concatenate([np.asarray(rows), filling])
    if not jnp.all(measure_closure(rows).ok):
        assert_closed(measure_closure(rows[:count]))
    points = _carried_points(jnp.asarray(rows))
    _require_finite(points)
    if count <= WHOLE:
        return rows[:count], np.asarray(points)[:count]
    return rows, points


def _power_of_two(count: int) -> int:
    """The least power of two from `count`."""
    return 1 << max(count - 1, 0).bit_length()


def _parts(count: int) -> Iterator[slice]:
    """`count` entries in parts of powers of two, the largest first; many at once."""
    start = 0
    while start < count:
        left = count - start
        size = left if left > WHOLE else 1 << (left.bit_length() - 1)
        yield slice(start, start + size)
        start += size


def _query(query: Any) -> Query:
    value = require_float64(query, "query")
    if value.ndim == 0 or value.shape[-1] not in (3, 16):
        raise ShapeError(f"query has shape {value.shape}; a motor (..., 16) or a point (..., 3) is needed")
    if value.shape[-1] == 3:
        found = Query(value)
    else:
        if is_concrete(value):
            assert_closed(measure_closure(value))
        found = Query(_carried_points(value), value, motor_marks(value)[..., None])
    if is_concrete(value):
        _require_finite(found.point)
    return found


def _require_finite(points: Float[Array, "*batch 3"]) -> None:
    if (place := first_failure(~jnp.all(jnp.isfinite(points), axis=-1))) is not None:
        raise PointAtInfinityError(f"the origin is carried to infinity, or the point is not finite, at index {place}")


def _store(
    vault: Vault,
    motors: Float[Array, "entries 16"],
    points: Float[Array, "entries 3"],
    statuses: Int[Array, "entries"],
    steps: Int[Array, "entries"],
) -> Vault:
    start = vault.count
    return Vault(
        motors=lax.dynamic_update_slice_in_dim(vault.motors, motors, start, axis=0),
        marks=lax.dynamic_update_slice_in_dim(vault.marks, motor_marks(motors), start, axis=0),
        coordinates=lax.dynamic_update_slice_in_dim(vault.coordinates, points.T, start, axis=1),
        statuses=lax.dynamic_update_slice_in_dim(vault.statuses, statuses, start, axis=0),
        steps=lax.dynamic_update_slice_in_dim(vault.steps, steps, start, axis=0),
        count=start + motors.shape[0],
    )


def _grow(vault: Vault, capacity: int) -> Vault:
    extra = capacity - vault.capacity
    return Vault(
        motors=jnp.pad(vault.motors, ((0, extra), (0, 0))),
        marks=jnp.pad(vault.marks, (0, extra)),
        coordinates=jnp.pad(vault.coordinates, ((0, 0), (0, extra))),
        statuses=jnp.pad(vault.statuses, (0, extra)),
        steps=jnp.pad(vault.steps, (0, extra)),
        count=vault.count,
    )


def _recall(
    vault: Vault, query: Query, coherent_only: Bool[Array, ""], k: int, spread: tuple[Mesh, str] | None
) -> Recall:
    eligible = jnp.arange(vault.capacity) < vault.count
    eligible = eligible & (~coherent_only | (vault.statuses == Status.COHERENT))
    batch = query.point.shape[:-1]
    flat = jax.tree.map(lambda leaf: leaf.reshape(math.prod(batch), leaf.shape[-1]), query)
    found = min(k, vault.capacity)
    table = Table(vault.coordinates, vault.motors, vault.marks, eligible)
    index, rank = nearest(table, flat, found) if spread is None else nearest_sharded(table, flat, found, *spread)
    short = ((0, 0), (0, k - found))
    index, rank = jnp.pad(index, short), jnp.pad(rank, short, constant_values=ABSENT)
    return _recalled(vault, index.reshape(*batch, k), rank.reshape(*batch, k))


def _recalled(vault: Vault, index: Int[Array, "*batch k"], rank: Float[Array, "*batch k"]) -> Recall:
    present = rank < ABSENT
    exact = rank == SELF_MATCH
    distance = jnp.where(exact, 0.0, jnp.where(present, jnp.sqrt(jnp.abs(rank)), jnp.inf))

    def rows(values: Array) -> Array:
        picked = values[index]
        return jnp.where(present.reshape(*present.shape, *(1,) * (picked.ndim - present.ndim)), picked, 0)

    return Recall(
        index=jnp.where(present, index, -1),
        distance=distance,
        exact=exact,
        motor=rows(vault.motors),
        point=rows(vault.points),
        status=rows(vault.statuses),
        step=rows(vault.steps),
    )


store_program = jax.jit(_store)
"""The compiled program behind `Vault.store`; its no-repair proof takes both arrays of motors as the state."""

donating_program = jax.jit(_store, donate_argnums=0)
"""The same, in the arrays of the vault that is handed in."""

grow_program = jax.jit(_grow, static_argnums=1)
recall_program = jax.jit(_recall, static_argnums=(3, 4))
