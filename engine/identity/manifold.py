"""The identity manifold: a pack's value axes as directions at infinity, read against a motor (DESIGN §4).

A direction `a` in R^3 is lifted to the blade `a ^ n_inf`, the point at infinity in that direction as a bivector. Every
translation leaves such a blade alone, a rotation turns it, a dilation scales it; only motions that move infinity
(transversions, boosts that mix e4 with e1..e3) carry it out of the family, and that part is the leakage.

All arrays are padded to `AXIS_CAPACITY` axes with a mask, so that one compiled program reads every pack.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from engine.algebra.product import sandwich_kernel
from engine.base.errors import ShapeError
from packs.errors import IdentityPackError
from packs.identity.loader import IdentityPack, SurfacePreferences

AXIS_CAPACITY = 32
"""Axes every manifold is padded to: the loader's upper bound on a pack's axes."""

LEAKAGE_TOLERANCE = 1e-12
"""Leakage above this is a finding. It is a share of *squared* coefficients, so this is 1e-6 of their norm, the closure
tolerance; rounding in a similarity leaves about eps^2."""

# Coefficients of e_i ^ n_inf = e_i4 + e_i5 among the 16 even ones (1; e12 e13 e14 e15 e23 e24 e25 e34 e35 e45; ...).
_INFINITY_PAIRS = ((3, 4), (6, 7), (8, 9))


class ValueAxes(eqx.Module):
    """The arrays of a manifold, of one pack or stacked over packs in the leading dimensions.

    `directions` are the pack's own (lengths count), `weights` are zero and `mask` is False on padding.
    """

    directions: Float[Array, "*packs axes 3"]
    weights: Float[Array, "*packs axes"]
    mask: Bool[Array, "*packs axes"]
    threshold: Float[Array, "*packs"]

    @property
    def value_vector(self) -> Float[Array, "*packs 3"]:
        """p, the weighted sum of the axes; weights and lengths count."""
        return jnp.sum(self.weights[..., None] * self.directions, axis=-2)


class IdentityReading(eqx.Module):
    """What a manifold reads off a motor. Alignments lie in [0, 1]; padded axes read 1 and never deviate."""

    alignment: Float[Array, "*batch"]
    axis_alignments: Float[Array, "*batch axes"]
    leakage: Float[Array, "*batch"]
    deviating: Bool[Array, "*batch axes"]
    flagged: Bool[Array, "*batch"]


@dataclass(frozen=True)
class IdentityManifold:
    """A loaded identity pack as arrays, with the names and boundaries that belong to it.

    `boundary_ids` is what this identity will never do: the pack's own ids, and after composition also the safety
    pack's. Axes, weights, threshold and preferences are the identity pack's, unchanged by composition.
    """

    pack_id: str
    axes: ValueAxes
    axis_ids: tuple[str, ...]
    boundary_ids: frozenset[str]
    alignment_threshold: float
    surface_preferences: SurfacePreferences | None

    def read(self, motor: Float[Array, "*batch 16"]) -> IdentityReading:
        """Read alignment, axis alignments, leakage and the flag of a batch of motors."""
        return read_identity(self.axes, motor)

    def alignment(self, motor: Float[Array, "*batch 16"]) -> Float[Array, "*batch"]:
        """Alignment of the value vector, (1 + cos of the angle between p and F p) / 2, in [0, 1]."""
        return self.read(motor).alignment

    def axis_alignments(self, motor: Float[Array, "*batch 16"]) -> Float[Array, "*batch axes"]:
        """Alignment of each of the pack's own axes (no padding), in the order of `axis_ids`."""
        return self.read(motor).axis_alignments[..., : len(self.axis_ids)]

    def leakage(self, motor: Float[Array, "*batch 16"]) -> Float[Array, "*batch"]:
        """Largest share of a moved axis blade that lies outside the directions at infinity, in [0, 1]."""
        return self.read(motor).leakage

    def flagged(self, motor: Float[Array, "*batch 16"]) -> Bool[Array, "*batch"]:
        """True where alignment or an axis is below the threshold, or infinity was moved."""
        return self.read(motor).flagged


def manifold_from_pack(pack: IdentityPack, *, added_boundaries: Iterable[str] = ()) -> IdentityManifold:
    """Turn a loaded identity pack into arrays; `added_boundaries` (the safety pack's) are united with its own.

    Raises `IdentityPackError` where the weighted axes cancel: such a pack has no value vector to read against.
    """
    count = len(pack.value_axes)
    if not 1 <= count <= AXIS_CAPACITY:
        raise IdentityPackError(f"identity pack {pack.pack_id}: {count} value axes; 1 to {AXIS_CAPACITY} are possible")
    directions = np.zeros((AXIS_CAPACITY, 3))
    directions[:count] = [axis.direction for axis in pack.value_axes]
    weights = np.zeros(AXIS_CAPACITY)
    weights[:count] = [axis.weight for axis in pack.value_axes]
    weighted = weights[:, None] * directions
    if np.linalg.norm(weighted.sum(axis=0)) <= 1e-9 * np.abs(weighted).sum():
        raise IdentityPackError(
            f"identity pack {pack.pack_id}: the weighted value axes cancel, so that no value is left"
        )
    axes = ValueAxes(
        jnp.asarray(directions),
        jnp.asarray(weights),
        jnp.asarray(np.arange(AXIS_CAPACITY) < count),
        jnp.asarray(np.float64(pack.alignment_threshold)),
    )
    return IdentityManifold(
        pack_id=pack.pack_id,
        axes=axes,
        axis_ids=tuple(axis.axis_id for axis in pack.value_axes),
        boundary_ids=frozenset(pack.boundary_ids) | frozenset(added_boundaries),
        alignment_threshold=float(pack.alignment_threshold),
        surface_preferences=pack.surface_preferences,
    )


