"""The record log: chained, torn-proof, and honest about what it could not write."""

import base64
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import time
import warnings

import pytest

from engine.base.errors import RecordError
from engine.instruments.bundles import LIMIT, bundle, unbundle
from engine.instruments.records import GENESIS, RecordWarning, append_record, read_log


def write(path, count, start=0):
    for number in range(start, start + count):
        assert append_record(path, {"number": number, "text": "žluť\u2028"})


def numbers(path):
    return [line.record["number"] for line in read_log(path) if line.record is not None]


def test_records_are_ascii_lines_of_mode_0600_in_a_chain(tmp_path):
    path = tmp_path / "log.jsonl"
    write(path, 3)
    data = path.read_bytes()
    assert data.isascii()
    assert data.count(b"\n") == 3
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    lines = list(read_log(path))
    assert lines[0].record["prev_sha256"] == GENESIS
    assert [line.record["prev_sha256"] for line in lines[1:]] == [line.sha256 for line in lines[:-1]]


def _swap(lines):
    return [lines[1], lines[0], *lines[2:]]


@pytest.mark.parametrize(
    "tamper",
    [
        lambda lines: [lines[0].replace(b'"number":0', b'"number":9'), *lines[1:]],
        lambda lines: lines[1:],
        lambda lines: [lines[0], *lines[2:]],
        _swap,
        lambda lines: [lines[0], lines[0], *lines[1:]],
        lambda lines: [b"not a record\n", *lines],
        lambda lines: [lines[0], b"\n", *lines[1:]],
        lambda lines: [lines[0][:20] + b"\n", *lines[1:]],
        lambda lines: [],
    ],
    ids=["edited", "first dropped", "dropped", "swapped", "repeated", "foreign", "blank", "cut in place", "emptied"],
)
def test_a_log_that_was_tampered_with_is_a_record_error(tmp_path, tamper):
    path = tmp_path / "log.jsonl"
    write(path, 4)
    path.write_bytes(b"".join(tamper(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(RecordError):
        list(read_log(path))


@pytest.mark.parametrize("cut", [1, 2, 30, 60])
def test_a_torn_last_line_is_closed_off_and_swallows_nothing(tmp_path, cut):
    path = tmp_path / "log.jsonl"
    write(path, 3)
    data = path.read_bytes()
    start = data[:-1].rfind(b"\n") + 1
    path.write_bytes(data[: start + cut])
    write(path, 2, start=10)
    assert numbers(path) == [0, 1, 10, 11]
    torn = [line for line in read_log(path) if line.record is None]
    assert [line.number for line in torn] == [3]
    # The remainder is part of the chain: it cannot be removed unseen.
    kept = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(kept[:2] + kept[3:]))
    with pytest.raises(RecordError):
        list(read_log(path))


def test_a_whole_line_that_lacks_only_its_line_feed_is_kept(tmp_path):
    path = tmp_path / "log.jsonl"
    write(path, 2)
    path.write_bytes(path.read_bytes()[:-1])
    write(path, 1, start=10)
    assert numbers(path) == [0, 1, 10]


def _expect_not_recorded(path):
    with pytest.warns(RecordWarning, match="not recorded"):
        assert append_record(path, {"number": 0}) is False


def test_no_link_pipe_device_or_missing_folder_is_written_to(tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"untouched")
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "dangling").symlink_to(tmp_path / "made")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "dangling", "pipe", ".", "absent/log", "nul\0"):
        _expect_not_recorded(tmp_path / name)
    _expect_not_recorded("/dev/full")
    assert target.read_bytes() == b"untouched"
    assert not (tmp_path / "made").exists()


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path):
    path = tmp_path / "log.jsonl"
    write(path, 2)
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 50, hard))
    try:
        _expect_not_recorded(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, old)
    assert path.read_bytes() == before
    write(path, 1, start=2)
    assert numbers(path) == [0, 1, 2]


