"""The folder of compiled programs: on request only, its owner's alone, and without effect on any result."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import pytest

from engine.base.errors import ConfigError
from experiments.compilation import cache_key, private_folder
from experiments.device import use_device


@pytest.fixture(autouse=True)
def no_cache_afterwards() -> Iterator[None]:
    yield
    use_device("cpu")


def test_a_program_compiled_once_is_kept_in_a_folder_of_its_machine_and_is_its_owners_alone(tmp_path: Path) -> None:
    device = use_device("cpu", str(tmp_path / "cache"))
    jax.jit(lambda x: x * 3.0 + 0.125)(jax.numpy.ones(7)).block_until_ready()
    folder = tmp_path / "cache" / cache_key(device)
    assert [path for path in folder.iterdir() if path.name.endswith("-cache")]
    assert (folder.stat().st_mode & 0o777, folder.parent.stat().st_mode & 0o777) == (0o700, 0o700)
    assert jax.__version__ in folder.name


def test_without_the_key_nothing_is_kept_whatever_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    use_device("cpu")
    jax.jit(lambda x: x * 5.0 + 0.375)(jax.numpy.ones(7)).block_until_ready()
    assert list(tmp_path.iterdir()) == []


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "open to the group": (lambda folder: folder.chmod(0o770), "has mode 0770"),
    "open to all": (lambda folder: folder.chmod(0o755), "has mode 0755"),
    "inner folder open": (lambda folder: (folder / "key").chmod(0o777), "has mode 0777"),
    "a program that others could write": (lambda folder: (folder / "key" / "x-cache").chmod(0o666), "has mode 0666"),
    "a symlink to a program": (
        lambda folder: (
            (folder / "key" / "x-cache").unlink(),
            (folder / "key" / "x-cache").symlink_to("/etc/hostname"),
        ),
        "symbolic link",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_folder_that_others_could_write_is_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "cache"
    (private_folder(folder, "key") / "x-cache").write_bytes(b"program")
    (folder / "key" / "x-cache").chmod(0o600)
    private_folder(folder, "key")
    change, words = HOSTILE[name]
    change(folder)
    with pytest.raises(ConfigError, match=words):
        private_folder(folder, "key")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to give a folder away")
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    private_folder(folder, "key")
    os.chown(folder, 12345, 12345)
    with pytest.raises(ConfigError, match="belongs to user 12345"):
        private_folder(folder, "key")


def test_a_symlink_or_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").write_text("")
    for name in ("link", "file"):
        with pytest.raises(ConfigError, match=r"symbolic link|cannot be used"):
            private_folder(tmp_path / name, "key")


def test_a_corrupted_program_is_compiled_again_and_gives_the_same(tmp_path: Path) -> None:
    def compute() -> bytes:
        jax.clear_caches()
        return jax.jit(lambda x: x * 7.0 + 0.625)(jax.numpy.ones(9)).tobytes()

    device = use_device("cpu", str(tmp_path / "cache"))
    first = compute()
    for path in (tmp_path / "cache" / cache_key(device)).glob("*-cache"):
        path.write_bytes(b"not a program")
    with pytest.warns(UserWarning, match="persistent compilation cache"):
        assert compute() == first
