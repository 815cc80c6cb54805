"""Imports run one way, importing has no side effect, and a planted leak is caught."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("engine", "packs", "configs", "experiments", "scripts")

LEAKS = {
    "upwards": ("engine/algebra/planted_leak.py", "import engine.runtime\n"),
    "sibling": ("engine/identity/planted_leak.py", "import engine.field\n"),
    "packs see the engine": ("packs/planted_leak.py", "import engine.base.errors\n"),
    "packs see a library": ("packs/planted_leak.py", "import numpy\n"),
    "engine sees Hydra": ("engine/field/planted_leak.py", "import hydra\n"),
}


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the contracts of `folder`'s pyproject over the packages in `folder`."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    return subprocess.run(
        [*command, "--no-cache"], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder / "pyproject.toml")
    return folder


def test_the_tree_keeps_every_contract(copy: Path) -> None:
    result = lint_imports(copy)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("leak", LEAKS)
def test_a_planted_leak_is_caught(copy: Path, leak: str) -> None:
    name, text = LEAKS[leak]
    planted = copy / name
    planted.write_text(text)
    try:
        result = lint_imports(copy)
    finally:
        planted.unlink()
    assert result.returncode != 0
    assert "planted_leak" in result.stdout


SIDE_EFFECTS = """
import importlib, os, pkgutil, sys, threading
before_files = set(os.listdir("."))
before_environment = dict(os.environ)
import jax
x64 = jax.config.read("jax_enable_x64")
skipped = []
for package in {packages!r}:
    root = importlib.import_module(package)
    for module in pkgutil.walk_packages(root.__path__, package + "."):
        if module.name.endswith("__main__"):
            continue
        importlib.import_module(module.name)
assert jax.config.read("jax_enable_x64") == x64, "x64 was switched on import"
assert set(os.listdir(".")) == before_files, "a file was made on import"
assert dict(os.environ) == before_environment, "the environment was changed on import"
assert threading.active_count() == 1, threading.enumerate()
"""


def test_importing_any_module_has_no_side_effect(tmp_path: Path) -> None:
    code = SIDE_EFFECTS.format(packages=("engine", "packs", "configs", "experiments"))
    result = subprocess.run(
        [sys.executable, "-B", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["packs", "list"], ["chat", "--show-safety-pack"]])
def test_light_commands_never_import_jax(arguments: list[str], tmp_path: Path) -> None:
    code = (
        "import sys\nfrom engine.cli import main\n"
        "try:\n    status = main(sys.argv[1:])\nexcept SystemExit as stop:\n    status = stop.code\n"
        "heavy = {'jax', 'numpy', 'hydra', 'scipy', 'matplotlib', 'pyarrow'} & set(sys.modules)\n"
        "sys.exit(f'imported {sorted(heavy)}' if heavy else status)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stderr
