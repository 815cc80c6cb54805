"""Reading once and writing together."""

import os
from pathlib import Path

import pytest

from packs import files
from packs.errors import PackFormatError


def test_reads_up_to_the_cap_and_not_beyond(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    assert files.read_once(path, 5) == b"12345"
    with pytest.raises(PackFormatError, match="5 bytes, more than the 4 allowed"):
        files.read_once(path, 4)
    path.write_bytes(b"")
    assert files.read_once(path, 0) == b""


def test_size_is_checked_before_a_byte_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")

    def read(descriptor: int, size: int) -> bytes:
        raise AssertionError("a byte was read")

    monkeypatch.setattr(files.os, "read", read)
    with pytest.raises(PackFormatError, match="more than"):
        files.read_once(path, 4)


@pytest.mark.parametrize("after", [b"123", b"1234567"])
def test_a_file_that_changes_its_size_while_it_is_read_is_refused(
    after: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    status = os.fstat

    def rewrite_after_status(descriptor: int) -> os.stat_result:
        result = status(descriptor)
        path.write_bytes(after)
        return result

    monkeypatch.setattr(files.os, "fstat", rewrite_after_status)
    with pytest.raises(PackFormatError, match="changed while it was read"):
        files.read_once(path, 10)


def test_short_reads_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    read = os.read
    monkeypatch.setattr(files.os, "read", lambda descriptor, size: read(descriptor, min(size, 2)))
    assert files.read_once(path, 10) == b"12345"


def test_read_errors_are_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")

    def fail(descriptor: int, size: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(files.os, "read", fail)
    with pytest.raises(PackFormatError, match="x: cannot be read: Input/output error"):
        files.read_once(path, 10)


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    (tmp_path / "x").write_bytes(b"12345")
    with files.open_folder(tmp_path) as folder:
        files.read_once("x", 10, folder=folder)
        with pytest.raises(PackFormatError):
            files.read_once("x", 1, folder=folder)
        with pytest.raises(PackFormatError):
            files.read_once("y", 1, folder=folder)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("path", ["a\0b", "", "missing", "/dev/zero", "/proc/self/mem", "."])
def test_what_is_no_regular_file_is_refused(path: str) -> None:
    with pytest.raises(PackFormatError):
        files.read_once(path, 10)


def test_folders_are_opened_as_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(PackFormatError, match="folder cannot be opened"), files.open_folder(tmp_path / "link"):
        pass
    with files.open_folder(tmp_path / "link", follow=True) as folder:
        assert files.list_folder(folder) == ("link",)
    with pytest.raises(PackFormatError, match="null character"), files.open_folder("a\0b"):
        pass
    with pytest.raises(PackFormatError, match="cannot be listed"):
        files.list_folder(999_999)


def test_writes_together_and_leaves_equal_files_alone(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    files.write_together([(first, b"1"), (second, b"2")])
    kept = first.stat()
    files.write_together([(first, b"1"), (second, b"3")])
    assert (first.read_bytes(), second.read_bytes()) == (b"1", b"3")
    assert (first.stat().st_ino, first.stat().st_mtime_ns) == (kept.st_ino, kept.st_mtime_ns)
    assert sorted(os.listdir(tmp_path)) == ["first", "second"]


def test_a_mode_that_is_asked_for_is_given_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        files.write_together([(tmp_path / "asked", b"1")], mode=0o664)
        files.write_together([(tmp_path / "plain", b"1")])
    finally:
        os.umask(before)
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("asked", "plain")]
    assert modes == [0o664, 0o600]


def test_a_failed_write_changes_nothing_and_leaves_no_draft(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_bytes(b"old")
    with pytest.raises(FileNotFoundError):
        files.write_together([(first, b"new"), (tmp_path / "missing" / "second", b"2")])
    assert first.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["first"]


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"kept")
    link.symlink_to(target)
    files.write_together([(link, b"new")])
    assert target.read_bytes() == b"kept"
    assert link.read_bytes() == b"new"
    assert not link.is_symlink()
