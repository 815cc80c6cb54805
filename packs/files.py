"""Read a file once, safely; write files so that a killed writer leaves the old ones or a state that refuses to load.

POSIX only: the guarantees rest on `O_NOFOLLOW`, directory descriptors and atomic `rename`.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from packs.errors import PackFormatError

_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def read_once(path: str | os.PathLike[str], max_bytes: int, *, folder: int | None = None) -> bytes:
    """Return the bytes of one regular file, opened once.

    Args:
      path: the file; a symbolic link as its last part is refused.
      max_bytes: cap, compared with the file's size before a byte is read.
      folder: descriptor of the folder that `path` is relative to (see `open_folder`).

    Raises:
      PackFormatError: missing, unreadable, a link, not a regular file, larger than the cap, or changing while read.
    """
    name = os.fspath(path)
    try:
        # Without O_NONBLOCK the open of a FIFO would wait for a writer for ever.
        descriptor = os.open(name, _OPEN_FILE, dir_fd=folder)
    except OSError as error:
        raise PackFormatError(f"{_base(name)}: cannot be opened: {_reason(error)}") from None
    except ValueError:
        raise PackFormatError(f"{_base(name)}: cannot be opened: the path holds a null character") from None
    try:
        return _read_descriptor(descriptor, max_bytes, _base(name))
    except OSError as error:
        raise PackFormatError(f"{_base(name)}: cannot be read: {_reason(error)}") from None
    finally:
        os.close(descriptor)


def _read_descriptor(descriptor: int, max_bytes: int, name: str) -> bytes:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise PackFormatError(f"{name}: not a regular file")
    if status.st_size > max_bytes:
        raise PackFormatError(f"{name}: {status.st_size} bytes, more than the {max_bytes} allowed")
    parts: list[bytes] = []
    left = status.st_size + 1
    while left > 0:
        part = os.read(descriptor, left)
        if not part:
            break
        parts.append(part)
        left -= len(part)
    data = b"".join(parts)
    if len(data) != status.st_size:
        raise PackFormatError(f"{name}: changed while it was read")
    return data


@contextmanager
def open_folder(path: str | os.PathLike[str], *, follow: bool = False) -> Iterator[int]:
    """Yield a descriptor of the folder `path`, so that listing and reading see one and the same folder.

    Raises `PackFormatError` if it is missing, unreadable, no folder or (unless `follow`) a symbolic link.
    """
    name = os.fspath(path)
    try:
        descriptor = os.open(name, _OPEN_FOLDER | (0 if follow else os.O_NOFOLLOW))
    except OSError as error:
        raise PackFormatError(f"{_base(name)}: the folder cannot be opened: {_reason(error)}") from None
    except ValueError:
        raise PackFormatError(f"{_base(name)}: the folder cannot be opened: null character in its path") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def list_folder(descriptor: int) -> tuple[str, ...]:
    """Return the sorted names in an open folder; `PackFormatError` if it cannot be listed."""
    try:
        return tuple(sorted(os.listdir(descriptor)))
    except OSError as error:
        raise PackFormatError(f"the folder cannot be listed: {_reason(error)}") from None


def write_together(files: Iterable[tuple[Path, bytes]], *, mode: int | None = None) -> None:
    """Write several files that belong together: all to temporary names first, flushed, then renamed in the order given.

    Each rename is atomic. A writer killed between two renames leaves old beside new, which a seal then refuses; running
    it again mends that. Files that already hold the bytes are left alone. `OSError` is the caller's to report.

    `mode` is that of the new files from before their first byte (default: 0644 within the process's umask).
    """
    pending = [(path, data) for path, data in files if not _holds(path, data)]
    temporary: list[tuple[Path, Path]] = []
    try:
        for path, data in pending:
            # The ending keeps a left-over from being taken for a pack.
            draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
            temporary.append((draft, path))
            _write_new(draft, data, mode)
        for draft, path in temporary:
            os.replace(draft, path)
    finally:
        for draft, _ in temporary:
            draft.unlink(missing_ok=True)
    for folder in {path.parent for path, _ in pending}:
        _flush_folder(folder)


def _holds(path: Path, data: bytes) -> bool:
    return path.is_file() and not path.is_symlink() and path.read_bytes() == data


def _write_new(path: Path, data: bytes, mode: int | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o644 if mode is None else 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        if mode is not None:
            os.fchmod(descriptor, mode)  # the umask does not bind this one, and nothing was written yet
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, _OPEN_FOLDER)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _base(name: str) -> str:
    text = ascii(os.path.basename(os.path.normpath(name)))[1:-1]
    return text if len(text) <= 100 else f"{text[:97]}..."


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
