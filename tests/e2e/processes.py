"""Processes that tests start, watch and end."""

import subprocess
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

Found = TypeVar("Found")


def wait_for(process: "subprocess.Popen[str]", condition: Callable[[], Found]) -> Found:
    """Return the first true value of `condition`; fail with what `process` said if it ends before."""
    deadline = time.monotonic() + 400
    while True:
        found = condition()
        if found:
            return found
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            output, errors = process.communicate()
            pytest.fail(f"the process ended with {process.returncode}, unseen:\n{output}\n{errors}")
        time.sleep(0.002)
