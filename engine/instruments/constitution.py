"""The constitution in force: the files of a folder, their digests, and the one text that readings are taken against."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from engine.instruments.files import FileFault, read_text, text_sha256

ConstitutionFault: TypeAlias = Literal[
    "no_constitution_dir", "no_constitution_files", "constitution_read_error", "empty_constitution"
]


class ConstitutionUnreadable(Exception):
    """The constitution cannot be had; `code` is one of the four abstain codes, the text one line."""

    def __init__(self, code: ConstitutionFault, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class ConstitutionFile:
    """One file: its name, its stripped text and that text's digest."""

    name: str
    text: str
    sha256: str


@dataclass(frozen=True)
class Constitution:
    """The files in force, sorted by name, and `text`: theirs, stripped, joined by a blank line."""

    folder: Path
    files: tuple[ConstitutionFile, ...]
    text: str
    sha256: str

    @property
    def first(self) -> ConstitutionFile:
        """The file that the amend arm rewrites."""
        return self.files[0]


def read_constitution(folder: str | os.PathLike[str] | None) -> Constitution:
    """Return the constitution in `folder`. The faults, in this order, raise `ConstitutionUnreadable`:

    `no_constitution_dir` (none given), `no_constitution_files` (absent, or no `*.md` in it), `constitution_read_error`,
    `empty_constitution`.
    """
    if folder is None or not os.fspath(folder):
        raise ConstitutionUnreadable("no_constitution_dir", "no constitution folder was given")
    paths = constitution_paths(folder)
    if not paths:
        raise ConstitutionUnreadable("no_constitution_files", f"no *.md files in {folder}")
    files = []
    for path in paths:
        try:
            text = read_text(path).strip()
        except FileFault as fault:
            raise ConstitutionUnreadable("constitution_read_error", str(fault)) from None
        files.append(ConstitutionFile(path.name, text, text_sha256(text)))
    text = join_texts([file.text for file in files])
    if not text:
        raise ConstitutionUnreadable("empty_constitution", f"the *.md files in {folder} hold no text")
    return Constitution(Path(folder), tuple(files), text, text_sha256(text))


def constitution_paths(folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Return the `*.md` entries of `folder` sorted by name; none if it is absent.

    Raises `ConstitutionUnreadable` (`constitution_read_error`) if it is there and cannot be listed.
    """
    try:
        with os.scandir(folder) as entries:
            return tuple(Path(folder) / name for name in sorted(e.name for e in entries if _is_text_name(e.name)))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConstitutionUnreadable("constitution_read_error", f"{folder} cannot be listed: {reason}") from None


def join_texts(texts: list[str]) -> str:
    """Return the stripped, non-empty texts joined by a blank line."""
    return "\n\n".join(stripped for text in texts if (stripped := text.strip()))


def _is_text_name(name: str) -> bool:
    return re.fullmatch(r"[^.].*\.md", name, flags=re.DOTALL) is not None
