"""Texts that ship with the package: prompts, views and the example readings, found beside the `configs` package."""

import importlib.resources
from contextlib import AbstractContextManager
from importlib.resources.abc import Traversable
from pathlib import Path


def packaged(*parts: str) -> Traversable:
    """Return a shipped file or folder under `configs/`. It is found through the installed package, never through the
    working folder."""
    return importlib.resources.files("configs").joinpath(*parts)


def packaged_path(*parts: str) -> AbstractContextManager[Path]:
    """Return a context in which a shipped file is a path on the disk."""
    return importlib.resources.as_file(packaged(*parts))


def packaged_texts(*parts: str) -> dict[str, str]:
    """Return the shipped `*.md` texts in a folder under `configs/`: stem to stripped text, sorted by name."""
    entries = sorted(packaged(*parts).iterdir(), key=lambda entry: entry.name)
    return {
        entry.name.removesuffix(".md"): entry.read_text(encoding="utf-8").strip()
        for entry in entries
        if entry.name.endswith(".md")
    }
