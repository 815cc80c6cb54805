"""Compiled programs kept on disk, on request: `compilation_cache=DIR`, shared by the jobs of a sweep and by later ones.

What lies there is machine code that is loaded and run, so the folder has to be its owner's alone; it is made so, and
refused where others could write or swap it. Programs are kept by processor, device and jaxlib: code compiled for one
processor may fail on another. JAX's own variable (`JAX_COMPILATION_CACHE_DIR`) is without effect, so that no
environment decides where a sweep's programs come from.
"""

import hashlib
import importlib.metadata
import os
import platform
import re
import stat
from pathlib import Path
from typing import Any

from engine.base.errors import ConfigError

_PROCESSOR = re.compile(r"^(?:model name|flags|Features|CPU part)\s*:.*$", re.MULTILINE)


def use_compilation_cache(folder: str | None, device: Any) -> None:
    """Keep and look up compiled programs below `folder`; with None nothing is kept or looked up.

    Raises `ConfigError` where the folder is not a folder of this user's that nobody else can enter.
    """
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    wanted = None if folder is None else str(private_folder(Path(folder), cache_key(device)))
    if jax.config.jax_compilation_cache_dir == wanted:  # type: ignore[attr-defined]
        return
    jax.config.update("jax_compilation_cache_dir", wanted)
    # Small programs too: a sweep's jobs compile many of them, and each costs more to compile than to read.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    # JAX remembers whether a cache was in use when it first compiled.
    compilation_cache.reset_cache()


def cache_key(device: Any) -> str:
    """Return the name of the folder for this machine: jaxlib, device kind, and a digest of the processor's features."""
    processor = hashlib.sha256("\n".join([platform.machine(), *_processor_lines()]).encode()).hexdigest()[:16]
    kind = re.sub(r"[^A-Za-z0-9]+", "_", str(device.device_kind))
    return f"jaxlib-{importlib.metadata.version('jaxlib')}-{device.platform}-{kind}-{processor}"


def _processor_lines() -> list[str]:
    """Return the first processor's model and features, sorted; nothing where the system does not tell."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return [platform.processor()]
    return sorted(set(_PROCESSOR.findall(text)))


def private_folder(folder: Path, name: str) -> Path:
    """Make `folder/name`, both its owner's alone, and return it; `ConfigError` where either is open to others."""
    for path in (folder, folder / name):
        try:
            path.mkdir(mode=0o700, parents=path == folder, exist_ok=True)
            found = path.lstat()
        except OSError as error:
            raise ConfigError(f"compilation_cache={folder}: {path} cannot be used ({error.strerror})") from error
        _require_private(path, found)
    for entry in (folder / name).iterdir():
        _require_private(entry, entry.lstat())
    return folder / name


def _require_private(path: Path, found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise ConfigError(
            f"compilation_cache: {path} is a symbolic link; compiled programs are read from no such place"
        )
    if found.st_uid != os.geteuid():
        raise ConfigError(f"compilation_cache: {path} belongs to user {found.st_uid}, not to {os.geteuid()}")
    if stat.S_IMODE(found.st_mode) & 0o022 or (stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) & 0o077):
        raise ConfigError(
            f"compilation_cache: {path} has mode {stat.S_IMODE(found.st_mode):04o}; others could plant programs there "
            f"(chmod 700 {path.parent if path.is_file() else path})"
        )
