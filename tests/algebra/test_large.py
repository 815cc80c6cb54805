"""Products of large resident batches: the same as lane by lane, and in the memory that is handed in."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.algebra import even_product, even_reverse, sandwich
from engine.algebra.lanes import multiply_lanes, step_lanes
from engine.algebra.large import (
    multiply_batch,
    multiply_into,
    multiply_reversed_batch,
    multiply_reversed_into,
    sandwich_into,
)
from engine.algebra.multivector_lanes import enter_multivector, multiply_multivectors, multiply_multivectors_into
from engine.algebra.resident import from_resident, to_resident

EPS = float(np.finfo(np.float64).eps)


def random(seed: int, *shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


@pytest.mark.parametrize("size", [1, 7, 32, 100])
def test_products_are_those_of_the_blade_basis(size: int) -> None:
    a, b = random(0, size, 16), random(1, size, 16)
    left, right = to_resident(a), to_resident(b)
    # A coefficient sums 16 products; entering, multiplying and leaving round each a few times.
    bound = 64 * EPS * float(jnp.max(jnp.linalg.norm(a, axis=-1) * jnp.linalg.norm(b, axis=-1)))
    plain = from_resident(multiply_batch(left, right), (size,))
    turned = from_resident(multiply_reversed_batch(left, right), (size,))
    np.testing.assert_allclose(plain, even_product(a, b), rtol=0, atol=bound)
    np.testing.assert_allclose(turned, even_product(a, even_reverse(b)), rtol=0, atol=bound)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_sandwich_is_that_of_the_step(seed: int) -> None:
    v, f = random(seed, 40, 16), random(seed + 1, 40, 16)
    versor, motor = to_resident(v), to_resident(f)
    half, moved = sandwich_into(versor, motor, jnp.zeros_like(motor), jnp.ones_like(motor))
    scale = float(jnp.max(jnp.sum(v * v, axis=-1) * jnp.linalg.norm(f, axis=-1)))
    np.testing.assert_allclose(half, multiply_lanes(versor, motor), rtol=0, atol=64 * EPS * scale)
    np.testing.assert_allclose(moved, step_lanes(versor, motor), rtol=0, atol=256 * EPS * scale)
    np.testing.assert_allclose(from_resident(moved, (40,)), sandwich(v, f), rtol=0, atol=256 * EPS * scale)


@pytest.mark.parametrize(
    ("program", "product", "enter", "width"),
    [
        (multiply_into, multiply_batch, to_resident, 16),
        (multiply_reversed_into, multiply_reversed_batch, to_resident, 16),
        (multiply_multivectors_into, multiply_multivectors, enter_multivector, 32),
    ],
)
def test_a_result_is_in_the_memory_that_was_handed_in(program, product, enter, width) -> None:
    left, right = enter(random(2, 96, width)), enter(random(3, 96, width))
    buffer = jnp.full_like(right, jnp.nan)
    place = buffer.unsafe_buffer_pointer()
    found = program(left, right, buffer)
    assert found.unsafe_buffer_pointer() == place
    assert buffer.is_deleted()
    assert not left.is_deleted()
    np.testing.assert_array_equal(found, jax.jit(product)(left, right))


def test_gradients_pass_through() -> None:
    left, right = to_resident(random(4, 32, 16)), to_resident(random(5, 32, 16))
    weights = jnp.cos(jnp.arange(left.size, dtype=jnp.float64)).reshape(left.shape)
    for large, small in (
        (multiply_batch, multiply_lanes),
        (lambda v, f: multiply_reversed_batch(multiply_batch(v, f), v), step_lanes),
    ):
        slopes = [jax.grad(lambda v, f, g=g: jnp.sum(weights * g(v, f)), (0, 1))(left, right) for g in (large, small)]
        for one, other in zip(*slopes, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1024 * EPS * float(jnp.max(jnp.abs(other))))
