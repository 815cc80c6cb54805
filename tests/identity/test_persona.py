"""The persona motor: a closed rigid motion that depends on the pack and is bounded whatever the pack says."""

import jax.numpy as jnp
import numpy as np
import pytest

from engine.algebra import closure_residual, translator
from engine.algebra.rigid import translation_of
from engine.identity import manifold_from_pack, persona_motor
from engine.identity.persona import PERSONA_REACH, PERSONA_TWIST, anisotropy
from tests.identity.packs import DEFAULT_AXES, make_pack


def persona(axes):
    return np.asarray(persona_motor(manifold_from_pack(make_pack(axes)).axes))


def test_equal_axes_translate_along_their_sum_and_do_not_turn():
    motor = persona(DEFAULT_AXES)
    along = PERSONA_REACH * np.ones(3) / 3
    assert np.allclose(motor, np.asarray(translator(jnp.asarray(along))), atol=1e-15)


def test_one_axis_has_the_full_reach_and_the_full_twist():
    motor = persona({"up": ((0.0, 0.0, 0.5), 3.0)})
    assert np.allclose(np.asarray(translation_of(jnp.asarray(motor))), [0, 0, PERSONA_REACH], atol=1e-15)
    assert motor[0] == pytest.approx(np.cos(PERSONA_TWIST / 2), abs=1e-15)


@pytest.mark.parametrize("weight", [1e-6, 1.0, 10.0])
@pytest.mark.parametrize("length", [1e-3, 1.0])
def test_hostile_weights_stay_closed_and_within_reach(weight, length):
    motor = persona({"a": ((length, 0.0, 0.0), weight), "b": ((0.0, 1.0, -1.0), 10.0), "c": ((0.3, 0.3, 0.9), 0.0)})
    assert float(closure_residual(jnp.asarray(motor))) < 1e-14
    assert np.linalg.norm(np.asarray(translation_of(jnp.asarray(motor)))) <= PERSONA_REACH * (1 + 1e-12)


def test_a_common_factor_of_the_weights_does_not_count():
    doubled = {name: (direction, 2 * weight) for name, (direction, weight) in DEFAULT_AXES.items()}
    assert np.allclose(persona(DEFAULT_AXES), persona(doubled), atol=1e-15)


def test_packs_have_different_personas():
    precise = {"t": ((1.0, 0.0, 0.0), 2.0), "c": ((0.0, 0.7, 0.0), 0.7), "r": ((0.0, 0.0, 0.7), 0.7)}
    assert np.abs(persona(DEFAULT_AXES) - persona(precise)).max() > 0.05


def test_anisotropy_lies_between_zero_and_one():
    values = [
        float(anisotropy(manifold_from_pack(make_pack(axes)).axes))
        for axes in (
            DEFAULT_AXES,
            {"a": ((1.0, 0.0, 0.0), 1.0), "b": ((0.0, 1.0, 0.0), 0.4)},
            {"a": ((0.2, 0.0, 0.1), 1.0)},
        )
    ]
    assert values[0] == pytest.approx(0.0, abs=1e-15)
    assert 0.0 < values[1] < 1.0
    assert values[2] == pytest.approx(1.0, abs=1e-15)
