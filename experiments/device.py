"""Choose the device that was asked for, or say that it is not there; never fall back to another one."""

import importlib.metadata
import os
import platform
from typing import Any

from engine.base.errors import DeviceError
from experiments.compilation import use_compilation_cache

RECORDED_DISTRIBUTIONS = (
    "jax",
    "jaxlib",
    "equinox",
    "numpy",
    "hydra-core",
    "omegaconf",
    "orbax-checkpoint",
    "pyarrow",
)


def use_device(kind: str, compilation_cache: str | None = None) -> Any:
    """Switch on 64-bit types and return the first device of `kind` (cpu, gpu or tpu). Raises `DeviceError`.

    `compilation_cache` is a folder in which compiled programs are kept (`experiments.compilation`); without one nothing
    is kept, whatever the environment says. Raises `ConfigError` for a folder that others could write.
    """
    import jax

    from engine.base.precision import enable_x64

    enable_x64()
    if kind == "cpu":
        # Without this JAX starts every accelerator it finds and reserves its memory.
        jax.config.update("jax_platforms", "cpu")
    try:
        device = jax.devices(kind)[0]
    except RuntimeError as error:
        reason = str(error).splitlines()[0] if str(error) else "not found"
        raise DeviceError(f"device={kind}: there is none on this machine or in this installation ({reason})") from error
    use_compilation_cache(compilation_cache, device)
    return device


def describe_devices(device: Any) -> dict[str, str]:
    """Return what of the platform decides the last bits of a result: device kind and count, and the compiler."""
    import jax

    return {
        "devices": f"{len(jax.devices(device.platform))} x {device.platform} {device.device_kind}",
        "machine": platform.machine(),
        "jaxlib": importlib.metadata.version("jaxlib"),
    }


def describe_environment(device: Any) -> dict[str, Any]:
    """Return the software and the device that results were made with, as plain values."""
    from engine import __version__

    return {
        "corefield": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpu_count": os.cpu_count(),
        "backend": device.platform,
        "device_kind": device.device_kind,
        "precision": "float64",
        "distributions": {name: importlib.metadata.version(name) for name in RECORDED_DISTRIBUTIONS},
    }
