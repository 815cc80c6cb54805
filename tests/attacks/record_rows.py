"""Rows for the record log: bytes changed, lost, moved or added, and records whose fields are of another kind."""

import functools
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from engine.base.errors import RecordError
from engine.instruments import synthesize_shadow_constitution
from engine.instruments.records import append_record, encode_record, read_log
from engine.instruments.replay import verify_log
from tests.attacks.rows import Row
from tests.instruments.support import PlainGenerator, write_live, write_patterns

TABLE = "records"


def rows() -> Iterator[Row]:
    """Yield the attacks on a log and on the file that it is written to."""
    data = _small_log()
    yield from _changed_bytes(data)
    yield from _lines(data)
    yield from _cuts(data)
    yield from _fields()
    yield from _places()


@functools.cache
def _small_log() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        for number in range(4):
            append_record(path, {"event": "shadow_constitution", "number": number})
        return path.read_bytes()


def _reads(data: bytes) -> Callable[[Path], object]:
    def act(folder: Path) -> object:
        (folder / "log").write_bytes(data)
        return list(read_log(folder / "log"))

    return act


def _changed_bytes(data: bytes) -> Iterator[Row]:
    # The last line has no successor that vouches for it: its content is checked by replay, not by the chain.
    for position in range(data[:-1].rfind(b"\n")):
        for bit in (0, 5):
            changed = bytearray(data)
            changed[position] ^= 1 << bit
            yield Row(TABLE, f"bit {bit} of byte {position} flipped", RecordError, _reads(bytes(changed)))
    for position in range(0, data[:-1].rfind(b"\n"), 5):
        yield Row(TABLE, f"byte {position} dropped", RecordError, _reads(data[:position] + data[position + 1 :]))
        yield Row(TABLE, f"NUL before byte {position}", RecordError, _reads(data[:position] + b"\0" + data[position:]))


def _lines(data: bytes) -> Iterator[Row]:
    a, b, c, d = data.splitlines(keepends=True)
    for name, lines in {
        "first lost": [b, c, d],
        "second lost": [a, c, d],
        "third lost": [a, b, d],
        "swapped": [b, a, c, d],
        "reversed": [d, c, b, a],
        "repeated": [a, b, b, c, d],
        "appended again": [a, b, c, d, a],
        "blank line": [a, b"\n", b, c, d],
        "carriage returns": [line[:-1] + b"\r\n" for line in (a, b, c, d)],
        "joined": [a, b, c[:-1], d],
        "all joined": [a[:-1], b[:-1], c[:-1], d],
        "UTF-16": [data.decode().encode("utf-16")],
        "byte order mark": [b"\xef\xbb\xbf", a, b, c, d],
        "a list": [b"[]\n"],
        "a number": [b"5\n"],
        "NaN": [b'{"prev_sha256": "' + b"0" * 64 + b'", "x": NaN}\n'],
        "repeated key": [b'{"prev_sha256": "' + b"0" * 64 + b'", "prev_sha256": "' + b"0" * 64 + b'"}\n'],
        "no predecessor": [b'{"event": "x"}\n'],
        "deep": [b"[" * 100_000],
        "only a line feed": [b"\n"],
        "empty": [],
    }.items():
        yield Row(TABLE, name, RecordError, _reads(b"".join(lines)))


def _cuts(data: bytes) -> Iterator[Row]:
    """A log cut anywhere keeps every whole record before the cut, and the next writer loses none of them."""
    for cut in range(1, len(data)):
        yield Row(TABLE, f"cut after byte {cut}", None, functools.partial(_cut_and_go_on, data[:cut]))


def _cut_and_go_on(data: bytes, folder: Path) -> None:
    path = folder / "log"
    path.write_bytes(data)
    whole = data.count(b"\n") + (data.endswith(b"}") and not data.endswith(b"\n"))
    assert append_record(path, {"event": "after"})
    records = [line.record for line in read_log(path) if line.record is not None]
    assert len(records) == whole + 1
    assert records[-1]["event"] == "after"


@functools.cache
def _good_record() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        synthesize_shadow_constitution(
            write_live(root / "live"),
            write_patterns(root / "patterns.json"),
            log_path=root / "log",
            embedder="hashing",
            generator=PlainGenerator(),
        )
        return dict(next(read_log(root / "log")).record or {})


def _fields() -> Iterator[Row]:
    """A forged last record may hold anything: replay answers with a report, never with a traceback."""
    values = {"a number": 5, "null": None, "a text": "x", "a list": [1], "an object": {"a": 1}, "a truth": True}
    for name in _good_record():
        if name == "prev_sha256":
            continue
        for kind, value in values.items():
            changed = {**_good_record(), name: value}
            yield Row(TABLE, f"{name} is {kind}", None, functools.partial(_replays, changed))


def _replays(record: dict[str, Any], folder: Path) -> None:
    (folder / "log").write_bytes(encode_record({**record, "prev_sha256": "0" * 64}) + b"\n")
    report = verify_log(folder / "log")
    assert report.lines()
    assert report.as_dict()["records"]


def _places() -> Iterator[Row]:
    def refuse(make: Callable[[Path], Path]) -> Callable[[Path], object]:
        return lambda folder: list(read_log(make(folder)))

    def fifo(folder: Path) -> Path:
        os.mkfifo(folder / "log")
        return folder / "log"

    yield Row(TABLE, "absent", RecordError, refuse(lambda folder: folder / "log"))
    yield Row(TABLE, "a folder", RecordError, refuse(lambda folder: folder))
    yield Row(TABLE, "a pipe", RecordError, refuse(fifo))
    yield Row(TABLE, "a device", RecordError, refuse(lambda folder: Path("/dev/zero")))
    yield Row(TABLE, "a NUL in the name", RecordError, refuse(lambda folder: folder / "a\0b"))
    yield Row(TABLE, "a later record that repeats the chain", RecordError, _forked)


def _forked(folder: Path) -> object:
    data = _small_log()
    last = data.splitlines()[-1]
    previous = hashlib.sha256(data.splitlines()[0]).hexdigest()
    (folder / "log").write_bytes(data + encode_record({"event": "x", "prev_sha256": previous}) + b"\n")
    assert last
    return list(read_log(folder / "log"))
