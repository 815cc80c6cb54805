"""A wheel installed in an empty environment, with no checkout in sight, works like the checkout."""

import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    (built,) = folder.glob("corefield-*.whl")
    return built


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the `core` command of a new environment that holds the wheel; only third-party packages are shared."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    paths = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", vars=paths))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    # A path line in a .pth file does not run the .pth files of that path: the editable checkout stays out of sight.
    (site / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    command = folder / "bin" / "core"
    command.write_text(f"#!{folder}/bin/python\nimport sys\nfrom engine.cli import main\nsys.exit(main())\n")
    command.chmod(0o755)
    return command


def run(core: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "CORE_"))}
    environment.pop("XLA_FLAGS", None)
    return subprocess.run(
        [str(core), *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=500, check=False
    )


def test_the_wheel_carries_every_data_file_unchanged(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        carried = {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}
    listed = subprocess.run(
        ["git", "ls-files", "-z", "packs", "configs"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    names = [name for name in listed.stdout.split("\0") if name]
    assert names
    for name in names:
        assert carried.get(name) == hashlib.sha256((ROOT / name).read_bytes()).hexdigest(), name


def test_the_wheel_brings_no_tests_and_no_scripts(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist() if ".dist-info" not in name}
    assert tops == {"engine", "packs", "configs", "experiments", "hydra_plugins"}


def test_packs_load_from_the_wheel(core: Path, tmp_path: Path) -> None:
    result = run(core, tmp_path, "chat", "--show-safety-pack", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["ratified"] is True


def test_a_sweep_runs_from_the_wheel(core: Path, tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_text("What is truth?\nWhy does doubt matter?\n", encoding="utf-8")
    result = run(core, tmp_path, "sweep", "-m", "identity=glob(*)", "prompts=prompts.txt")
    assert result.returncode == 0, result.stderr
    tables = list(tmp_path.rglob("results.csv"))
    assert tables
    assert "precision_first_v1" in result.stdout


def test_the_override_hatch_is_shut_in_a_wheel(core: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORE_ALLOW_UNRATIFIED_SAFETY", "1")
    environment = {**os.environ, "CORE_ALLOW_UNRATIFIED_SAFETY": "1"}
    result = subprocess.run(
        [str(core), "chat", "--show-safety-pack"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    # The shipped pack is sealed, so it either loads as ratified or is refused; it is never loaded through the hatch.
    assert "unratified" not in result.stdout.lower()
