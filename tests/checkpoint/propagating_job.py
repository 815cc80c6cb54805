"""A long propagation with checkpoints that says each step once it is saved, and dies at one of them if told to."""

import os
import signal
import sys
from pathlib import Path

import jax
import numpy as np

from engine.algebra import even_product, exp, translator
from engine.base.precision import enable_x64
from engine.checkpoint import CheckpointStore, propagate_checkpointed
from engine.checkpoint.segments import Propagated
from engine.field import FieldState

STEPS, EVERY = 40, 4
EUCLIDEAN = [0, 1, 4]
"""Places of e12, e13 and e23 among the bivectors."""
DIGESTS = {"safety_sha256": "0" * 64}


def propagation(folder: Path, die_at: int | None = None, *, asynchronous: bool = False) -> Propagated:
    """Propagate three states by 40 seeded versors, saving every 4; kill this very process once `die_at` is saved."""
    random = np.random.default_rng(11)
    bivectors = np.zeros((STEPS, 3, 10))
    bivectors[..., EUCLIDEAN] = random.normal(size=(STEPS, 3, 3))
    versors = even_product(translator(0.1 * random.normal(size=(STEPS, 3, 3))), exp(bivectors))
    start = FieldState(translator(random.normal(size=(3, 3))))

    def watch() -> None:
        steps = store.steps()
        if steps:
            sys.stdout.write(f"{steps[-1]}\n")
            sys.stdout.flush()
        if die_at is not None and steps and steps[-1] >= die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    with CheckpointStore(folder, digests=DIGESTS, keep=2, guard=watch) as store:
        return propagate_checkpointed(
            store, start, versors, every=EVERY, key=jax.random.key(5), asynchronous=asynchronous
        )


if __name__ == "__main__":
    enable_x64()
    propagation(Path(sys.argv[1]), int(sys.argv[2]))
