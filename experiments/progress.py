"""How far a long job is: now and then a line on stderr, with the time that is left. Standard library only."""

import sys
import time
from collections.abc import Callable


class Progress:
    """Counts prompts of a job that is evaluated part after part; says nothing in the first `every` seconds."""

    def __init__(
        self,
        total: int,
        *,
        every: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
        say: Callable[[str], object] | None = None,
    ) -> None:
        """`total`: prompts of the job. `clock` gives seconds; `say` takes a line (default: stderr)."""
        self._total, self._every, self._clock = total, every, clock
        self._say = say or (lambda line: sys.stderr.write(line + "\n"))
        self._begun = self._said = clock()
        self._from: int | None = None
        self._done = 0

    def part(self, begin: int, size: int) -> Callable[[int, int], None]:
        """Return what to call with (rows done, rows) while the `size` prompts from number `begin` on are evaluated."""
        if self._from is None:
            self._from = begin

        def told(done: int, rows: int) -> None:
            self._tell(begin + (size * done) // max(rows, 1))

        return told

    def _tell(self, done: int) -> None:
        now = self._clock()
        made = done - (self._from or 0)
        if now - self._said < self._every or made <= 0:
            return
        self._said = now
        left = (now - self._begun) / made * (self._total - done)
        self._say(f"{done} of {self._total} prompts, {now - self._begun:.0f} s, about {left:.0f} s left")
