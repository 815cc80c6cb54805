"""Powers, roots and interpolation of motors, all through the logarithm."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from engine.algebra.arguments import MotorLike, ScalarLike, broadcast_batch, coefficients
from engine.algebra.exponential import exp_kernel
from engine.algebra.layout import in_full_blocks
from engine.algebra.logarithm import is_unit_motor, log_kernel, require_motor
from engine.algebra.product import even_product_kernel, even_reverse_kernel
from engine.base.precision import require_float64


def motor_power_kernel(m: Float[Array, "*batch 16"], t: Float[Array, "*batch"]) -> Float[Array, "*batch 16"]:
    """exp(t log m), without checks. The identity stays exactly the identity."""
    return exp_kernel(t[..., None] * log_kernel(m))


def _slerp_kernel(
    a: Float[Array, "*batch 16"], b: Float[Array, "*batch 16"], t: Float[Array, "*batch"]
) -> Float[Array, "*batch 16"]:
    step = even_product_kernel(even_reverse_kernel(a), b)
    shorter = jnp.where(step[..., :1] < 0.0, -step, step)
    return even_product_kernel(a, motor_power_kernel(shorter, t))


_motor_power = jax.jit(motor_power_kernel)
_slerp = jax.jit(_slerp_kernel)


def motor_power(m: MotorLike, t: ScalarLike) -> Float[Array, "*batch 16"]:
    """m to the power t, exp(t log m): motors (..., 16), exponents (...); batches broadcast.

    Powers of the principal logarithm, so that power 1 is m (to rounding) and power 0 is exactly 1. Errors as `log`.
    """
    motor, exponent = coefficients(m, 16, "m"), require_float64(t, "t")
    require_motor(motor, "m")
    motor, column = broadcast_batch((motor, "m"), (exponent[..., None], "t"))
    result = in_full_blocks(_motor_power, (motor, column[..., 0]), motor.shape[:-1])
    return jnp.where(is_unit_motor(motor)[..., None], result, jnp.nan)


def square_root(m: MotorLike) -> Float[Array, "*batch 16"]:
    """The principal square root of motors (..., 16): half the motion. square_root(-1) is a turn by π in e12."""
    return motor_power(m, jnp.full((), 0.5, jnp.float64))


def slerp(a: MotorLike, b: MotorLike, t: ScalarLike) -> Float[Array, "*batch 16"]:
    """The motion from a (t = 0) to b (t = 1) at constant speed, a (reverse(a) b)^t, for motors (..., 16).

    Since b and -b are the same motion, the sign of b with the shorter way is taken: at t = 1 the result is b or -b.
    """
    start, end = coefficients(a, 16, "a"), coefficients(b, 16, "b")
    exponent = require_float64(t, "t")
    require_motor(start, "a")
    require_motor(end, "b")
    start, end, column = broadcast_batch((start, "a"), (end, "b"), (exponent[..., None], "t"))
    units = is_unit_motor(start) & is_unit_motor(end)
    result = in_full_blocks(_slerp, (start, end, column[..., 0]), start.shape[:-1])
    return jnp.where(units[..., None], result, jnp.nan)
