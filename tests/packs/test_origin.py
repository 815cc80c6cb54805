"""Engine, packs, configs and experiments come from one root, or nothing starts."""

import subprocess
import sys
import types
from pathlib import Path

import pytest

from engine.base import origin
from packs.errors import SafetyOverrideError
from tests.attacks.workspace import PACKS


def test_this_installation_is_one_root() -> None:
    assert origin.foreign_packages() == ()
    origin.verify_one_root()
    assert origin.engine_root() == PACKS.parent


@pytest.mark.parametrize("name", ["packs.safety.loader", "configs", "experiments", "engine.base.errors"])
def test_a_module_from_elsewhere_is_refused(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = types.ModuleType(name)
    fake.__file__ = str(tmp_path / "__init__.py")
    fake.__path__ = [str(tmp_path)]
    monkeypatch.setitem(sys.modules, name, fake)
    with pytest.raises(SafetyOverrideError, match=rf"^{name} comes from .*{tmp_path.name}"):
        origin.verify_one_root()


def test_a_module_without_a_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "packs.safety.pinned", types.ModuleType("packs.safety.pinned"))
    with pytest.raises(SafetyOverrideError, match=r"packs\.safety\.pinned"):
        origin.verify_one_root()


def test_a_second_folder_on_the_package_path_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import packs

    monkeypatch.setattr(packs, "__path__", [*packs.__path__, str(tmp_path)])
    with pytest.raises(SafetyOverrideError, match=r"^packs comes from"):
        origin.verify_one_root()


@pytest.mark.parametrize("name", ["packs", "configs", "experiments"])
def test_a_package_that_stands_in_is_refused_by_an_entry_point(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("")
    result = subprocess.run(
        [sys.executable, "-c", "from engine.cli import main; raise SystemExit(main(['packs', 'list']))"],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:{PACKS.parent}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert result.stderr.startswith(f"core: SafetyOverrideError: {name} comes from {tmp_path}")
    assert result.stderr.count("\n") == 1


def test_the_error_is_ours_even_when_packs_is_not(tmp_path: Path) -> None:
    (tmp_path / "packs").mkdir()
    (tmp_path / "packs" / "__init__.py").write_text("")
    program = (
        "from engine.base.origin import verify_one_root\n"
        "try:\n    verify_one_root()\n"
        "except RuntimeError as error:\n    print(type(error).__name__, type(error).__mro__[1].__name__)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:{PACKS.parent}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split() == ["SafetyOverrideError", "SafetyPackError"]
