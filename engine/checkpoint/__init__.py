"""Checkpoints of field state: Orbax for the arrays; lock, rename, manifest and comparison are ours.

Orbax gives atomicity. What it does not give (integrity, dtype safety, empty arrays, a reported save that survives a
kill) is added here; see `docs/reliability.md`. Orbax itself is imported only when a checkpoint is written or read.
"""

from engine.checkpoint.segments import propagate_checkpointed as propagate_checkpointed
from engine.checkpoint.store import CheckpointStore as CheckpointStore
from engine.checkpoint.store import PendingSave as PendingSave
from engine.checkpoint.store import Restored as Restored
