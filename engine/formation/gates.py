"""The eight gates. Each is a share of what was really tried, and a gate with nothing to measure fails."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.formation.bench import StepOutcome
from engine.formation.course import Course, Plan, has_provenance
from packs.seal import REQUIRED_GATES, Gate


@dataclass(frozen=True)
class Run:
    """A course, its plan, and what its two runs on the engine came to."""

    pack: Mapping[str, Any]
    course: Course
    plan: Plan
    first: tuple[StepOutcome, ...]
    second: tuple[StepOutcome, ...]

    def trace_hashes(self) -> dict[str, str]:
        """Return the trace hash of every step of the first run."""
        return traces(self.first)


@dataclass(frozen=True)
class Replay:
    """A ratified course: the traces that its report recorded, and those of running it now."""

    pack_id: str
    recorded: Mapping[str, str]
    replayed: Mapping[str, str]

    def agreements(self) -> list[bool]:
        """Return, for every step on either side, whether recorded and replayed trace agree."""
        steps = sorted({*self.recorded, *self.replayed})
        return [self.recorded.get(step) == self.replayed.get(step) for step in steps]


def traces(outcomes: Iterable[StepOutcome]) -> dict[str, str]:
    """Return the trace hash of every outcome by step."""
    return {outcome.step_id: outcome.trace_hash() for outcome in outcomes}


def measure_gates(run: Run, replays: Sequence[Replay]) -> tuple[Gate, ...]:
    """Return the eight gates of a run; `replays` are of every ratified course, the run's own among them."""
    measured = {
        "replay_determinism_eq_1": _determinism(run),
        "no_regression_vs_prior_courses": [agrees for replay in replays for agrees in replay.agreements()],
        "adversarial_rejection_rate_eq_1": _passed(run, "probe", [c.counter_id for c in run.course.counters]),
        "legitimate_acceptance_rate_eq_1": _passed(run, "accept", [c.concept_id for c in run.course.concepts]),
        "provenance_non_empty_rate_eq_1": _provenance(run),
        "every_relation_walked_at_least_once": _passed(run, "relation", [r.head for r in run.course.relations]),
        "every_axis_seeded_at_least_once": [
            *_passed(run, "seed", [c.concept_id for c in run.course.concepts]),
            *(outcome.passed for outcome in run.first if outcome.step_id.startswith("compose/")),
        ]
        if run.course.concepts
        else [],
        "every_override_rejected": [
            attempt.rejected for outcome in (*run.first, *run.second) for attempt in outcome.attempts
        ],
    }
    return tuple(Gate(name, share(measured[name]), threshold) for name, threshold in REQUIRED_GATES.items())


def share(trials: Sequence[bool]) -> float:
    """Return the share of trials that held; 0 where nothing was tried."""
    return sum(trials) / len(trials) if trials else 0.0


def failure_reasons(run: Run, replays: Sequence[Replay], gates: Sequence[Gate]) -> list[str]:
    """Return one line for each gate that failed, then for each step that did not pass, at most twenty of these."""
    reasons = [
        f"{gate.name} measured {gate.measurement:.6g} against {gate.threshold:.6g}" for gate in gates if not gate.passed
    ]
    steps = [f"{outcome.step_id}: {_why(outcome)}" for outcome in (*run.first, *run.second) if not outcome.passed]
    steps += [
        f"{replay.pack_id}: replayed otherwise than recorded" for replay in replays if not all(replay.agreements())
    ]
    return [*reasons, *list(dict.fromkeys(steps))[:20]]


def _why(outcome: StepOutcome) -> str:
    open_channels = [f"{attempt.channel} {attempt.outcome}" for attempt in outcome.attempts if not attempt.rejected]
    return ", ".join(open_channels) or ", ".join(f"{name} {value}" for name, value in sorted(outcome.record.items()))


def _determinism(run: Run) -> list[bool]:
    first, second = traces(run.first), traces(run.second)
    return [step.step_id in first and first[step.step_id] == second.get(step.step_id) for step in run.plan.steps]


def _passed(run: Run, kind: str, targets: Sequence[str]) -> list[bool]:
    """Return, for each target, whether its step was run in both runs and passed in both."""
    both = [{outcome.step_id: outcome.passed for outcome in outcomes} for outcomes in (run.first, run.second)]
    return [all(passed.get(f"{kind}/{target}", False) for passed in both) for target in targets]


def _provenance(run: Run) -> list[bool]:
    course = run.course
    origins = [row.provenance for rows in (course.concepts, course.counters, course.relations) for row in rows]
    return [has_provenance(run.pack, origin) for origin in origins]
