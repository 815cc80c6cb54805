"""Files that survive a kill: fsync, a SHA-256 manifest of everything, one rename, a lock against two writers."""

import errno
import fcntl
import hashlib
import json
import os
import shutil
import stat
from io import BufferedReader
from pathlib import Path
from typing import Any

from engine.base.errors import CheckpointLockedError, CheckpointMismatchError, CheckpointWriteError

MANIFEST = "manifest.json"
MAX_MANIFEST_BYTES = 16 * 2**20
TEMPORARY_PREFIX = ".tmp-"


def canonical(value: Any) -> bytes:
    """Return the one byte form of a JSON value: sorted keys, no spaces, ASCII, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def read_canonical(path: Path, limit: int = MAX_MANIFEST_BYTES) -> Any:
    """Return the JSON value in `path`; anything but its one byte form is a `CheckpointMismatchError`."""
    data = _read_regular(path, limit)
    try:
        value = json.loads(data)
        same = canonical(value) == data
    except (ValueError, RecursionError) as error:
        raise CheckpointMismatchError(f"{path}: not readable as JSON ({type(error).__name__}); it is damaged") from None
    if not same:
        raise CheckpointMismatchError(f"{path}: its bytes are not those that were written; it is damaged")
    return value


def _open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading; a symlink, folder, FIFO or device is a `CheckpointMismatchError`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise CheckpointMismatchError(f"{path}: cannot be opened ({error.strerror})") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CheckpointMismatchError(f"{path}: not a regular file")
    return os.fdopen(descriptor, "rb")


def _read_regular(path: Path, limit: int) -> bytes:
    with _open_regular(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise CheckpointMismatchError(f"{path}: more than the {limit} bytes allowed")
    return data


def digest(path: Path) -> str:
    """Return the SHA-256 of a regular file (no symlink followed), read in pieces."""
    with _open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def contents(folder: Path) -> dict[str, Path]:
    """Return every entry below `folder` that is not a folder, by its POSIX path relative to it."""
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            found[path.relative_to(folder).as_posix()] = path
    return found


def write_manifest(folder: Path) -> None:
    """Write `manifest.json` over every file now below `folder`."""
    (folder / MANIFEST).write_bytes(
        canonical({"files": {name: digest(path) for name, path in contents(folder).items()}})
    )


def check_manifest(folder: Path) -> None:
    """Raise `CheckpointMismatchError` unless `folder` holds exactly the files of its manifest, byte for byte."""
    value = read_canonical(folder / MANIFEST)
    files = value.get("files") if isinstance(value, dict) else None
    if not isinstance(files, dict) or not files or len(value) != 1:
        raise CheckpointMismatchError(f"{folder / MANIFEST}: lists no files; it is damaged")
    found = contents(folder)
    found.pop(MANIFEST, None)
    if missing := sorted(set(files) - set(found)):
        raise CheckpointMismatchError(f"{folder}: {missing[0]} is in the manifest and not in the folder")
    if extra := sorted(set(found) - set(files)):
        raise CheckpointMismatchError(f"{folder}: {extra[0]} is in the folder and not in the manifest")
    for name, path in sorted(found.items()):
        actual = digest(path)
        if actual != files[name]:
            raise CheckpointMismatchError(
                f"{path}: SHA-256 is {actual}, the manifest says {files[name]}; it is damaged"
            )


def sync_tree(folder: Path) -> None:
    """Force every file and folder below `folder`, and `folder` itself, to the disk."""
    for root, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(Path(root, name))
        sync(Path(root))


def sync(path: Path) -> None:
    """Force one file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(folder: Path) -> None:
    """Remove what killed writers left in `folder`. Only called while the lock is held."""
    for path in folder.glob(TEMPORARY_PREFIX + "*"):
        shutil.rmtree(path)


class WriterLock:
    """An exclusive lock on a checkpoint folder, held by at most one process and dropped by the kernel on a kill."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise CheckpointWriteError(f"{folder}: cannot be written ({error.strerror})") from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise CheckpointLockedError(f"{folder}: another process is writing checkpoints here") from None
            raise CheckpointWriteError(f"{folder}: cannot be locked ({error.strerror})") from None

    def release(self) -> None:
        """Drop the lock; the lock file stays, since removing it would let two writers in."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
