"""Multivectors in the resident layout: the readable product, within the rounding of its 32 terms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine import algebra
from engine.algebra import tables
from engine.algebra.layout import LANES
from engine.algebra.multivector_lanes import enter_multivector, leave_multivector, multiply_multivectors

EPS = float(np.finfo(np.float64).eps)


def random(seed: int, *shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


@pytest.mark.parametrize("batch", [(), (3,), (0,), (5, 9), (2 * LANES + 1,)])
def test_the_product_is_the_readable_one(batch: tuple[int, ...]) -> None:
    a, b = random(0, *batch, 32), random(1, *batch, 32)
    found = leave_multivector(multiply_multivectors(enter_multivector(a), enter_multivector(b)), batch)
    expected = algebra.geometric_product(a, b)
    assert found.shape == (*batch, 32)
    np.testing.assert_allclose(found, expected, rtol=0, atol=256 * EPS * float(jnp.max(jnp.abs(expected), initial=1.0)))


def test_every_pair_of_blades_has_its_sign() -> None:
    basis = jnp.eye(32)
    left, right = jnp.repeat(basis, 32, axis=0), jnp.tile(basis, (32, 1))
    found = leave_multivector(multiply_multivectors(enter_multivector(left), enter_multivector(right)), (1024,))
    expected = np.asarray(tables.dense_table()).reshape(1024, 32)
    np.testing.assert_array_equal(found, expected)


def test_entering_and_leaving_changes_two_roundings_at_most() -> None:
    m = random(2, 77, 32)
    np.testing.assert_allclose(leave_multivector(enter_multivector(m), (77,)), m, rtol=0, atol=8 * EPS)
