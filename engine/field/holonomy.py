"""Holonomy encoding: a text's motor is what remains of walking its words out and, damped, back again.

For words W1 .. Wn and damping α the motor is W1 ⋯ Wn · reverse(Wn)^(1-α) ⋯ reverse(W1)^(1-α). With α = 0 the way back
undoes the way out and nothing remains; with α = 1 there is no way back and the plain ordered product remains. In
between the order of the words and the curvature of their path are both kept.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from engine.algebra import identity_motor, motor_power
from engine.algebra.arguments import MotorLike, coefficients, is_concrete
from engine.algebra.product import even_product_kernel, even_reverse_kernel
from engine.base.errors import ConfigError, ShapeError
from engine.base.precision import require_float64


def holonomy(motors: MotorLike, alpha: Any) -> Float[Array, "*batch 16"]:
    """The holonomy motor of words (..., length, 16), damped by `alpha`, a number or (...) in [0, 1]; (..., 16).

    Shorter texts are padded with identity motors, by which products and powers are exact. No words give the identity.
    Raises `PrecisionError`, `ShapeError`, `ConfigError` for `alpha` outside [0, 1], and for a motor that is none or has
    no logarithm what `engine.algebra.log` raises. While tracing nothing is raised: there the result is NaN, which its
    closure reports (`engine.field.measure_closure`).
    """
    words = coefficients(motors, 16, "motors")
    if words.ndim < 2:
        raise ShapeError(f"motors have shape {words.shape}; (..., length, 16) is needed")
    damping = _damping(alpha, words.shape[:-2])
    if words.shape[-2] == 0:
        return identity_motor(words.shape[:-2])
    back = motor_power(words, jnp.broadcast_to(1.0 - damping[..., None], words.shape[:-1]))
    return there_and_back(words, back)


def _damping(alpha: Any, batch: tuple[int, ...]) -> Float[Array, "*batch"]:
    damping = require_float64(alpha, "alpha")
    if is_concrete(damping) and not np.all((np.asarray(damping) >= 0.0) & (np.asarray(damping) <= 1.0)):
        raise ConfigError("alpha must lie in [0, 1]")
    try:
        spread = jnp.broadcast_to(damping, batch)
    except ValueError as error:
        raise ShapeError(f"alpha has shape {damping.shape}; the batch of words is {batch}") from error
    return jnp.where((spread >= 0.0) & (spread <= 1.0), spread, jnp.nan)


@jax.jit
def there_and_back(
    words: Float[Array, "*batch length 16"], back: Float[Array, "*batch length 16"]
) -> Float[Array, "*batch 16"]:
    """Product of `words` times the reverse of the product of `back`; both products run in one loop."""
    pairs = jnp.moveaxis(jnp.stack([words, back]), -2, 0)
    start = jnp.broadcast_to(identity_motor(), pairs.shape[1:])
    (there, again), _ = lax.scan(lambda product, pair: (even_product_kernel(product, pair), None), start, pairs)
    return even_product_kernel(there, even_reverse_kernel(again))
