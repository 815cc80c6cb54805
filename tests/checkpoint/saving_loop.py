"""A process that saves forever and says, line by line, what has been reported as saved. It is there to be killed."""

import sys

import numpy as np

from engine.base.precision import enable_x64
from engine.checkpoint import CheckpointStore


def main(folder: str) -> None:
    """Save steps after the newest one until killed; print each step once its save has returned."""
    enable_x64()
    with CheckpointStore(folder, digests={"safety_sha256": "0" * 64}, keep=3) as store:
        step = (store.steps() or (-1,))[-1] + 1
        while True:
            store.save(step, {"value": np.full((8, 16), float(step))})
            sys.stdout.write(f"{step}\n")
            sys.stdout.flush()
            step += 1


if __name__ == "__main__":
    main(sys.argv[1])
