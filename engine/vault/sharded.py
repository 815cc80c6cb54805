"""Recall from a vault whose entries are spread over devices: each device recalls, and the few found are merged."""

import jax
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int

from engine.base.errors import DeviceError
from engine.vault.recall import Query, Table, nearest, padded_capacity


def require_divisible(capacity: int, devices: int) -> None:
    """Raise `DeviceError` unless every device holds whole blocks of the entries."""
    share, rest = divmod(capacity, devices)
    if rest or share == 0 or padded_capacity(share) != share:
        raise DeviceError(
            f"a vault of capacity {capacity} cannot be spread over {devices} devices: "
            f"ask for a capacity of {devices} times {padded_capacity(max(share, 1))}"
        )


def entry_axis(array: Array) -> tuple[Mesh, str] | None:
    """Mesh and axis name over which the rows of a concrete array are spread, or None if they are not."""
    sharding = None if isinstance(array, jax.core.Tracer) else array.sharding
    if not isinstance(sharding, NamedSharding) or not sharding.spec or sharding.spec[0] is None:
        return None
    axis = sharding.spec[0]
    return (sharding.mesh, axis) if isinstance(axis, str) and isinstance(sharding.mesh, Mesh) else None


def nearest_sharded(
    table: Table, query: Query, count: int, mesh: Mesh, axis: str
) -> tuple[Int[Array, "queries k"], Float[Array, "queries k"]]:
    """`nearest` over a table whose entries are spread over `axis` of `mesh`: equal to it entry by entry."""

    def local(whole: Query, *columns: Array) -> tuple[Array, Array]:
        entries = columns[-1].shape[0]
        index, rank = nearest(Table(*columns), whole, min(count, entries))
        index = index + lax.axis_index(axis).astype(index.dtype) * entries
        indices = lax.all_gather(index, axis, axis=1, tiled=True)
        ranks = lax.all_gather(rank, axis, axis=1, tiled=True)
        ranks, indices = lax.sort((ranks, indices), dimension=1, num_keys=2)
        return indices[:, :count], ranks[:, :count]

    everywhere, rows = PartitionSpec(), PartitionSpec(axis)
    specs = (everywhere, PartitionSpec(None, axis), rows, rows, rows)
    # The merge is the same on every device, which the analysis of replication cannot see through the sort.
    merged = jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=everywhere, check_vma=False)
    return merged(query, table.coordinates, table.motors, table.marks, table.eligible)
