"""The one append-only record log: JSONL in ASCII, each record chained to the line before it by hash.

A record is one `write` of one line under an exclusive lock, flushed with `fsync` before it counts as recorded. A line
that a killed writer left unfinished is closed off first and stays in the chain as it is, so that it can neither
swallow the next record nor be dropped unseen. Readers get `RecordError` for anything that does not say what its
hashes say.
"""

import fcntl
import hashlib
import json
import os
import stat
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.base.errors import RecordError

GENESIS = "0" * 64
"""`prev_sha256` of the first record of a log."""

_OPEN = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_LOCK_SECONDS = 30.0
_CHUNK = 2**20
_MAX_LINE = 64 * 2**20


class RecordWarning(UserWarning):
    """A record could not be written; the instrument's result says `recorded: false`."""


@dataclass(frozen=True)
class LogLine:
    """One line of a log: its number, its record (None for a line that a killed writer left unfinished) and its hash."""

    number: int
    record: Mapping[str, Any] | None
    sha256: str


def append_record(path: str | os.PathLike[str], record: Mapping[str, Any]) -> bool:
    """Append `record` to the log at `path` with the hash of the line before it; return whether it is on the disk.

    The file is made with mode 0600. A symbolic link, a pipe, a device, a full disk or a lock that another process
    does not give back within 30 s is a `RecordWarning` and False: an instrument never breaks its host. A failed write
    is cut back to where the file ended, so that it leaves no half line behind.
    """
    try:
        descriptor = _open_locked(path)
    except (OSError, ValueError) as error:
        return _not_recorded(path, error)
    try:
        _append(descriptor, record)
    except OSError as error:
        return _not_recorded(path, error)
    finally:
        os.close(descriptor)
    return True


def read_log(path: str | os.PathLike[str]) -> Iterator[LogLine]:
    """Yield the lines of a log in order, each checked against the hash of the one before.

    Raises `RecordError`: the file cannot be read, a record names another predecessor (a line was edited, dropped or
    moved), or a line is no record although it is not a killed writer's remainder.
    """
    previous, number = GENESIS, 0
    for number, text in enumerate(_raw_lines(path), start=1):
        line = text.removesuffix(b"\n")
        record = parse_line(line)
        if record is None and not _may_be_torn(line):
            raise RecordError(f"{Path(path).name}: line {number} is not a record")
        if record is not None and record.get("prev_sha256") != previous:
            raise RecordError(
                f"{Path(path).name}: line {number} does not follow the line before it: "
                "a line was edited, dropped, inserted or moved"
            )
        previous = hashlib.sha256(line).hexdigest()
        yield LogLine(number, record, previous)
    if number == 0:
        raise RecordError(f"{Path(path).name}: the log is empty")


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Return the record that a line holds, or None if it holds none (not ASCII, not strict JSON, not an object)."""
    try:
        value = json.loads(line.decode("ascii"), object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _may_be_torn(line: bytes) -> bool:
    """A killed writer leaves the beginning of one record; whatever else cannot be parsed was not written by us."""
    if not (line == b"{" or line.startswith(b'{"')) or not line.isascii():
        return False
    try:
        json.JSONDecoder().raw_decode(line.decode("ascii"))
    except (ValueError, RecursionError):
        return True
    # A whole object with something behind it: two lines that were joined.
    return False


def encode_record(record: Mapping[str, Any]) -> bytes:
    """Return the one line, without its line feed, that a record is written as."""
    return json.dumps(record, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")


def _open_locked(path: str | os.PathLike[str]) -> int:
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        is_new = not os.path.lexists(path)
        descriptor = os.open(path, _OPEN, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(f"{Path(path).name} is not a regular file")
            _lock(descriptor, deadline)
            if _is_still(path, descriptor):
                if is_new:
                    _flush_folder(path)
                return descriptor
        except OSError:
            os.close(descriptor)
            raise
        # The log was moved or replaced while we waited for the lock: take the file that is there now.
        os.close(descriptor)


def _lock(descriptor: int, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise OSError("another process holds the log's lock") from None
            time.sleep(0.005)


def _is_still(path: str | os.PathLike[str], descriptor: int) -> bool:
    try:
        there = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    held = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)


def _flush_folder(path: str | os.PathLike[str]) -> None:
    folder = os.open(Path(path).parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _append(descriptor: int, record: Mapping[str, Any]) -> None:
    end = os.fstat(descriptor).st_size
    previous, torn = _last_line_hash(descriptor, end)
    line = encode_record({**record, "prev_sha256": previous})
    if len(line) > _MAX_LINE:
        raise OSError(f"the record has {len(line)} bytes, more than the {_MAX_LINE} a line may have")
    data = (b"\n" if torn else b"") + line + b"\n"
    try:
        if os.write(descriptor, data) != len(data):
            raise OSError("the disk took only a part of the record")
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, end)
        raise


def _last_line_hash(descriptor: int, end: int) -> tuple[str, bool]:
    """Return the hash of the last line of the file and whether that line lacks its line feed."""
    if end == 0:
        return GENESIS, False
    torn = os.pread(descriptor, 1, end - 1) != b"\n"
    stop = end if torn else end - 1
    start = stop
    while start > 0:
        step = min(_CHUNK, start)
        position = os.pread(descriptor, step, start - step).rfind(b"\n")
        if position >= 0:
            start = start - step + position + 1
            break
        start -= step
    digest = hashlib.sha256()
    while start < stop:
        part = os.pread(descriptor, min(_CHUNK, stop - start), start)
        if not part:
            raise OSError("the log became shorter while it was read")
        digest.update(part)
        start += len(part)
    return digest.hexdigest(), torn


def _not_recorded(path: str | os.PathLike[str], error: Exception) -> bool:
    reason = getattr(error, "strerror", None) or str(error)
    warnings.warn(f"not recorded in {Path(path).name}: {reason}", RecordWarning, stacklevel=3)
    return False


def _raw_lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    name = ascii(Path(path).name)[1:-1]
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        raise RecordError(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise RecordError(f"{name}: not a regular file")
    with os.fdopen(descriptor, "rb") as stream:
        try:
            while line := stream.readline(_MAX_LINE + 2):
                if len(line) > _MAX_LINE + 1:
                    raise RecordError(f"{name}: a line is longer than {_MAX_LINE} bytes")
                yield line
        except OSError as error:
            raise RecordError(f"{name}: cannot be read: {error.strerror}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key is repeated in one object")
    return result


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
