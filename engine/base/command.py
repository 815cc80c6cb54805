"""Run one command: typed errors become one line on stderr and an exit code. Standard library only.

Exit codes: 0 success, 1 a refusal or a failed check, 2 a usage error, 130 interrupted. A traceback is for bugs alone.
"""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

from engine.base.errors import CoreError, UsageError

EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


def one_line(text: object) -> str:
    """Return `text` on one line with control and format characters escaped, fit for a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))


def complain(program: str, text: object) -> None:
    """Write one line to stderr; a closed stderr leaves the exit code to speak."""
    if sys.stderr is None:
        return
    encoding = sys.stderr.encoding or "ascii"
    line = f"{program}: {one_line(text)}".encode(encoding, "backslashreplace").decode(encoding)
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except OSError:
        sys.stderr = None


def run_command(program: str, command: Callable[[], int | None]) -> int:
    """Run `command` and return the exit code. SIGTERM is answered like Ctrl-C, so that a stopped job ends cleanly."""
    previous = interrupt_on(signal.SIGTERM)
    try:
        if sys.stdout is None:
            raise OSError("standard output is closed: nobody can read the answer")
        code = int(command() or 0)
        sys.stdout.flush()
        return code
    except UsageError as error:
        complain(program, error)
        return EXIT_USAGE
    except CoreError as error:
        complain(program, f"{type(error).__name__}: {error}")
        return EXIT_REFUSED
    except KeyboardInterrupt:
        complain(program, "interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return EXIT_REFUSED
    except OSError as error:
        # A full disk, a missing right, a closed descriptor: the machine's state and no bug of ours.
        _forget_stdout()
        complain(program, f"{type(error).__name__}: {error}")
        return EXIT_REFUSED
    finally:
        if previous is not None:
            signal.signal(signal.SIGTERM, previous)


def interrupt_on(number: signal.Signals) -> Callable[[int, FrameType | None], object] | int | None:
    """Answer a signal like Ctrl-C; return the handling before, or None where it stays: not in the main thread."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        return signal.signal(number, interrupt)
    except ValueError:  # not the main thread: the host program keeps its own handling
        return None


def _forget_stdout() -> None:
    """Point a broken stdout at nothing, so that the interpreter's last flush cannot fail a second time."""
    if sys.stdout is None:
        return
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):  # a captured stream has none
        return
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, descriptor)
    os.close(sink)
