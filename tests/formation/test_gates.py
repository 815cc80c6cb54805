"""Eight gates over a real run: each passes on it, and each fails on a run in which what it measures did not hold."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from engine.formation import drive
from engine.formation.bench import Attempt, Bench, StepOutcome
from engine.formation.candidate import Candidate
from engine.formation.course import ORDINARY_PROMPTS, Course, Plan, Step
from engine.formation.gates import Replay, Run, failure_reasons, measure_gates
from engine.identity import IdentityManifold
from engine.safety.check import Evidence
from packs.seal import REQUIRED_GATES
from tests.attacks.workspace import SAFETY

OWN_REPLAY = "core_safety_axes_v1"


def _replay(run: Run) -> Replay:
    return Replay(OWN_REPLAY, run.trace_hashes(), run.trace_hashes())


def _failed(run: Run, *replays: Replay) -> set[str]:
    return {gate.name for gate in measure_gates(run, replays or (_replay(run),)) if not gate.passed}


def test_all_eight_gates_pass_on_the_shipped_pack(safety_run: Run) -> None:
    gates = measure_gates(safety_run, (_replay(safety_run),))
    assert [gate.name for gate in gates] == list(REQUIRED_GATES)
    assert [gate.measurement for gate in gates] == [1.0] * 8
    assert failure_reasons(safety_run, (_replay(safety_run),), gates) == []


def test_the_shipped_report_replays_on_this_machine(safety_run: Run) -> None:
    report = json.loads(SAFETY.report)
    assert report["trace_hashes"] == safety_run.trace_hashes()
    assert report["course_sha256"] == safety_run.course.digest()
    assert report["plan_sha256"] == safety_run.plan.digest()


def _changed(run: Run, kind: str, change: Callable[[StepOutcome], StepOutcome]) -> Run:
    """Return the run with the first outcome of a kind changed, in both runs alike."""
    index = next(i for i, outcome in enumerate(run.first) if outcome.step_id.startswith(kind))

    def swap(outcomes: tuple[StepOutcome, ...]) -> tuple[StepOutcome, ...]:
        return (*outcomes[:index], change(outcomes[index]), *outcomes[index + 1 :])

    return replace(run, first=swap(run.first), second=swap(run.second))


def _not_passed(outcome: StepOutcome) -> StepOutcome:
    return replace(outcome, passed=False)


def _one_open(outcome: StepOutcome) -> StepOutcome:
    return replace(outcome, attempts=(*outcome.attempts, Attempt("hole", False, "accepted")))


@pytest.mark.parametrize(
    ("gate", "break_run"),
    [
        (
            "replay_determinism_eq_1",
            lambda run: replace(run, second=(replace(run.second[0], record={"other": 1}), *run.second[1:])),
        ),
        ("replay_determinism_eq_1", lambda run: replace(run, second=run.second[1:])),
        ("adversarial_rejection_rate_eq_1", lambda run: _changed(run, "probe/", _not_passed)),
        ("legitimate_acceptance_rate_eq_1", lambda run: _changed(run, "accept/", _not_passed)),
        (
            "provenance_non_empty_rate_eq_1",
            lambda run: replace(run, pack={**run.pack, "boundary_descriptions": {"no_hot_path_repair": "x"}}),
        ),
        ("every_relation_walked_at_least_once", lambda run: _changed(run, "relation/", _not_passed)),
        ("every_axis_seeded_at_least_once", lambda run: _changed(run, "seed/", _not_passed)),
        ("every_axis_seeded_at_least_once", lambda run: _changed(run, "compose/", _not_passed)),
        ("every_override_rejected", lambda run: _changed(run, "probe/", _one_open)),
    ],
)
def test_each_gate_fails_where_what_it_measures_did_not_hold(
    gate: str, break_run: Callable[[Run], Run], safety_run: Run
) -> None:
    broken = break_run(safety_run)
    failed = {found.name for found in measure_gates(broken, (_replay(safety_run),)) if not found.passed}
    assert failed == {gate}
    reasons = failure_reasons(broken, (_replay(safety_run),), measure_gates(broken, (_replay(safety_run),)))
    assert any(reason.startswith(f"{gate} measured 0") for reason in reasons)


def test_a_regression_of_any_ratified_course_fails(safety_run: Run) -> None:
    hashes = safety_run.trace_hashes()
    step = next(iter(hashes))
    for replay in (
        Replay("other", {**hashes, step: "0" * 64}, hashes),
        Replay("other", hashes, {name: value for name, value in hashes.items() if name != step}),
        Replay("other", {}, hashes),
    ):
        assert _failed(safety_run, _replay(safety_run), replay) == {"no_regression_vs_prior_courses"}
    assert _failed(safety_run, Replay("empty", {}, {})) == {"no_regression_vs_prior_courses"}


def test_a_gate_with_nothing_to_measure_fails(safety_run: Run) -> None:
    course = Course("identity_anchor/1", "safety", "x", "1.0.0", (), (), ())
    empty = Run(safety_run.pack, course, Plan(()), (), ())
    gates = measure_gates(empty, ())
    assert [gate.measurement for gate in gates] == [0.0] * 8
    assert not any(gate.passed for gate in gates)


# What follows breaks the engine under a step, and sees the step itself say so.


def _step(bench: Bench, kind: str, target: str | None = None) -> StepOutcome:
    target = bench.course.concepts[0].concept_id if target is None else target
    return drive._STEPS[kind](bench, Step(f"{kind}/{target}", kind, target))  # type: ignore[arg-type]


def test_steps_pass_on_the_engine_as_it_is(safety_bench: Bench, identity_bench: Bench) -> None:
    for bench in (safety_bench, identity_bench):
        for kind in ("seed", "accept", "relation", "compose"):
            assert _step(bench, kind).passed, (bench.candidate.kind, kind)


def test_an_ordinary_question_that_is_refused_fails_its_step(safety_bench: Bench) -> None:
    refused = {
        text: replace(answer, row={**answer.row, "status": "refused"}) for text, answer in safety_bench.answers.items()
    }
    assert not _step(replace(safety_bench, answers=refused), "accept").passed


def test_a_boundary_lost_in_composition_fails_seed_and_compose(safety_bench: Bench) -> None:
    target = safety_bench.course.concepts[0].concept_id
    manifold: IdentityManifold = replace(
        safety_bench.runtime.manifold, boundary_ids=safety_bench.runtime.manifold.boundary_ids - {target}
    )
    bench = replace(safety_bench, runtime=replace(safety_bench.runtime, manifold=manifold))
    assert not _step(bench, "seed", target).passed
    assert not _step(bench, "compose").passed


def test_a_field_that_leaves_the_manifold_fails_its_seed(safety_bench: Bench) -> None:
    runtime = replace(safety_bench.runtime, operators=1.01 * safety_bench.runtime.operators)
    assert not _step(replace(safety_bench, runtime=runtime), "seed").passed


def test_an_axis_changed_in_composition_fails_its_seed(identity_bench: Bench) -> None:
    manifold = identity_bench.runtime.manifold
    doubled = replace(manifold, axes=replace(manifold.axes, weights=2.0 * manifold.axes.weights))
    bench = replace(identity_bench, runtime=replace(identity_bench.runtime, manifold=doubled))
    assert not _step(bench, "seed").passed


@pytest.mark.parametrize("boundary", sorted(drive.FAILURES))
def test_each_of_the_five_notices_the_failure_it_guards_against(boundary: str, safety_bench: Bench) -> None:
    assert _step(safety_bench, "relation", boundary).record == {"noticed": "refused"}


@pytest.mark.parametrize("boundary", sorted(drive.FAILURES))
def test_a_failure_that_the_engine_does_not_notice_fails_its_relation(
    boundary: str, safety_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drive, "FAILURES", {boundary: lambda bench: Evidence()})
    assert not _step(safety_bench, "relation", boundary).passed


def test_a_threshold_that_no_axis_can_fall_below_fails_its_relation(identity: Candidate, identity_bench: Bench) -> None:
    blind = replace(identity, identity=replace(identity.identity, alignment_threshold=0.0))
    bench = replace(identity_bench, candidate=blind, runtime=blind.compose())
    assert not _step(bench, "relation").passed


def test_ordinary_prompts_are_answered_at_all(safety_bench: Bench) -> None:
    for prompt in ORDINARY_PROMPTS:
        assert safety_bench.answers[prompt].row["status"] == "ok"
