"""The door of the field: dtype, width, evenness and grade preservation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine.algebra import apply, to_multivector
from engine.algebra.tables import BLADE_INDEX, GRADES
from engine.base.errors import NotAVersorError, PrecisionError, ShapeError
from engine.field import FieldState, propagate
from tests.field.motors import motors


def test_holds_motors_of_any_batch():
    for shape in ((), (3,), (2, 3), (0,)):
        motor = motors(1, *shape)
        np.testing.assert_array_equal(FieldState(motor).motor, motor)
    assert jax.tree.leaves(FieldState(motors(1)))[0].shape == (16,)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.int64, bool, np.complex128])
def test_other_dtypes_are_refused_and_not_cast(dtype):
    with pytest.raises(PrecisionError):
        FieldState(np.ones((2, 16), dtype))


def test_without_64_bit_types_nothing_starts():
    with jax.enable_x64(False), pytest.raises(PrecisionError, match="64-bit"):
        FieldState(np.ones(16))


@pytest.mark.parametrize("shape", [(), (15,), (32,), (16, 3)])
def test_other_widths_are_refused(shape):
    with pytest.raises(ShapeError):
        FieldState(np.ones(shape))


def test_multivectors_of_motors_are_accepted():
    motor = motors(2, 4)
    np.testing.assert_array_equal(FieldState.from_multivector(to_multivector(motor)).motor, motor)


def residual_zero_but_odd(angle=0.7):
    """cosθ + sinθ·e123: its product with its reverse is 1, and it is no versor."""
    return np.zeros(32) + np.cos(angle) * np.eye(32)[0] + np.sin(angle) * np.eye(32)[BLADE_INDEX["e123"]]


def test_odd_content_is_refused_even_with_residual_zero():
    from engine.algebra import geometric_product, reverse

    x = jnp.asarray(residual_zero_but_odd())
    np.testing.assert_allclose(geometric_product(x, reverse(x)), np.eye(32)[0], atol=1e-15)
    with pytest.raises(NotAVersorError, match="odd"):
        FieldState.from_multivector(x)
    batch = jnp.stack([to_multivector(motors(2)), x])
    with pytest.raises(NotAVersorError, match="1"):
        FieldState.from_multivector(batch)


@pytest.mark.parametrize("fault", ["scaled", "not grade preserving", "nan", "infinite", "zero"])
def test_even_elements_off_the_manifold_are_refused(fault):
    full = np.array(to_multivector(motors(3)))
    full = {
        "scaled": full * (1 + 1e-5),
        "not grade preserving": np.eye(32)[0] * np.sqrt(0.5) + np.eye(32)[BLADE_INDEX["e1234"]] * np.sqrt(0.5),
        "nan": np.where(GRADES == 4, np.nan, full),
        "infinite": np.where(GRADES == 4, np.inf, full),
        "zero": np.zeros(32),
    }[fault]
    with pytest.raises(NotAVersorError):
        FieldState.from_multivector(jnp.asarray(full))


def test_closed_even_elements_preserve_grade():
    """The theorem the door rests on: F even with F reverse(F) = 1 carries vectors to vectors."""
    vectors = jnp.asarray(np.eye(32)[1:6])
    images = apply(motors(5, 7)[:, None], vectors[None])
    assert np.abs(np.asarray(images)[..., GRADES != 1]).max() < 1e-14


def test_while_tracing_odd_content_turns_up_in_the_closure():
    versors = motors(1, 2)
    _, closure = jax.jit(lambda x: propagate(FieldState.from_multivector(x), versors))(
        jnp.asarray(residual_zero_but_odd())
    )
    assert not closure.ok
    assert closure.first_violation == 0
    assert closure.max_residual == jnp.inf
