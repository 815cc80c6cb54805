"""Verify that engine, packs, configs and experiments come from one root.

A folder named `packs` in the working directory replaces ours under `python -m` and `PYTHONPATH=.`. Every entry point
calls this before it imports anything else, so this module needs nothing but the standard library.
"""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

COMPANIONS = ("packs", "configs", "experiments")
"""The packages that are installed beside `engine` and have to come from the same folder."""


def engine_root() -> Path:
    """Return the folder that holds the `engine` package which is running."""
    return Path(os.path.abspath(__file__)).parent.parent.parent


def foreign_packages() -> tuple[str, ...]:
    """Return one line for each companion package, or module of one, that does not come from the engine's own root."""
    root = engine_root()
    problems = [problem for name in COMPANIONS if (problem := _problem_of_package(name, root)) is not None]
    for name, module in sorted(sys.modules.items()):
        package = name.partition(".")[0]
        if package in (*COMPANIONS, "engine") and "." in name and not _is_ours(module, root / package):
            problems.append(f"{name} comes from {_origin(module)}, not from {root}")
    return tuple(problems)


def verify_one_root() -> None:
    """Raise `SafetyOverrideError` if a companion package does not come from the engine's own root."""
    problems = foreign_packages()
    if not problems:
        return
    raise _override_error()(f"{problems[0]}: another folder on the import path stands in for it")


def _problem_of_package(name: str, root: Path) -> str | None:
    module = sys.modules.get(name)
    if module is not None:
        path, origin = list(getattr(module, "__path__", [])), _origin(module)
    else:
        spec = importlib.util.find_spec(name)
        if spec is None:
            return f"{name} is not installed beside the engine in {root}"
        path, origin = list(spec.submodule_search_locations or []), str(spec.origin)
    expected = root / name
    # The path is compared too: submodules are found through it, whatever the package's own file is.
    if [os.path.abspath(part) for part in path] == [str(expected)] and origin == str(expected / "__init__.py"):
        return None
    return f"{name} comes from {origin}, not from {root}"


def _is_ours(module: ModuleType | None, folder: Path) -> bool:
    # None marks an import that was blocked on purpose; a module without a file was made in memory.
    if module is None or getattr(module, "__file__", None) is None:
        return module is None
    return Path(_origin(module)).is_relative_to(folder)


def _origin(module: ModuleType) -> str:
    return os.path.abspath(str(getattr(module, "__file__", None)))


def _override_error() -> type[Exception]:
    """Return `SafetyOverrideError` of our own `packs.errors`, even where another `packs` is the one on the path."""
    path = engine_root() / "packs" / "errors.py"
    module = sys.modules.get("packs.errors")
    if module is None or _origin(module) != str(path):
        spec = importlib.util.spec_from_file_location("_corefield_errors", path)
        if spec is None or spec.loader is None or not path.is_file():
            return RuntimeError
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    kind: type[Exception] = module.SafetyOverrideError
    return kind
