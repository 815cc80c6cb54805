"""One hostile row: what is done, and what has to come of it. Tables of rows live beside this module."""

import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

LONGEST_SECONDS = 60
"""A row that takes longer counts as a hang; a sweep over thousands of loads has `patience` times as long."""


@dataclass(frozen=True)
class Row:
    """An attack and its outcome.

    `act` gets an empty folder of its own. `expected` is the error that has to be raised, exactly this type, with a
    one-line printable text; None means that the act must return, and what it returns was checked by the act itself.
    """

    table: str
    name: str
    expected: type[Exception] | None
    act: Callable[[Path], object]
    patience: int = 1

    def __str__(self) -> str:
        return f"{self.table}: {self.name}"


@dataclass(frozen=True)
class Outcome:
    """What came of a row: `as expected`, `unexpected`, `traceback` (another exception escaped) or `hang`."""

    row: Row
    verdict: str
    detail: str = ""


class _Hang(BaseException):
    """Raised by the alarm; a BaseException, so that no handler under attack can swallow it."""


def try_row(row: Row, folder: Path) -> Outcome:
    """Run one row in an empty folder and judge it."""
    try:
        with _alarm(row.patience * LONGEST_SECONDS):
            row.act(folder)
    except _Hang:
        return Outcome(row, "hang")
    except Exception as error:  # noqa: BLE001 - the judge has to see every escape
        return _judge_error(row, error)
    if row.expected is None:
        return Outcome(row, "as expected")
    return Outcome(row, "unexpected", "was accepted")


def _judge_error(row: Row, error: Exception) -> Outcome:
    text = str(error)
    if row.expected is None or type(error) is not row.expected:
        return Outcome(row, "traceback", "".join(traceback.format_exception(error)))
    if not text.strip() or not text.isprintable() or len(text) > 400:
        return Outcome(row, "unexpected", f"not one clear line: {text!r}")
    return Outcome(row, "as expected", text)


@contextmanager
def _alarm(seconds: int) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise _Hang

    previous = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
