"""Long propagations in segments, with a checkpoint after each: a run that was stopped goes on where it was.

The host drives `engine.field.propagate` over `every` versors at a time. Each segment's closure is asserted before
anything of it is saved, so that no checkpoint ever holds a state that left the versor manifold. A run that was resumed
makes the same calls on the same bits as one that was not, and ends with the same bits on the same platform. Another
`every` is another run: states leave the resident layout at the end of a segment, which rounds their coefficients once.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from engine.algebra.arguments import MotorLike, coefficients
from engine.base.errors import CheckpointMismatchError, ConfigError, VersorClosureError
from engine.checkpoint.store import CheckpointStore, Restored
from engine.field import Closure, FieldState, assert_closed, propagate
from engine.field.closure import measure_closure


class Propagated(NamedTuple):
    """What a checkpointed propagation returns: the state, the asserted closure, the key, and how it came about."""

    state: FieldState
    closure: Closure
    key: Array | None
    resumed_at: int
    """Step at which this call began: 0, or the newest checkpoint's."""
    segments: int
    """Segments that this call propagated itself."""


def propagate_checkpointed(
    store: CheckpointStore,
    state: FieldState,
    versors: MotorLike,
    *,
    every: int,
    key: Array | None = None,
    asynchronous: bool = False,
    notes: Mapping[str, Any] | None = None,
) -> Propagated:
    """Move `state` (..., 16) by `versors` (steps, ..., 16) like `engine.field.run`, saving every `every` steps.

    Begins at the newest checkpoint of `store` where there is one. `key` is a PRNG key that is saved and returned with
    the state; `notes` (the resolved configuration, say) are kept beside each checkpoint. With `asynchronous` a segment
    runs while the one before is written; every save has ended when this returns or raises.

    Raises `CheckpointMismatchError`, naming both sides, where the checkpoint belongs to another start, other versors,
    another `every` or key, or to what the store itself compares; `VersorClosureError` as `run` does; `ConfigError` for
    `every` below 1.
    """
    if every < 1:
        raise ConfigError(f"every={every}: a checkpoint every 1 or more steps is needed")
    rows = coefficients(versors, 16, "versors")
    motor = coefficients(state.motor, 16, "state.motor")
    batch = jnp.broadcast_shapes(motor.shape[:-1], rows.shape[1:-1])
    now = FieldState(jnp.broadcast_to(motor, (*batch, 16)))
    identity = {"every": every, "inputs_sha256": _digest(now.motor, rows, key)}
    closure = measure_closure(now.motor)
    assert_closed(closure)
    begin = 0
    if store.steps():
        restored = store.restore({"state": now, "closure": closure, "key": key})
        _require_same_run(restored, identity, store)
        now, closure, key, begin = (*(restored.state[name] for name in ("state", "closure", "key")), restored.step)
    segments = 0
    try:
        for start in range(begin, rows.shape[0], every):
            end = min(start + every, rows.shape[0])
            now, found = propagate(now, rows[start:end])
            _assert_segment(found, start)
            closure = _joined(closure, found)
            segments += 1
            pending = store.save_async(
                end, {"state": now, "closure": closure, "key": key}, {**(notes or {}), **identity}
            )
            if not asynchronous:
                pending.wait()
    finally:
        store.wait()
    return Propagated(now, closure, key, begin, segments)


def _digest(motor: Array, versors: Array, key: Array | None) -> str:
    """Return the SHA-256 over all that a propagation is a function of."""
    total = hashlib.sha256()
    for array in (motor, versors, *(() if key is None else (jax.random.key_data(key),))):
        value = np.ascontiguousarray(np.asarray(array))
        total.update(f"{value.dtype.str}{value.shape}".encode())
        total.update(value.tobytes())
    return total.hexdigest()


def _require_same_run(restored: Restored, identity: Mapping[str, Any], store: CheckpointStore) -> None:
    for name, value in identity.items():
        if restored.notes.get(name) != value:
            raise CheckpointMismatchError(
                f"{store.folder}, step {restored.step}: {name} is {restored.notes.get(name)} in the checkpoint, "
                f"{value} here"
            )


def _assert_segment(closure: Closure, start: int) -> None:
    """Raise the `VersorClosureError` of a segment with its step counted from the beginning of the run."""
    try:
        assert_closed(closure)
    except VersorClosureError as error:
        step = start + (error.step or 0)
        raise VersorClosureError(
            f"in the segment after step {start}: {error}",
            sample=error.sample,
            step=step,
            residual=error.residual,
            norm=error.norm,
            cause=error.cause,
        ) from error


def _joined(before: Closure, after: Closure) -> Closure:
    """The closure of a run whose two parts are both closed: the larger of each measure, no violation."""
    return Closure(
        max_residual=jnp.maximum(before.max_residual, after.max_residual),
        first_violation=after.first_violation,
        ok=before.ok & after.ok,
        norm=jnp.maximum(before.norm, after.norm),
        versor_norm=jnp.maximum(before.versor_norm, after.versor_norm),
        versors_closed=before.versors_closed & after.versors_closed,
    )
