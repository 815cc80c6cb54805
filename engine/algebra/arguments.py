"""What the public functions check of their arguments: float64, the right width, batches that broadcast.

The annotations of arguments say the shape but leave the refusal to these checks, so that a caller gets the same typed
error with and without a run-time type checker.
"""

from typing import Annotated, Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from engine.base.errors import ShapeError
from engine.base.precision import require_float64

MultivectorLike: TypeAlias = Annotated[Any, Float[Array, "*batch 32"]]
MotorLike: TypeAlias = Annotated[Any, Float[Array, "*batch 16"]]
BivectorLike: TypeAlias = Annotated[Any, Float[Array, "*batch 10"]]
VectorLike: TypeAlias = Annotated[Any, Float[Array, "*batch 3"]]
MatrixLike: TypeAlias = Annotated[Any, Float[Array, "*batch 3 3"]]
ScalarLike: TypeAlias = Annotated[Any, Float[Array, "*batch"]]


def coefficients(value: object, width: int, name: str) -> Array:
    """`value` as a float64 array whose last axis has `width` entries; `PrecisionError` or `ShapeError` otherwise."""
    array = require_float64(value, name)
    if array.ndim == 0 or array.shape[-1] != width:
        raise ShapeError(f"{name} has shape {array.shape}; its last axis must have {width} entries")
    return array


def broadcast_batch(*pairs: tuple[Array, str], core: int = 1) -> tuple[Array, ...]:
    """The arrays with their leading (batch) axes broadcast against each other; the last `core` axes stay."""
    shapes = [array.shape[: array.ndim - core] for array, _ in pairs]
    if len(set(shapes)) == 1:
        return tuple(array for array, _ in pairs)
    try:
        batch = jnp.broadcast_shapes(*shapes)
    except ValueError as error:
        named = ", ".join(f"{name} {array.shape}" for array, name in pairs)
        raise ShapeError(f"batch axes do not broadcast: {named}") from error
    return tuple(jnp.broadcast_to(array, batch + array.shape[array.ndim - core :]) for array, _ in pairs)


def is_concrete(*values: object) -> bool:
    """Whether every value is known now, so that an eager check can look at it (it is not being traced)."""
    return not any(isinstance(value, jax.core.Tracer) for value in values)


def first_failure(failed: object) -> tuple[int, ...] | None:
    """Batch index of the first true entry of a concrete array of flags, or None."""
    flags = np.asarray(failed)
    if not flags.any():
        return None
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(flags)), flags.shape))
