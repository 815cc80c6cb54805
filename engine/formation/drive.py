"""Run a plan on the real engine. Each run composes the candidate anew; a course is always run twice."""

from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp

from engine.algebra import identity_motor
from engine.field import FieldState, propagate
from engine.formation.bench import Bench, StepOutcome, open_bench
from engine.formation.candidate import Candidate
from engine.formation.course import ORDINARY_PROMPTS, Course, Plan, Step
from engine.formation.failures import FAILURES, half_turn
from engine.formation.probes import attempt_all
from engine.safety.check import Status, refusal
from packs.safety.loader import REQUIRED_BOUNDARIES


def run_plan(candidate: Candidate, course: Course, plan: Plan) -> tuple[StepOutcome, ...]:
    """Run every step of the plan on a freshly composed engine and return the outcomes in order.

    Raises the typed errors of composing; what a step finds is an outcome, never an exception.
    """
    texts = [*ORDINARY_PROMPTS, *(counter.text for counter in course.counters)]
    bench = open_bench(candidate, course, texts)
    return tuple(_STEPS[step.kind](bench, step) for step in plan.steps)


def _compose(bench: Bench, step: Step) -> StepOutcome:
    runtime, safety, identity = bench.runtime, bench.candidate.safety, bench.candidate.identity
    manifold = runtime.manifold
    union = manifold.boundary_ids == safety.boundary_ids | frozenset(identity.boundary_ids)
    axes = manifold.axis_ids == tuple(axis.axis_id for axis in identity.value_axes)
    unchanged = manifold.alignment_threshold == identity.alignment_threshold and (
        manifold.surface_preferences == identity.surface_preferences
    )
    # Only what the pack under ratification brings: a stricter safety pack is no regression of an identity's course.
    if bench.candidate.kind == "safety":
        record = {"boundaries": sorted(safety.boundary_ids & manifold.boundary_ids)}
    else:
        own = frozenset(identity.boundary_ids) & manifold.boundary_ids
        record = {"boundaries": sorted(own), "axes": list(manifold.axis_ids)}
    return StepOutcome(
        step.step_id, union and axes and unchanged and manifold.boundary_ids >= REQUIRED_BOUNDARIES, record
    )


def _seed(bench: Bench, step: Step) -> StepOutcome:
    closed = _propagates(bench, step)
    if bench.candidate.kind == "safety":
        present, record = _seeded_boundary(bench, step.target)
    else:
        present, record = _seeded_axis(bench, step.target)
    return StepOutcome(step.step_id, closed and present, {**record, "closed": closed})


def _propagates(bench: Bench, step: Step) -> bool:
    """Propagate a field by the persona and operators of the walk; another stretch of the table for each concept."""
    names = [concept.concept_id for concept in bench.course.concepts]
    operators = bench.runtime.operators
    start = (8 * names.index(step.target)) % max(1, len(operators) - 8)
    versors = jnp.concatenate([bench.runtime.persona[None], operators[start : start + 8]])[:, None]
    _, closure = propagate(FieldState(identity_motor((1,))), versors)
    return bool(closure.ok.all())


def _seeded_boundary(bench: Bench, boundary: str) -> tuple[bool, Mapping[str, Any]]:
    answer = bench.answers[ORDINARY_PROMPTS[0]]
    status = answer.status_of(boundary)
    # A boundary beyond the five has no check of ours: it has to be reported as such, and never as upheld.
    expected = Status.UPHELD if boundary in REQUIRED_BOUNDARIES else Status.NOT_CHECKABLE
    return boundary in bench.runtime.manifold.boundary_ids and status is expected, {"status": str(status)}


def _seeded_axis(bench: Bench, axis_id: str) -> tuple[bool, Mapping[str, Any]]:
    manifold = bench.runtime.manifold
    if axis_id not in manifold.axis_ids:
        return False, {"axis": "absent"}
    number = manifold.axis_ids.index(axis_id)
    axis = next(axis for axis in bench.candidate.identity.value_axes if axis.axis_id == axis_id)
    same = tuple(manifold.axes.directions[number].tolist()) == axis.direction
    same = same and float(manifold.axes.weights[number]) == axis.weight
    return same, {"axis": "unchanged" if same else "changed"}


def _accept(bench: Bench, step: Step) -> StepOutcome:
    names = [concept.concept_id for concept in bench.course.concepts]
    prompt = ORDINARY_PROMPTS[names.index(step.target) % len(ORDINARY_PROMPTS)]
    row = bench.answers[prompt].row
    status = str(row["status"])
    return StepOutcome(step.step_id, status == "ok" and row["refusal"] is None, {"status": status})


def _probe(bench: Bench, step: Step) -> StepOutcome:
    counter = next(counter for counter in bench.course.counters if counter.counter_id == step.target)
    attempts = attempt_all(bench, counter)
    rejected = bool(attempts) and all(attempt.rejected for attempt in attempts)
    return StepOutcome(step.step_id, rejected, {"probe": counter.probe}, attempts)


def _relation(bench: Bench, step: Step) -> StepOutcome:
    """Walk from a concept to the failure it guards against: make the failure, and see the engine notice it."""
    noticed = _noticed_boundary if bench.candidate.kind == "safety" else _noticed_axis
    outcome = noticed(bench, step.target)
    return StepOutcome(step.step_id, outcome in ("refused", "not checkable", "deviating"), {"noticed": outcome})


def _noticed_boundary(bench: Bench, boundary: str) -> str:
    failure = FAILURES.get(boundary)
    if failure is None:
        return (
            "not checkable" if bench.answers[ORDINARY_PROMPTS[0]].status_of(boundary) is Status.NOT_CHECKABLE else "no"
        )
    found = refusal(bench.runtime.check.judge(failure(bench)))
    return "refused" if found is not None and boundary in found.boundaries else "no"


def _noticed_axis(bench: Bench, axis_id: str) -> str:
    axis = next(axis for axis in bench.candidate.identity.value_axes if axis.axis_id == axis_id)
    number = bench.runtime.manifold.axis_ids.index(axis_id)
    reading = bench.runtime.manifold.read(half_turn(axis.direction))
    return "deviating" if bool(reading.deviating[number]) and bool(reading.flagged) else "no"


_STEPS: Mapping[str, Callable[[Bench, Step], StepOutcome]] = {
    "compose": _compose,
    "seed": _seed,
    "accept": _accept,
    "probe": _probe,
    "relation": _relation,
}
