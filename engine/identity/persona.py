"""The persona motor `M = T R`: how an identity pack moves the field at every step (DESIGN §4).

T translates along the value vector p; R turns about p by an angle that grows with the pack's anisotropy, so that a
pack that weighs its axes unequally also speaks with a different twist. Both are bounded: hostile weights cannot make a
motor whose coefficients strain the closure.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from engine.algebra.rigid import rigid_motor, rotor_about
from engine.identity.manifold import ValueAxes

PERSONA_REACH = 0.6
"""Length of the persona's translation for a pack whose axes all point one way; word points lie within about 2."""

PERSONA_TWIST = math.pi / 2
"""Angle of the persona's rotation, in radians, for a pack of one axis (anisotropy 1); an isotropic pack has none."""


@jax.jit
def persona_motor(axes: ValueAxes) -> Float[Array, "*packs 16"]:
    """Return the persona motor of one pack or of a stack of packs.

    With `p = sum w a` the translation is `PERSONA_REACH * p / sum |w a|`, at most `PERSONA_REACH` long and shorter the
    more the axes spread; the rotation is about p by `PERSONA_TWIST` times the anisotropy.
    """
    weighted = axes.weights[..., None] * axes.directions
    value = jnp.sum(weighted, axis=-2)
    # Only lengths of real axes are summed; a root at exactly zero would spoil gradients.
    squares = jnp.sum(weighted * weighted, axis=-1)
    lengths = jnp.where(squares == 0, 0.0, jnp.sqrt(jnp.where(squares == 0, 1.0, squares)))
    translation = PERSONA_REACH * value / jnp.sum(lengths, axis=-1)[..., None]
    angle = PERSONA_TWIST * anisotropy(axes)
    norm = jnp.sqrt(jnp.sum(value * value, axis=-1))
    unit = value / norm[..., None]
    return rigid_motor(translation, rotor_about(unit, angle))


def anisotropy(axes: ValueAxes) -> Float[Array, "*packs"]:
    """Return the fractional anisotropy of the pack's weighted axes, in [0, 1] (Basser and Pierpaoli 1996).

    It is read from `S = sum w a a^T` as `sqrt(3/2) |S - tr(S)/3| / |S|`: 0 where three axes weigh alike, 1 for one.
    """
    tensor = jnp.einsum("...a,...ai,...aj->...ij", axes.weights, axes.directions, axes.directions)
    mean = jnp.trace(tensor, axis1=-2, axis2=-1) / 3.0
    eye = jnp.broadcast_to(jnp.eye(3), tensor.shape)
    deviation = tensor - mean[..., None, None] * eye
    squares = jnp.sum(deviation * deviation, axis=(-2, -1))
    whole = jnp.sum(tensor * tensor, axis=(-2, -1))
    ratio = 1.5 * squares / whole
    return jnp.where(ratio == 0, 0.0, jnp.sqrt(jnp.where(ratio == 0, 1.0, ratio)))
