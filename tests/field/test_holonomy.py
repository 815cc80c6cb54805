"""Holonomy encoding: a closed motor that keeps word order and really uses its damping."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine.algebra import even_product, even_reverse, motor_power
from engine.base.errors import ConfigError, PrecisionError, ShapeError
from engine.field import holonomy, measure_closure
from tests.field.motors import motors, rotors

LENGTH = 4
ONE = np.eye(16)[0]
ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)


@pytest.fixture(scope="module")
def words():
    return motors(1, 3, LENGTH)


def product(factors):
    total = jnp.asarray(ONE)
    for factor in factors:
        total = even_product(total, factor)
    return total


def test_is_the_walk_out_and_the_damped_walk_back(words):
    back = [motor_power(word, 0.7) for word in words[0]]
    expected = product([*words[0], *[even_reverse(word) for word in reversed(back)]])
    np.testing.assert_allclose(holonomy(words, 0.3)[0], expected, rtol=0, atol=1e-13)


def test_full_damping_leaves_the_product_and_none_leaves_nothing(words):
    np.testing.assert_allclose(holonomy(words, 1.0)[0], product(words[0]), rtol=0, atol=1e-14)
    np.testing.assert_allclose(holonomy(words, 0.0), np.broadcast_to(ONE, (3, 16)), rtol=0, atol=1e-13)


def test_every_alpha_gives_another_closed_motor(words):
    results = [holonomy(words, alpha) for alpha in ALPHAS]
    for result in results:
        assert measure_closure(result).ok.all()
        assert measure_closure(result).max_residual.max() < 1e-13
    for first, second in itertools.pairwise(results):
        assert (np.linalg.norm(first - second, axis=-1) > 1e-2).all()


def test_alpha_may_differ_by_sample(words):
    each = holonomy(words, jnp.array([0.0, 0.25, 1.0]))
    for index, alpha in enumerate((0.0, 0.25, 1.0)):
        np.testing.assert_allclose(each[index], holonomy(words, alpha)[index], rtol=0, atol=1e-14)


def test_word_order_matters(words):
    assert (np.linalg.norm(holonomy(words, 0.5) - holonomy(words[:, ::-1], 0.5), axis=-1) > 1e-2).all()


def test_padding_by_identity_motors_is_exact(words):
    short = words[:, :2]
    padded = jnp.concatenate([short, jnp.broadcast_to(jnp.asarray(ONE), (3, LENGTH - 2, 16))], axis=1)
    np.testing.assert_allclose(holonomy(padded, 0.5), holonomy(short, 0.5), rtol=0, atol=1e-15)
    np.testing.assert_array_equal(holonomy(words[:, :0], 0.5), np.broadcast_to(ONE, (3, 16)))


@pytest.mark.parametrize("alpha", [-0.1, 1.1, np.nan, np.inf])
def test_alpha_outside_the_unit_interval_is_refused(words, alpha):
    with pytest.raises(ConfigError):
        holonomy(words, alpha)
    traced = jax.jit(holonomy)(words, jnp.asarray(alpha))
    assert not measure_closure(traced).ok.any()


def test_wrong_dtype_and_shape_are_refused(words):
    with pytest.raises(PrecisionError):
        holonomy(np.asarray(words, np.float32), 0.5)
    with pytest.raises(PrecisionError):
        holonomy(words, np.float32(0.5))
    with pytest.raises(ShapeError):
        holonomy(words[0, 0], 0.5)
    with pytest.raises(ShapeError):
        holonomy(words, jnp.full(5, 0.5))


@pytest.mark.slow
def test_gradient_by_alpha_is_finite_at_the_ends():
    words = rotors(2, LENGTH)
    slope = jax.jit(jax.grad(lambda alpha: holonomy(words, alpha)[1]))
    assert all(jnp.isfinite(slope(jnp.asarray(alpha))) for alpha in ALPHAS)