def infinity_map(motor: Float[Array, "*batch 16"]) -> Float[Array, "*batch 3 10"]:
    """Return the bivectors `F (e_i ^ n_inf) reverse(F)`, i = 1, 2, 3; lifted directions are combinations of them."""
    basis = np.zeros((3, 16))
    for row, pair in enumerate(_INFINITY_PAIRS):
        basis[row, list(pair)] = 1.0
    shape = (*motor.shape[:-1], 3, 16)
    spread = jnp.broadcast_to(motor[..., None, :], shape)
    return sandwich_kernel(spread, jnp.broadcast_to(jnp.asarray(basis), shape))[..., 1:11]


def read_identity(axes: ValueAxes, motor: Float[Array, "*batch 16"]) -> IdentityReading:
    """Read motors against value axes whose leading dimensions equal the motors' (or are absent: one pack for all).

    Where a direction is carried entirely out of infinity its angle is undefined: the cosine is then taken as -1, the
    worst reading, and the leakage says why. Values at a non-finite motor are not finite and `flagged` is True there.
    """
    images = infinity_map(motor)
    axes = _spread_over(axes, motor)
    moved = jnp.einsum("...ai,...ib->...ab", axes.directions, images)
    moved_directions, leaked = _split_infinity(moved)
    axis_alignments = jnp.where(axes.mask, _alignment(axes.directions, moved_directions), 1.0)
    value = axes.value_vector
    moved_value, _ = _split_infinity(jnp.einsum("...i,...ib->...b", value, images))
    alignment = _alignment(value, moved_value)
    leakage = jnp.max(jnp.where(axes.mask, leaked, 0.0), axis=-1)
    deviating = axes.mask & ~(axis_alignments >= axes.threshold[..., None])
    # Written so that NaN is flagged: a comparison with NaN is False.
    sound = (alignment >= axes.threshold) & (leakage <= LEAKAGE_TOLERANCE)
    return IdentityReading(
        alignment=alignment,
        axis_alignments=axis_alignments,
        leakage=leakage,
        deviating=deviating,
        flagged=~sound | jnp.any(deviating, axis=-1),
    )


def _spread_over(axes: ValueAxes, motor: Float[Array, "*batch 16"]) -> ValueAxes:
    """Give one pack's arrays the motors' batch dimensions; a stack of packs must already have them."""
    batch = motor.shape[:-1]
    if axes.threshold.ndim:
        if axes.threshold.shape != batch:
            raise ShapeError(
                f"value axes of shape {axes.threshold.shape} cannot be read against motors of shape {batch}"
            )
        return axes
    return jax.tree.map(lambda x: jnp.broadcast_to(x.reshape((1,) * len(batch) + x.shape), batch + x.shape), axes)


def _split_infinity(bivector: Float[Array, "*batch 10"]) -> tuple[Float[Array, "*batch 3"], Float[Array, "*batch"]]:
    """Split a bivector into the direction x of its part `x ^ n_inf` and the share of squares outside that family."""
    first = jnp.stack([bivector[..., a - 1] for a, _ in _INFINITY_PAIRS], axis=-1)
    second = jnp.stack([bivector[..., b - 1] for _, b in _INFINITY_PAIRS], axis=-1)
    direction = 0.5 * (first + second)
    total = jnp.sum(bivector * bivector, axis=-1)
    # The rest is summed directly: 1 - inside/total would lose everything below eps.
    rest = 0.5 * jnp.sum((first - second) ** 2, axis=-1)
    for index in (0, 1, 4, 9):  # e12, e13, e23, e45
        rest = rest + bivector[..., index] ** 2
    return direction, rest / jnp.where(total == 0, 1.0, total)


def _alignment(before: Float[Array, "*batch 3"], after: Float[Array, "*batch 3"]) -> Float[Array, "*batch"]:
    """Return (1 + cos)/2 of the angle between two directions; 0 where either has no direction."""
    product = jnp.sum(before * before, axis=-1) * jnp.sum(after * after, axis=-1)
    safe = jnp.where(product == 0, 1.0, product)
    cosine = jnp.sum(before * after, axis=-1) / jnp.sqrt(safe)
    return jnp.where(product == 0, 0.0, jnp.clip(0.5 * (1.0 + cosine), 0.0, 1.0))
