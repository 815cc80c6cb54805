"""Digests of what a run may not change: value axes, policy, vocabulary and operators, over their actual bytes."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import jax
import numpy as np

from engine.identity import IdentityManifold


def digest_arrays(tree: Any) -> str:
    """Return the SHA-256 over dtype, shape and bytes of every array of a tree, in the tree's own order."""
    total = sha256()
    for leaf in jax.tree.leaves(tree):
        array = np.ascontiguousarray(np.asarray(leaf))
        total.update(f"{array.dtype.str}{array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def digest_values(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of plain values in canonical JSON (sorted keys, exact floats)."""
    return sha256(json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()).hexdigest()


def digest_manifold(manifold: IdentityManifold) -> str:
    """Return the digest of a manifold's axes with their names; thresholds and boundaries are policy."""
    names = digest_values({"pack": manifold.pack_id, "axes": list(manifold.axis_ids)})
    return sha256((names + digest_arrays(manifold.axes)).encode()).hexdigest()
