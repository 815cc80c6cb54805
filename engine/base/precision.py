"""Float64, said once. Entry points call `enable_x64`; library calls call `require_float64` and never cast."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from engine.base.errors import PrecisionError


def enable_x64() -> None:
    """Switch JAX to 64-bit types. Called by the entry points only (commands, scripts, the tests' conftest)."""
    jax.config.update("jax_enable_x64", True)


def require_x64() -> None:
    """Raise `PrecisionError` unless JAX runs with 64-bit types."""
    if jax.dtypes.canonicalize_dtype(np.float64) != np.dtype(np.float64):
        raise PrecisionError(
            "64-bit types are off: call engine.base.precision.enable_x64() at the entry point, before any array is made"
        )


def require_float64(value: object, name: str) -> Array:
    """Return `value` as a JAX array if it already is float64, else raise `PrecisionError`; nothing is cast.

    Python floats and (nested) lists of them are float64 by nature and are accepted.
    """
    require_x64()
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        value = np.asarray(value)
        dtype = value.dtype
    if dtype != np.dtype(np.float64):
        raise PrecisionError(f"{name} has dtype {dtype}; float64 is required and nothing is cast")
    return jnp.asarray(value)
