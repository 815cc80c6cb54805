"""The resident layout: equal to the readable implementation, exact where it says so, open to a data-flow proof."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine import algebra
from engine.algebra import resident
from engine.algebra.layout import LANES
from tests.algebra.cases import bivector
from tests.algebra.test_product import ARITHMETIC, MOVEMENT

EPS = float(np.finfo(np.float64).eps)


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("batch", [(), (3,), (0,), (5, 9), (2 * LANES,)])
def test_equal_to_the_readable_implementation(batch: tuple[int, ...]) -> None:
    v, f = jnp.asarray(random(*batch, 16)), jnp.asarray(random(*batch, 16, seed=1))
    V, F = resident.to_resident(v), resident.to_resident(f)
    for actual, expected, terms in (
        (V, v, 4),
        (resident.resident_product(V, F), algebra.even_product(v, f), 64),
        (resident.resident_times_reverse(F, V), algebra.even_product(f, algebra.even_reverse(v)), 64),
        (resident.resident_reverse(V), algebra.even_reverse(v), 4),
        (resident.resident_sandwich(V, F), algebra.sandwich(v, f), 1024),
    ):
        back = resident.from_resident(actual, batch)
        assert back.shape == (*batch, 16)
        scale = float(jnp.max(jnp.abs(expected), initial=1.0))
        np.testing.assert_allclose(back, expected, rtol=0, atol=terms * EPS * scale)
    residual = resident.lanes_to_batch(resident.resident_residual(F), batch)
    expected = algebra.closure_residual(f)
    assert residual.shape == batch
    np.testing.assert_allclose(residual, expected, rtol=0, atol=64 * EPS * float(jnp.max(expected, initial=1.0)))


def test_leading_axes_stay_and_spare_lanes_hold_the_identity() -> None:
    steps = jnp.asarray(random(4, 40, 16))
    inside = resident.to_resident(steps, lead=1)
    assert inside.shape == (4, 2, 4, 2, 2, LANES)
    np.testing.assert_allclose(resident.from_resident(inside, (40,)), steps, atol=8 * EPS)
    spare = resident.resident_residual(inside)[:, 1, 8:]
    assert np.array_equal(spare, np.zeros(spare.shape))


def test_product_by_one_is_exact() -> None:
    F = resident.to_resident(jnp.asarray(random(40, 16)))
    one = resident.to_resident(algebra.identity_motor((40,)))
    assert np.array_equal(resident.resident_product(one, F), F)
    assert np.array_equal(resident.resident_sandwich(one, F), F)


def test_conversion_is_an_isomorphism_on_the_basis() -> None:
    basis = jnp.asarray(np.eye(16))
    left, right = jnp.repeat(basis, 16, axis=0), jnp.tile(basis, (16, 1))
    product = resident.resident_product(resident.to_resident(left), resident.to_resident(right))
    assert np.array_equal(resident.from_resident(product, (256,)), algebra.even_product(left, right))


def test_far_motions_keep_their_closure_where_the_blade_basis_loses_it() -> None:
    """A walk of 2000 motions of length 100: coefficients reach 1e7, their squares lose 1e-6 long before."""
    shifts = algebra.translator(100.0 * random(2000, 3))
    turns = algebra.exp(random(2000, 1, seed=1) * bivector(e12=1.0, e13=0.5, e23=-0.3))
    motors = algebra.even_product(shifts, turns)

    @jax.jit
    def walk(start: jax.Array, motors: jax.Array) -> tuple[jax.Array, jax.Array]:
        def step(state: jax.Array, motor: jax.Array) -> tuple[jax.Array, jax.Array]:
            state = resident.resident_sandwich(motor, state)
            return state, resident.resident_residual(state)

        last, residuals = jax.lax.scan(step, resident.to_resident(start), resident.to_resident(motors, lead=1))
        return resident.from_resident(last, ()), residuals

    last, residuals = walk(algebra.translator([1.0, 2.0, 3.0]), motors)
    # Each step rounds the entries of the unit diagonal to eps, and the real part of a b' to eps |b| < 1e7 eps.
    assert float(jnp.max(residuals)) < 2000 * EPS * 1e4
    assert float(jnp.max(jnp.abs(last))) > 1.0


def test_traces_to_sums_products_and_data_movement() -> None:
    m = jnp.zeros((40, 16))
    V = resident.to_resident(m)
    traced = [
        jax.make_jaxpr(resident.to_resident)(m),
        jax.make_jaxpr(lambda r: resident.from_resident(r, (40,)))(V),
        jax.make_jaxpr(resident.resident_sandwich)(V, V),
        jax.make_jaxpr(resident.resident_product)(V, V),
        jax.make_jaxpr(resident.resident_closure)(V),
    ]
    for jaxpr in traced:
        assert {equation.primitive.name for equation in jaxpr.eqns} <= ARITHMETIC | MOVEMENT
