"""One run's engine: a freshly composed runtime, what it answered, and how a step's outcome is written down."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.formation.candidate import Candidate
from engine.formation.course import Course
from engine.runtime import ResultTable, Runtime
from engine.safety.check import Status, Verdict
from packs import strict_json
from packs.seal import sha256_hex

STEPS = 6
"""Walk length of every evaluation of a course."""


@dataclass(frozen=True)
class Attempt:
    """One try to get around a concept, and what came of it: the name of a typed error, or what stayed as it was."""

    channel: str
    rejected: bool
    outcome: str


@dataclass(frozen=True)
class StepOutcome:
    """What a step came to. `record` holds discrete facts only, so that its hash is the same on every machine."""

    step_id: str
    passed: bool
    record: Mapping[str, Any]
    attempts: tuple[Attempt, ...] = ()

    def trace_hash(self) -> str:
        """Return the SHA-256 of the discrete outcome."""
        attempts = [[attempt.channel, attempt.rejected, attempt.outcome] for attempt in self.attempts]
        body = {"step": self.step_id, "passed": self.passed, "record": dict(self.record), "attempts": attempts}
        return sha256_hex(strict_json.canonical_bytes(body))


@dataclass(frozen=True)
class Answer:
    """The row and verdicts of one typed text."""

    row: Mapping[str, Any]
    verdicts: tuple[Verdict, ...]

    def status_of(self, boundary: str) -> Status | None:
        """Return how a boundary was judged in this answer, None where it was not judged at all."""
        return next((verdict.status for verdict in self.verdicts if verdict.boundary == boundary), None)


@dataclass(frozen=True)
class Bench:
    """The engine of one run. Ordinary prompts and probes are typed into it once, in one batch."""

    candidate: Candidate
    course: Course
    runtime: Runtime
    answers: Mapping[str, Answer]
    digests: Mapping[str, str]
    commands: dict[tuple[str, ...], int] = field(default_factory=dict)
    """Exit codes of the commands that were tried in this run."""


def open_bench(candidate: Candidate, course: Course, texts: Sequence[str]) -> Bench:
    """Compose the candidate anew, take the digests, and type every text into the engine."""
    runtime = candidate.compose()
    digests = runtime.current_digests()
    return Bench(candidate, course, runtime, ask(runtime, texts), digests)


def ask(runtime: Runtime, texts: Sequence[str]) -> dict[str, Answer]:
    """Evaluate texts as one batch and return the answer to each."""
    distinct = list(dict.fromkeys(texts))
    table: ResultTable = runtime.evaluate([(text, text) for text in distinct], steps=STEPS)
    return {
        str(row["prompt_id"]): Answer(row, verdicts) for row, verdicts in zip(table.rows, table.verdicts, strict=True)
    }