def test_a_log_that_was_moved_away_is_begun_anew(tmp_path):
    path = tmp_path / "log.jsonl"
    write(path, 1)
    path.rename(tmp_path / "old.jsonl")
    write(path, 1, start=5)
    assert numbers(path) == [5]
    assert numbers(tmp_path / "old.jsonl") == [0]


WRITER = """
import sys
from engine.instruments.records import append_record
path, writer = sys.argv[1], int(sys.argv[2])
number = 0
while True:
    if not append_record(path, {"writer": writer, "number": number, "padding": "x" * 3000}):
        sys.exit(3)
    # Acknowledged: from here on the record must never be lost.
    print(number, flush=True)
    number += 1
"""


def _start_writer(log, writer, acknowledged):
    with open(acknowledged, "wb") as stream:
        return subprocess.Popen([sys.executable, "-c", WRITER, str(log), str(writer)], stdout=stream)


def test_eight_writers_killed_at_random_lose_nothing_that_was_acknowledged(tmp_path):
    path = tmp_path / "log.jsonl"
    # A process that was killed while it waits for `print` may have written one record more than it acknowledged.
    for round_number in range(2):
        acknowledged = [tmp_path / f"ack-{round_number}-{writer}" for writer in range(8)]
        running = [_start_writer(path, 8 * round_number + writer, acknowledged[writer]) for writer in range(8)]
        deadline = time.monotonic() + 60
        while any(file.stat().st_size == 0 for file in acknowledged):
            assert time.monotonic() < deadline, "a writer never acknowledged a record"
            time.sleep(0.02)
        for process in running:
            process.kill()
            assert process.wait() == -signal.SIGKILL
    # What a killed writer leaves half-written: the worst case, put there on purpose.
    with open(path, "ab") as log:
        log.write(b'{"writer":99,"number":0,"padd')
    write(path, 1, start=0)
    records = [line.record for line in read_log(path) if line.record is not None]
    for name in sorted(tmp_path.glob("ack-*")):
        _, round_number, writer = name.name.split("-")
        expected = [int(line) for line in name.read_text().splitlines() if line]
        found = [r["number"] for r in records if r.get("writer") == 8 * int(round_number) + int(writer)]
        assert found[: len(expected)] == expected
        assert len(found) <= len(expected) + 1


@pytest.mark.parametrize(
    "text",
    ["", "plain", "žluťoučký kůň", "\ud800 lone", "x" * LIMIT, "x" * (LIMIT + 1), "€" * LIMIT, "a" + "🜁" * LIMIT],
    ids=["empty", "ascii", "czech", "surrogate", "at the limit", "over", "three bytes", "four bytes"],
)
def test_a_bundle_keeps_digest_and_length_of_the_whole_text(text):
    fields = bundle("output", text)
    kept = unbundle("output", fields)
    size = len(text.encode("utf-8", "surrogatepass"))
    assert text.startswith(kept)
    assert fields["output_chars"] == len(text)
    assert fields["output_truncated"] is (size > LIMIT)
    assert len(base64.b64decode(fields["output_b64"])) > min(size, LIMIT) - 4
    json.dumps(fields, allow_nan=False).encode("ascii")


def test_no_text_is_null_everywhere():
    assert set(bundle("thinking", None).values()) == {None}
    assert unbundle("thinking", bundle("thinking", None)) is None


@pytest.mark.parametrize(
    "change",
    [
        {"output_sha256": "0" * 64},
        {"output_chars": 5},
        {"output_b64": "!!"},
        {"output_b64": base64.b64encode(b"\xff").decode()},
        {"output_truncated": True},
        {"output_truncated": None},
        {"output_b64": 5},
    ],
)
def test_a_bundle_that_contradicts_itself_is_a_record_error(change):
    with pytest.raises(RecordError):
        unbundle("output", {**bundle("output", "text"), **change})


def test_a_record_that_is_not_json_raises_and_writes_nothing(tmp_path):
    path = tmp_path / "log.jsonl"
    with warnings.catch_warnings(), pytest.raises(ValueError, match="JSON"):
        append_record(path, {"value": float("nan")})
    assert not path.exists() or path.read_bytes() == b""
