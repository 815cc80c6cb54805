"""Admissibility: which words a walk may step to, as regions that compose, and the check that judges a step.

A region has three parts: the words it allows, the relations it allows, and a frame motor that says which way to turn.
Regions compose by intersection, intersection and motor product; the unconstrained region is neutral. Composition is
associative exactly, because a region keeps its frame as the tuple of its factors and multiplies them once, when it is
lowered to arrays.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from engine.algebra import even_product
from engine.base.errors import ConfigError

FloatTuple = tuple[float, ...]


@dataclass(frozen=True)
class Region:
    """The words and relations (by index; None allows all) and frame factors (16 coefficients) a step must obey."""

    label: str = ""
    words: frozenset[int] | None = None
    relations: frozenset[int] | None = None
    frame: tuple[FloatTuple, ...] = field(default=())

    def compose(self, other: "Region") -> "Region":
        """Return the region of steps that both allow; frames multiply in order."""
        return Region(
            label=" & ".join(label for label in (self.label, other.label) if label),
            words=_intersect(self.words, other.words),
            relations=_intersect(self.relations, other.relations),
            frame=self.frame + other.frame,
        )

    __and__ = compose


UNCONSTRAINED = Region()
"""The neutral element: every word, every relation, no turn."""


class RegionTable(eqx.Module):
    """Regions as arrays: one row each. `frames` are the frame motors' rotors (1, e12, e13, e23)."""

    words: Bool[Array, "regions words"]
    relations: Bool[Array, "regions relations"]
    frames: Float[Array, "regions 4"]


class AdmissibilityMode(StrEnum):
    """How a candidate is judged. Each mode includes the destination check."""

    DESTINATION = "destination"
    """The word and the relation lie in the region, and the word was not said within the window."""
    RANKED = "ranked"
    """The nearest candidate must beat the runner-up by a margin of distance; otherwise the step is ambiguous."""
    FRAME = "frame"
    """The step's rotor must lie within an angle of the region's frame."""


class Admissibility(eqx.Module):
    """The numbers a mode lowers to; arrays, so that sweeping them compiles nothing again.

    `margin` is a distance (0 passes always); `frame_cosine` bounds the cosine of half the angle between step and frame
    from below (-1 passes always).
    """

    margin: Float[Array, ""]
    frame_cosine: Float[Array, ""]


def admissibility(mode: str = "destination", *, margin: float = 0.05, frame_angle: float = np.pi / 2) -> Admissibility:
    """Return the check named `mode`; `margin` is used by "ranked", `frame_angle` (radians) by "frame".

    Raises `ConfigError` for an unknown mode (nothing is substituted) and for numbers that make no check.
    """
    try:
        chosen = AdmissibilityMode(mode)
    except ValueError:
        known = ", ".join(AdmissibilityMode)
        raise ConfigError(f"unknown admissibility mode {mode!r}; known modes: {known}") from None
    if not (np.isfinite(margin) and margin >= 0):
        raise ConfigError(f"admissibility margin {margin} is not a finite distance")
    if not 0 < frame_angle <= np.pi:
        raise ConfigError(f"frame angle {frame_angle} does not lie in (0, pi]")
    ranked, framed = chosen is AdmissibilityMode.RANKED, chosen is AdmissibilityMode.FRAME
    return Admissibility(
        margin=jnp.asarray(np.float64(margin if ranked else 0.0)),
        frame_cosine=jnp.asarray(np.float64(np.cos(frame_angle / 2) if framed else -1.0)),
    )


def lower_regions(regions: Sequence[Region], words: int, relations: int) -> RegionTable:
    """Turn regions into arrays over `words` words and `relations` relations, padded with the neutral region.

    The number of rows is rounded up to a power of two, at least 8, so that batches of similar size share a program.
    Raises `ConfigError` for an index out of range or a frame that is not 16 numbers.
    """
    rows = padded_size(len(regions), least=8)
    word_mask, relation_mask = np.ones((rows, words), bool), np.ones((rows, relations), bool)
    frames = np.zeros((rows, 4))
    frames[:, 0] = 1.0
    for row, region in enumerate(regions):
        _narrow(word_mask[row], region.words, region.label, "word")
        _narrow(relation_mask[row], region.relations, region.label, "relation")
        frames[row] = _frame_rotor(region)
    return RegionTable(jnp.asarray(word_mask), jnp.asarray(relation_mask), jnp.asarray(frames))


def padded_size(count: int, *, least: int) -> int:
    """Return the smallest power of two times `least` that holds `count`."""
    size = least
    while size < count:
        size *= 2
    return size


def _intersect(first: frozenset[int] | None, second: frozenset[int] | None) -> frozenset[int] | None:
    if first is None or second is None:
        return second if first is None else first
    return first & second


def _narrow(mask: np.ndarray, allowed: frozenset[int] | None, label: str, what: str) -> None:
    if allowed is None:
        return
    outside = sorted(index for index in allowed if not 0 <= index < mask.shape[0])
    if outside:
        raise ConfigError(f"region {label!r} names {what} {outside[0]}; there are {mask.shape[0]}")
    mask[:] = False
    mask[list(allowed)] = True


def _frame_rotor(region: Region) -> np.ndarray:
    """Return the rotor part (1, e12, e13, e23) of the product of the region's frame factors.

    A translation adds only terms with n_inf, so these four coefficients of a rigid motor are its rotation's.
    """
    product = np.zeros(16)
    product[0] = 1.0
    for factor in region.frame:
        if len(factor) != 16 or not np.all(np.isfinite(factor)):
            raise ConfigError(f"region {region.label!r}: a frame factor is not 16 finite numbers")
        product = np.asarray(even_product(jnp.asarray(product), jnp.asarray(np.asarray(factor, np.float64))))
    return product[[0, 1, 2, 5]]
