"""Choose the device that was asked for, or say that it is not there; never fall back to another one."""

import importlib.metadata
import logging
import os
import platform
from collections.abc import Callable
from typing import Any

from engine.base.errors import DeviceError
from experiments.compilation import use_compilation_cache

LOG = logging.getLogger("corefield.sweep")
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


def use_device(kind: str, compilation_cache: str | None = None, *, devices: int = 1) -> Any:
    """Switch on 64-bit types and return the first device of `kind` (cpu, gpu or tpu) of this process.

    Raises `DeviceError` where there is none, or fewer than `devices`. A processor counts as one device unless more are
    asked for before JAX has started: then it is divided into as many, for trying out what several devices do.
    `compilation_cache` is a folder in which compiled programs are kept (`experiments.compilation`); without one nothing
    is kept, whatever the environment says. Raises `ConfigError` for a folder that others could write.
    """
    import jax

    from engine.base.precision import enable_x64

    enable_x64()
    if kind == "cpu":
        # Without this JAX starts every accelerator it finds and reserves its memory.
        jax.config.update("jax_platforms", "cpu")
        _divide_processor(devices)
    try:
        found = jax.local_devices(backend=kind)
    except RuntimeError as error:
        reason = str(error).splitlines()[0] if str(error) else "not found"
        raise DeviceError(f"device={kind}: there is none on this machine or in this installation ({reason})") from error
    if len(found) < devices:
        raise DeviceError(f"devices={devices}: this process has {len(found)} of the kind {kind}")
    use_compilation_cache(compilation_cache, found[0])
    return found[0]


def _divide_processor(devices: int) -> None:
    import jax

    if devices > 1 and "host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        try:
            jax.config.update("jax_num_cpu_devices", devices)
        except RuntimeError as error:
            # JAX has started. The caller counts what is there, and refuses where that is less.
            LOG.debug("the processor was not divided: %s", error)


def placement(kind: str, devices: int, progress: Callable[[int, int], None] | None = None) -> Any:
    """Return where rows run: on all devices of the joined cluster, else on the first `devices` of this process."""
    import jax

    from engine.field import data_mesh
    from engine.runtime.settings import Placement
    from experiments.cluster import joined

    if joined() is not None:
        return Placement(data_mesh(None, jax.devices(kind)), progress)
    mesh = data_mesh(devices, jax.local_devices(backend=kind)) if devices > 1 else None
    return Placement(mesh, progress)


def describe_devices(device: Any) -> dict[str, str]:
    """Return what of the platform decides the last bits of a result: device kind and count, and the compiler."""
    import jax

    return {
        "devices": f"{len(jax.devices(device.platform))} x {device.platform} {device.device_kind}",
        "machine": platform.machine(),
        "jaxlib": importlib.metadata.version("jaxlib"),
    }


def describe_environment(device: Any, *, devices: int = 1) -> dict[str, Any]:
    """Return the software and the device that results were made with, as plain values.

    `devices` is how many of one process the rows were spread over; a cluster takes all that its processes have.
    """
    import jax

    from engine import __version__
    from experiments.cluster import joined

    return {
        "corefield": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpu_count": os.cpu_count(),
        "backend": device.platform,
        "device_kind": device.device_kind,
        "devices": len(jax.devices(device.platform)) if joined() is not None else devices,
        "processes": jax.process_count(),
        "precision": "float64",
        "distributions": {name: importlib.metadata.version(name) for name in RECORDED_DISTRIBUTIONS},
    }
