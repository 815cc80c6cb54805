"""How the instruments read a user's files and write their own: regular files only, size-capped, atomic, flushed."""

import hashlib
import os
from pathlib import Path

from packs.errors import PackFormatError
from packs.files import read_once, write_together

TEXT_LIMIT = 4 * 2**20
"""Largest text file read, in bytes."""


class FileFault(Exception):
    """A user's file cannot be read or written; its text is one line. Each caller turns it into its own kind of
    answer."""


def read_bytes(path: str | os.PathLike[str], limit: int = TEXT_LIMIT) -> bytes:
    """Return the bytes of a regular file of at most `limit` bytes; links are followed, pipes and devices refused.

    Raises `FileFault`.
    """
    try:
        return read_once(os.path.realpath(path), limit)
    except (PackFormatError, OSError, ValueError) as error:
        raise FileFault(str(error)) from None


def read_text(path: str | os.PathLike[str], limit: int = TEXT_LIMIT) -> str:
    """Return a UTF-8 file's text (a byte order mark is dropped). Raises `FileFault`."""
    data = read_bytes(path, limit)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFault(f"{Path(path).name}: not UTF-8 at byte {error.start}") from None


def write_atomic(path: str | os.PathLike[str], data: bytes, *, mode: int | None = None) -> None:
    """Write `data` to `path` by way of a temporary file, flushed and renamed. Raises `FileFault`.

    `mode` is the new file's from the start (default: 0644 within the process's umask).
    """
    try:
        write_together([(Path(path), data)], mode=mode)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileFault(f"{Path(path).name}: cannot be written: {reason}") from None


def text_sha256(text: str) -> str:
    """Return the SHA-256 of a text's UTF-8 bytes; lone surrogates are hashed as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
