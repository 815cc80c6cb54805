"""The second check, inside every job: what Hydra composed must come from the installed tree and nothing else.

The first check (`experiments.overrides`) reads the command line before Hydra is imported; this one reads the result,
in child processes of launchers too, where a plugin, a search path or a tampered parent could have slipped something in.
"""

import importlib.metadata
import importlib.util
import site
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.base.origin import engine_root
from experiments.overrides import HYDRA_KEYS, HYDRA_WORD_KEYS, check_job_overrides
from packs.errors import SafetyOverrideError

CONFIG_SOURCES = {("hydra", "pkg", "hydra.conf"), ("main", "pkg", "configs"), ("schema", "structured", "")}
LAUNCHER_TARGETS = (
    "hydra._internal.core_plugins.basic_launcher.BasicLauncher",
    "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher",
    "hydra_plugins.corefield_launchers.SubmititLocalLauncher",
    "hydra_plugins.corefield_launchers.SubmititSlurmLauncher",
    "hydra_plugins.corefield_launchers.RayLauncher",
)
SWEEPER_TARGETS = ("hydra._internal.core_plugins.basic_sweeper.BasicSweeper",)
FIXED_CHOICES = {
    "hydra/env": "default",
    "hydra/callbacks": None,
    "hydra/job_logging": "none",
    "hydra/output": "default",
}


def check_plugin_locations() -> None:
    """Raise `SafetyOverrideError` where Hydra, OmegaConf or a Hydra plugin would be imported from an odd place.

    `find_spec` finds locations without importing: Hydra imports every module below `hydra_plugins` on sight, also one
    that lies in the working directory.
    """
    for distribution, module in (("hydra-core", "hydra"), ("omegaconf", "omegaconf")):
        installed = Path(str(importlib.metadata.distribution(distribution).locate_file(module)))
        found = importlib.util.find_spec(module)
        if found is None or found.origin is None or not _same(Path(found.origin).parent, installed):
            raise SafetyOverrideError(f"{module} would be imported from {found and found.origin}, not from {installed}")
    plugins = importlib.util.find_spec("hydra_plugins")
    allowed = {*_package_folders(), engine_root()}
    for location in (plugins.submodule_search_locations or ()) if plugins else ():
        if not any(_same(Path(location).parent, folder) for folder in allowed):
            raise SafetyOverrideError(f"Hydra plugins in {location} are refused: they are not installed packages")


def check_config_package(root: Path) -> None:
    """Raise `SafetyOverrideError` unless `pkg://configs` is the folder `configs` in `root`."""
    found = importlib.util.find_spec("configs")
    if found is None or found.origin is None or not _same(Path(found.origin).parent, root / "configs"):
        raise SafetyOverrideError(f"configs would be read from {found and found.origin}, not from {root / 'configs'}")


def check_composed(hydra: Mapping[str, Any]) -> None:
    """Raise `SafetyOverrideError` for anything in Hydra's own node (as plain containers) that we did not ask for."""
    sources = {(s["provider"], s["schema"], s["path"]) for s in hydra["runtime"]["config_sources"]}
    if sources != CONFIG_SOURCES:
        odd = sorted(sources ^ CONFIG_SOURCES)
        raise SafetyOverrideError(f"the configuration was composed from other sources than the installed tree: {odd}")
    for name, value in (
        ("hydra.searchpath", hydra["searchpath"]),
        ("hydra.callbacks", hydra["callbacks"]),
        ("hydra.job.env_set", hydra["job"]["env_set"]),
        ("hydra.job.env_copy", hydra["job"]["env_copy"]),
    ):
        if value:
            raise SafetyOverrideError(f"{name} is set: {value}")
    if hydra["job"]["chdir"] or hydra["output_subdir"] is not None or hydra["job"]["config_name"] != "config":
        raise SafetyOverrideError("the job's folder or primary configuration is not the one that ships")
    _check_choices(hydra["runtime"]["choices"])
    _check_target("hydra.launcher", hydra["launcher"], LAUNCHER_TARGETS)
    _check_target("hydra.sweeper", hydra["sweeper"], SWEEPER_TARGETS)
    check_job_overrides(hydra["overrides"]["task"])
    _check_hydra_overrides(hydra["overrides"]["hydra"])


def _check_choices(choices: Mapping[str, Any]) -> None:
    for group, expected in FIXED_CHOICES.items():
        if choices.get(group, expected) != expected:
            raise SafetyOverrideError(f"{group}={choices[group]} was composed; only {expected} is allowed")
    for group in ("hydra/launcher", "hydra/sweeper"):
        if choices.get(group) not in HYDRA_WORD_KEYS[group]:
            raise SafetyOverrideError(f"{group}={choices.get(group)} was composed; it is not in the allow-list")
    odd = sorted(str(group) for group in choices if not str(group).startswith("hydra/"))
    if odd != ["identity", "language"]:
        raise SafetyOverrideError(f"the groups {', '.join(odd)} were composed; expected identity and language")


def _check_target(name: str, node: Mapping[str, Any], allowed: Sequence[str]) -> None:
    if node.get("_target_") not in allowed:
        raise SafetyOverrideError(f"{name}._target_={node.get('_target_')} is not in the allow-list")


def _check_hydra_overrides(overrides: Sequence[str]) -> None:
    for argument in overrides:
        if argument.partition("=")[0] not in HYDRA_KEYS:
            raise SafetyOverrideError(f"a job was started with {argument}, which is not in the allow-list")


def _package_folders() -> set[Path]:
    folders = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
    if site.ENABLE_USER_SITE:
        folders.add(site.getusersitepackages())
    folders.add(str(importlib.metadata.distribution("hydra-core").locate_file("")))
    return {Path(folder) for folder in folders if folder}


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()
