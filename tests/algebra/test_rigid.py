"""Closed-form rigid motors against the general algebra: construction, reading, powers, and encoding by them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine.algebra import apply, closure_residual, even_product, identity_motor, point_coordinates, translator
from engine.algebra.point import embed_point
from engine.algebra.rigid import rigid_motor, rigid_power_kernel, rotor_about, translation_of
from engine.field.holonomy import holonomy
from engine.runtime.programs import encode_prompts

COUNT = 64
POWER = jax.jit(rigid_power_kernel)


@pytest.fixture(scope="module")
def motors():
    generator = np.random.default_rng(7)
    axis = generator.normal(size=(COUNT, 3))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    angle = generator.uniform(0, 6.0, COUNT)
    angle[:4] = (0.0, 1e-9, np.pi, 2.0)
    shift = generator.normal(size=(COUNT, 3))
    shift[3] = 0.0
    return rigid_motor(jnp.asarray(shift), rotor_about(jnp.asarray(axis), jnp.asarray(angle))), shift


def test_a_rigid_motor_is_closed_and_carries_the_origin_to_its_translation(motors):
    made, shift = motors
    assert float(jnp.max(closure_residual(made))) < 1e-14
    carried = point_coordinates(apply(made, embed_point(jnp.zeros((COUNT, 3)))))
    assert np.abs(np.asarray(carried) - shift).max() < 1e-13
    assert np.abs(np.asarray(translation_of(made)) - shift).max() < 1e-14


def test_power_zero_is_exactly_one_and_power_one_the_motor(motors):
    made, _ = motors
    assert bool(jnp.all(POWER(made, jnp.zeros(COUNT)) == identity_motor((COUNT,))))
    assert float(jnp.max(jnp.abs(POWER(made, jnp.ones(COUNT)) - made))) < 1e-14


def test_powers_add_and_the_half_is_a_root(motors):
    made, _ = motors
    half = POWER(made, jnp.full(COUNT, 0.5))
    assert float(jnp.max(jnp.abs(even_product(half, half) - made))) < 1e-13
    third, rest = POWER(made, jnp.full(COUNT, 0.3)), POWER(made, jnp.full(COUNT, 0.7))
    assert float(jnp.max(jnp.abs(even_product(third, rest) - made))) < 1e-13


def test_a_pure_translation_is_a_straight_line():
    half = POWER(jnp.broadcast_to(translator(jnp.asarray([2.0, -4.0, 6.0])), (COUNT, 16)), jnp.full(COUNT, 0.5))
    assert np.allclose(np.asarray(translation_of(half))[0], [1.0, -2.0, 3.0], atol=1e-15)


def test_prompts_are_encoded_as_the_general_holonomy_says(motors):
    words = motors[0].reshape(8, 8, 16)
    padded = words.at[:, 5:].set(identity_motor())
    for alpha in (0.0, 0.3, 1.0):
        general = holonomy(padded, jnp.full(8, alpha))
        closed = encode_prompts(padded, jnp.asarray(alpha))
        # Ten products of motors with coefficients up to about ten.
        assert float(jnp.max(jnp.abs(general - closed))) < 1e-11
