"""The field-level twin: the same questions asked of trajectories in the field instead of texts.

*Pack divergence*: how far two packs carry the same prompts apart, between final motors (angle and displacement of the
relative motion) and between token paths, with a bootstrap over prompts as noise floor. *Shadow manifold*: axes found in
recorded trajectories alone, compared with the live pack's. The direction that a set of motions keeps best is the
leading
eigenvector of its mean rotation, symmetrised: `a·R a`, averaged over the motions, is largest there (DESIGN §4 reads an
axis by the same number). Axes have no sign here, so cosines are absolute.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64

from engine.algebra import apply, embed_point, point_coordinates
from engine.base.precision import require_float64
from engine.identity.manifold import infinity_map
from engine.instruments.compare import assign

MIN_TRAJECTORIES = 3
MAX_RECORDED = 512
"""Motors a record keeps: 64 KiB of float64."""

RANDOM_PACKS = 200
"""Random directions that anchor an axis cosine; two random directions in space have a mean absolute cosine of 1/2."""

AXIS_TOLERANCE = 1e-9
_LEVEL = 0.95
_RESAMPLES = 4999
_SEED = 20240229
# Coefficients of e_i ^ n_inf = e_i4 + e_i5 among the ten bivectors e12 e13 e14 e15 e23 e24 e25 e34 e35 e45: those of
# e_i4.
_INFINITY = (2, 5, 7)


@dataclass(frozen=True)
class Trajectories:
    """What one side left behind: a final motor and a token path for each prompt, in the order of the prompts."""

    name: str
    motors: Float64[np.ndarray, "prompts 16"]
    paths: tuple[tuple[int, ...], ...]

    @property
    def sha256(self) -> str:
        """Digest of motors and paths."""
        data = np.ascontiguousarray(self.motors).tobytes() + repr(self.paths).encode("ascii")
        return hashlib.sha256(data).hexdigest()

    def select(self, rows: Sequence[int]) -> "Trajectories":
        """Return the given rows."""
        return Trajectories(self.name, self.motors[list(rows)], tuple(self.paths[row] for row in rows))


def rotations(motors: Float64[np.ndarray, "rows 16"]) -> Float64[np.ndarray, "rows 3 3"]:
    """Return the rotation matrix of each motor, read off the directions at infinity; column i is the image of e_i."""
    images = np.asarray(infinity_map(require_float64(motors, "motors")))[..., list(_INFINITY)]
    return np.swapaxes(images, -1, -2)


def places(motors: Float64[np.ndarray, "rows 16"]) -> Float64[np.ndarray, "rows 3"]:
    """Return the point that each motor carries the origin to."""
    origin = jnp.broadcast_to(embed_point(jnp.zeros(3)), (len(motors), 32))
    return np.asarray(point_coordinates(apply(require_float64(motors, "motors"), origin)))


def path_distance(a: Sequence[int], b: Sequence[int]) -> float:
    """Return the edit distance of two token paths as a share of the longer one, in [0, 1]; 0 for two empty paths."""
    if not a and not b:
        return 0.0
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, start=1):
        previous, row[0] = row[0], i
        for j, right in enumerate(b, start=1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (left != right))
    return row[-1] / max(len(a), len(b))


def divergence(a: Trajectories, b: Trajectories) -> dict[str, Any]:
    """Return how far two sides carry the same prompts apart: means with 95% bootstrap intervals over prompts.

    `angle` (radians) and `displacement` (units of length) are those of the relative motion; `path` is a share.
    """
    relative = np.einsum("nji,njk->nik", rotations(a.motors), rotations(b.motors))
    # atan2 of sine and cosine keeps small angles, which arccos of the trace would lose; F and -F give one rotation.
    skew = relative - np.swapaxes(relative, -1, -2)
    sine = 0.5 * np.sqrt(skew[:, 2, 1] ** 2 + skew[:, 0, 2] ** 2 + skew[:, 1, 0] ** 2)
    cosine = 0.5 * (np.trace(relative, axis1=1, axis2=2) - 1.0)
    return {
        "sides": [a.name, b.name],
        "prompts": len(a.motors),
        "angle": _mean_with_interval(np.arctan2(sine, cosine)),
        "displacement": _mean_with_interval(np.linalg.norm(places(a.motors) - places(b.motors), axis=1)),
        "path": _mean_with_interval(np.array([path_distance(p, q) for p, q in zip(a.paths, b.paths, strict=True)])),
    }


def shadow_axes(motors: Float64[np.ndarray, "rows 16"]) -> tuple[np.ndarray, np.ndarray]:
    """Return the three directions (rows) that the motions keep, best first, and the mean of `a·R a` along each."""
    mean = rotations(motors).mean(axis=0)
    values, vectors = np.linalg.eigh(0.5 * (mean + mean.T))
    return vectors.T[::-1].copy(), values[::-1].copy()


def read_axes(
    motors: Float64[np.ndarray, "rows 16"],
    axes: Mapping[str, Sequence[float]],
    value_vector: Sequence[float],
) -> dict[str, Any]:
    """Return how the axes found in `motors` stand to a pack's: the leading axis against the value vector, and an
    optimal assignment of the found axes to the pack's, all as absolute cosines."""
    found, kept = shadow_axes(motors)
    names, directions = list(axes), _unit(np.array(list(axes.values()), dtype=np.float64))
    similarity = np.abs(found @ directions.T)
    value = _unit(np.array([value_vector], dtype=np.float64))[0]
    return {
        "shadow_axes": found.tolist(),
        "kept": kept.tolist(),
        "cosine_vs_value_vector": float(abs(found[0] @ value)),
        "matched": [
            {"shadow": row, "axis": names[column], "cosine": float(similarity[row, column])}
            for row, column in assign(similarity)
        ],
    }


