"""Rigid motors `T(x) R`: made from, read as and raised to powers by their translation and rotation, in closed form.

The general power, exp(t log m), covers every branch of Cl(4,1) and takes seconds to compile for each shape. Words,
personas and perturbations are rigid, and for those the power of a screw motion is elementary: with rotation angle theta
about the unit axis n, and x = x_n + x_p split along n and across it,

    M^t = T(x_t) R^t,   x_t = t x_n + sin(t theta/2) / sin(theta/2) Rot(n, (t-1) theta/2) x_p,

since on the plane across n, I - Rot(a) = 2 sin(a/2) Rot(a/2 - pi/2). Agreement with the general power is tested.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from engine.algebra.product import even_product_kernel


def rigid_motor(translation: Float[Array, "*batch 3"], rotor: Float[Array, "*batch 4"]) -> Float[Array, "*batch 16"]:
    """Return `T(x) R` for translations (..., 3) and rotors (..., 4) on 1, e12, e13, e23. No checks."""
    zero = jnp.zeros_like(rotor[..., 0])
    scalar, e12, e13, e23 = (rotor[..., i] for i in range(4))
    turn = jnp.stack([scalar, e12, e13, zero, zero, e23, *[zero] * 10], axis=-1)
    x, y, z = (-0.5 * translation[..., i] for i in range(3))
    shift = jnp.stack([zero + 1.0, zero, zero, x, x, zero, y, y, z, z, *[zero] * 6], axis=-1)
    return even_product_kernel(shift, turn)


def rotor_about(axis: Float[Array, "*batch 3"], angle: Float[Array, "*batch"]) -> Float[Array, "*batch 4"]:
    """Return the rotor on 1, e12, e13, e23 of a turn by `angle` radians about a unit axis: exp(-angle/2 n I_3)."""
    cosine, sine = jnp.cos(0.5 * angle), jnp.sin(0.5 * angle)
    return jnp.stack([cosine, -sine * axis[..., 2], sine * axis[..., 1], -sine * axis[..., 0]], axis=-1)


def translation_of(motor: Float[Array, "*batch 16"]) -> Float[Array, "*batch 3"]:
    """Return x of a rigid motor `T(x) R`: the point to which it carries the origin.

    `M = R - x n_inf R / 2`; the part of M with e4 but not e5 is `-x e4 R / 2`, and multiplying it by `reverse(R)` from
    the right leaves `-x e4 / 2`, whose coefficients on e14, e24, e34 are half of -x. Written out:
    """
    s, a, b, c = motor[..., 0], motor[..., 1], motor[..., 2], motor[..., 5]  # 1, e12, e13, e23
    p, q, r, w = motor[..., 3], motor[..., 6], motor[..., 8], motor[..., 11]  # e14, e24, e34, e1234
    x = s * p + a * q + b * r + c * w
    y = s * q - a * p + c * r - b * w
    z = s * r - b * p - c * q + a * w
    return -2.0 * jnp.stack([x, y, z], axis=-1)


def rigid_power_kernel(motor: Float[Array, "*batch 16"], power: Float[Array, "*batch"]) -> Float[Array, "*batch 16"]:
    """Return rigid motors (..., 16) to the powers (...): power 1 is the motor to rounding, power 0 is exactly 1.

    Undefined (not finite) for a turn by exactly 2 pi, which has no axis.
    """
    plane = jnp.stack([-motor[..., 5], motor[..., 2], -motor[..., 1]], axis=-1)  # sin(theta/2) n
    square = jnp.sum(plane * plane, axis=-1)
    turns = square > 0.0
    sine = jnp.sqrt(jnp.where(turns, square, 1.0))
    axis = plane / sine[..., None]
    half = jnp.where(turns, jnp.arctan2(sine, motor[..., 0]), 0.0)
    ratio = jnp.where(turns, jnp.sin(power * half) / sine, power)
    position = translation_of(motor)
    along = jnp.sum(axis * position, axis=-1)[..., None] * axis
    across = position - along
    angle = (power - 1.0) * half
    swung = jnp.cos(angle)[..., None] * across + jnp.sin(angle)[..., None] * jnp.cross(axis, across)
    moved = power[..., None] * along + ratio[..., None] * swung
    return rigid_motor(moved, rotor_about(axis, 2.0 * power * half))
