"""Seeded motors for the field's tests, made with NumPy so that nothing has to be compiled for them."""

import jax.numpy as jnp
import numpy as np

from engine.algebra.tables import EVEN_INDEX, EVEN_NAMES, dense_table

STEPS, BATCH = 6, 8
"""Shapes that the tests share, so that each program is compiled once."""

PRODUCT = dense_table(EVEN_NAMES)
E12, E13, E14, E15, E23, E24, E25, E34, E35 = (
    EVEN_INDEX[name] for name in ("e12", "e13", "e14", "e15", "e23", "e24", "e25", "e34", "e35")
)


def unit_vectors(random, *shape):
    vectors = random.normal(size=(*shape, 3))
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def rotors(seed: int, *shape: int):
    """Random spatial rotors cos θ/2 - sin θ/2 B, (..., 16)."""
    random = np.random.default_rng(seed)
    half = random.uniform(-np.pi, np.pi, size=shape) / 2
    motor = np.zeros((*shape, 16))
    motor[..., 0] = np.cos(half)
    motor[..., [E12, E13, E23]] = -np.sin(half)[..., None] * unit_vectors(random, *shape)
    return jnp.asarray(motor)


def translators(seed: int, *shape: int, length: float = 0.3):
    """Random translators 1 - t n_inf / 2 by vectors of the given length, (..., 16)."""
    random = np.random.default_rng(seed)
    motor = np.zeros((*shape, 16))
    motor[..., 0] = 1.0
    motor[..., [E14, E24, E34]] = -0.5 * length * unit_vectors(random, *shape)
    motor[..., [E15, E25, E35]] = motor[..., [E14, E24, E34]]
    return jnp.asarray(motor)


def motors(seed: int, *shape: int, length: float = 0.3):
    """Random rotations followed by random translations, (..., 16)."""
    moved, turned = translators(seed + 1000, *shape, length=length), rotors(seed, *shape)
    return jnp.asarray(np.einsum("...i,...j,ijk->...k", moved, turned, PRODUCT))