def axis_noise(motors: Float64[np.ndarray, "rows 16"]) -> dict[str, Any]:
    """Return how far the leading axis moves when the prompts are drawn again: quantiles of its absolute cosine."""
    generator = np.random.default_rng(_SEED)
    leading, all_rotations = shadow_axes(motors)[0][0], rotations(motors)
    cosines = []
    for _ in range(999):
        drawn = all_rotations[generator.integers(len(motors), size=len(motors))].mean(axis=0)
        cosines.append(abs(np.linalg.eigh(0.5 * (drawn + drawn.T))[1][:, -1] @ leading))
    low, middle = np.quantile(cosines, [0.05, 0.5])
    return {"resamples": 999, "cosine_5_percent": float(low), "cosine_median": float(middle)}


def random_band(axes: Float64[np.ndarray, "found 3"]) -> dict[str, float]:
    """Return the absolute cosines of the leading found axis with random directions: what no relation looks like."""
    directions = _unit(np.random.default_rng(_SEED).normal(size=(RANDOM_PACKS, 3)))
    low, mean, high = np.quantile(np.abs(directions @ axes[0]), [0.05, 0.5, 0.95])
    return {"low": float(low), "median": float(mean), "high": float(high)}


def record_fields(side: Trajectories, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a record keeps of the trajectories: enough to derive the axes again."""
    kept = np.ascontiguousarray(side.motors[:MAX_RECORDED], dtype="<f8")
    return {
        "trajectories_sha256": side.sha256,
        "trajectory_count": len(side.motors),
        "motors_b64": base64.b64encode(kept.tobytes()).decode("ascii"),
        "motors_truncated": len(kept) < len(side.motors),
        "shadow_axes": reading["shadow_axes"],
        "kept": reading["kept"],
    }


def check_record(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the checks of a `shadow_manifold` record: its axes, derived again from its motors."""
    if record.get("motors_b64") is None:
        return {"axes": "not derivable: the run kept no motors"}
    if record["motors_truncated"]:
        return {"axes": "not derivable: the motors were cut in the record"}
    motors = np.frombuffer(base64.b64decode(record["motors_b64"], validate=True), dtype="<f8").reshape(-1, 16)
    if len(motors) != record["trajectory_count"]:
        return {"axes": "failed: trajectory_count is not the number of motors"}
    found, kept = shadow_axes(motors.astype(np.float64))
    recorded = np.array(record["shadow_axes"], dtype=np.float64)
    agree = np.abs(np.sum(found * recorded, axis=1)) > 1.0 - AXIS_TOLERANCE
    if not agree.all() or not np.allclose(kept, record["kept"], rtol=0.0, atol=AXIS_TOLERANCE):
        return {"axes": "failed: the motors give other axes"}
    return {"axes": "ok"}


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _mean_with_interval(values: np.ndarray) -> dict[str, Any]:
    interval = None
    # A spread of rounding errors is none, and BCa would divide by it.
    if len(values) >= 10 and np.ptp(values) > 1e-12 + 1e-6 * np.abs(values).max():
        from scipy.stats import bootstrap

        result = bootstrap(
            (values,),
            np.mean,
            n_resamples=_RESAMPLES,
            confidence_level=_LEVEL,
            method="BCa",
            rng=np.random.default_rng(_SEED),
        )
        interval = [float(result.confidence_interval.low), float(result.confidence_interval.high)]
    return {"mean": float(values.mean()), "max": float(values.max()), "interval": interval}
