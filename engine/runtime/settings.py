"""What one evaluation is asked to do, checked once at the door."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from engine.base.errors import ConfigError
from engine.generate.admissibility import admissibility
from engine.generate.walk import WalkPolicy

MAX_STEPS = 256
MAX_SEED = 2**32 - 1
MAX_PERTURB = 10.0


@dataclass(frozen=True)
class Placement:
    """Where an evaluation runs, which changes no row: the mesh that rows are spread over, None for the default device.

    `progress(done, rows)` is called after each chunk of rows.
    """

    mesh: Mesh | None = None
    progress: Callable[[int, int], None] | None = None


HERE = Placement()
"""The default device, and nobody to tell."""


@dataclass(frozen=True)
class Settings:
    """Settings of an evaluation.

    `seeds` key the perturbation and nothing else; `perturb` is the size of the random motor that moves each initial
    state (radians and units of length), `alpha` in [0, 1] damps the prompt's reverse walk, `steps` bounds the walk,
    `window` is the number of last words that may not be said again. A walk settles once `min_steps` words are said and
    the current word is nearer than the best next one by more than `settle_margin`. `mode` names the check.
    """

    seeds: tuple[int, ...] = (0,)
    perturb: float = 0.0
    alpha: float = 0.5
    steps: int = 12
    window: int = 4
    min_steps: int = 3
    settle_margin: float = 0.0
    mode: str = "destination"
    margin: float = 0.05
    frame_angle: float = math.pi / 2

    def __post_init__(self) -> None:
        if not self.seeds:
            raise ConfigError("at least one seed is needed")
        for seed in self.seeds:
            _require_int("seed", seed, 0, MAX_SEED)
        _require_number("perturb", self.perturb, 0.0, MAX_PERTURB)
        _require_number("alpha", self.alpha, 0.0, 1.0)
        _require_int("steps", self.steps, 1, MAX_STEPS)
        _require_int("window", self.window, 1, MAX_STEPS)
        _require_int("min_steps", self.min_steps, 0, MAX_STEPS)
        if not self.settle_margin >= 0:
            raise ConfigError(
                f"settle_margin={self.settle_margin}: expected a distance of 0 or more (inf never settles)"
            )
        admissibility(self.mode, margin=self.margin, frame_angle=self.frame_angle)

    def policy(self) -> WalkPolicy:
        """Return the numbers that the walk takes as arrays."""
        return WalkPolicy(
            admissibility=admissibility(self.mode, margin=self.margin, frame_angle=self.frame_angle),
            min_steps=jnp.asarray(np.int32(self.min_steps)),
            settle_margin=jnp.asarray(np.float64(self.settle_margin)),
        )

    def policy_values(self) -> dict[str, object]:
        """Return what of these settings is runtime policy, as plain values for a digest."""
        margin = self.settle_margin if math.isfinite(self.settle_margin) else "inf"
        return {
            "mode": self.mode,
            "margin": self.margin,
            "frame_angle": self.frame_angle,
            "window": self.window,
            "min_steps": self.min_steps,
            "settle_margin": margin,
        }


def settings(seeds: Sequence[int] = (0,), **values: object) -> Settings:
    """Return checked settings; `ConfigError` names a setting that does not exist or does not hold."""
    known = set(Settings.__dataclass_fields__) - {"seeds"}
    unknown = sorted(set(values) - known)
    if unknown:
        raise ConfigError(f"unknown setting {unknown[0]}; known: {', '.join(sorted(known))}")
    return Settings(seeds=tuple(seeds), **values)  # type: ignore[arg-type]


def _require_number(name: str, value: float, low: float, high: float) -> None:
    # Written so that NaN fails; a boolean is not a number.
    if isinstance(value, bool) or not low <= value <= high:
        raise ConfigError(f"{name}={value}: expected a number from {low} to {high}")


def _require_int(name: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigError(f"{name}={value}: expected an integer from {low} to {high}")
