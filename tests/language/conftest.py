"""The tiny pack, built once and copied where a test damages it."""

import shutil
from pathlib import Path

import pytest

from engine.language.build import build_from_tables
from engine.language.compile import compile_vocabulary
from engine.language.vocabulary import Vocabulary
from packs.language.loader import load_language_folder
from packs.language.model import LanguagePack
from tests.language.tiny import write_tables


@pytest.fixture(scope="session")
def tables_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny pack's tables. Read only."""
    return write_tables(tmp_path_factory.mktemp("tables") / "tiny")


@pytest.fixture(scope="session")
def built_folder(tables_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny pack, built. Read only."""
    out = tmp_path_factory.mktemp("built") / "tiny"
    build_from_tables(tables_folder, out)
    return out


@pytest.fixture(scope="session")
def tiny_pack(built_folder: Path) -> LanguagePack:
    """The tiny pack, loaded."""
    return load_language_folder(built_folder, require_seal=False)


@pytest.fixture(scope="session")
def tiny_vocabulary(tiny_pack: LanguagePack) -> Vocabulary:
    """The tiny pack, compiled."""
    return compile_vocabulary(tiny_pack)


@pytest.fixture
def pack_folder(built_folder: Path, tmp_path: Path) -> Path:
    """A copy of the built pack that a test may damage."""
    return shutil.copytree(built_folder, tmp_path / "tiny")
