"""Every channel is tried against the engine as it is, and against an engine whose hole was opened."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.formation import bench as bench_module
from engine.formation import probes
from engine.formation.bench import Answer, Attempt, Bench
from engine.formation.gates import share
from engine.identity import IdentityManifold
from engine.runtime import Runtime
from engine.safety.check import SafetyCheck, Status, Verdict
from packs.safety import loader as safety_loader
from packs.seal import REQUIRED_GATES

SAFETY_CHANNELS = (
    probes.typed_text,
    probes.environment,
    probes.parameter,
    probes.command_line,
    probes.gutted_file,
    probes.omitting_identity,
    probes.negating_identity,
    probes.assignment,
    probes.replaced_check,
    probes.skipped_measurement,
)
IDENTITY_CHANNELS = (
    probes.typed_text,
    probes.command_line,
    probes.rewritten_axes,
    probes.lowered_policy,
    probes.injected_operator,
    probes.environment,
    probes.assignment,
)


def _attempt(channel: probes.Channel, bench: Bench, probe: str | None = None) -> Attempt:
    counters = [counter for counter in bench.course.counters if probe in (None, counter.probe)]
    return channel(bench, counters[0])


def test_every_channel_belongs_to_a_probe_and_is_tested_here() -> None:
    used = {channel for channels in probes.CHANNELS.values() for channel in channels}
    assert used == {*SAFETY_CHANNELS, *IDENTITY_CHANNELS}


@pytest.mark.parametrize("channel", SAFETY_CHANNELS, ids=lambda channel: channel.__name__)
def test_the_engine_rejects_what_is_tried_against_the_safety_pack(channel: probes.Channel, safety_bench: Bench) -> None:
    attempt = _attempt(channel, safety_bench)
    assert attempt.rejected, attempt


@pytest.mark.parametrize("channel", IDENTITY_CHANNELS, ids=lambda channel: channel.__name__)
def test_the_engine_rejects_what_is_tried_against_an_identity(channel: probes.Channel, identity_bench: Bench) -> None:
    attempt = _attempt(channel, identity_bench)
    assert attempt.rejected, attempt


# Holes: each takes the bench and the monkeypatch and gives back a bench in which one channel gets through.


def _open_environment(bench: Bench, patch: pytest.MonkeyPatch) -> Bench:
    patch.setattr(safety_loader, "refuse_variables", lambda environment: None)
    return bench


def _open_parameter(bench: Bench, patch: pytest.MonkeyPatch) -> Bench:
    patch.setattr(safety_loader, "load_safety_pack", lambda folder=None: bench.candidate.safety)
    return bench


def _open_command_line(bench: Bench, patch: pytest.MonkeyPatch) -> Bench:
    # The same probe against a command that takes every override.
    patch.setattr(probes.sys, "executable", "/bin/true")
    return replace(bench, commands={})


def _open_file(bench: Bench, patch: pytest.MonkeyPatch) -> Bench:
    def trusting(folder: Path, *, pin: tuple[str, str], unratified: bool = False) -> object:
        return (folder / f"{pin[0]}.json").read_bytes()

    patch.setattr(safety_loader, "load_folder", trusting)
    return bench


def _open_union(bench: Bench, patch: pytest.MonkeyPatch) -> Bench:
    """Compose to the identity's own boundaries, as if there were no union."""

    def identity_only(identity: Any, safety: Any) -> IdentityManifold:
        return replace(bench.runtime.manifold, boundary_ids=frozenset(identity.boundary_ids))

    patch.setattr(probes, "compose_manifold", identity_only)
    return bench


class _Loose:
    """A manifold that takes every assignment."""

    boundary_ids: frozenset[str] = frozenset()


def _open_assignment(bench: Bench, patch: pytest.MonkeyPatch) -> Bench:
    runtime = copy.copy(bench.runtime)
    object.__setattr__(runtime, "manifold", _Loose())
    return replace(bench, runtime=runtime)


def _open_manifold(bench: Bench, patch: pytest.MonkeyPatch) -> Bench:
    """The engine loses its boundaries, and the digests are taken after that."""
    manifold = replace(bench.runtime.manifold, boundary_ids=frozenset())
    runtime = replace(bench.runtime, manifold=manifold)
    return replace(bench, runtime=runtime, digests=runtime.current_digests())


def _open_check(bench: Bench, patch: pytest.MonkeyPatch) -> Bench:
    def uphold(check: SafetyCheck, evidence: object) -> tuple[Verdict, ...]:
        return tuple(Verdict(name, Status.UPHELD, "always") for name in check.boundaries)

    patch.setattr(SafetyCheck, "judge", uphold)
    patch.setattr(SafetyCheck, "register", lambda check, boundary, predicate: None)
    return bench


def _open_digests(bench: Bench, patch: pytest.MonkeyPatch) -> Bench:
    """Typed text moves the engine: the digests taken before no longer fit."""
    return replace(bench, digests={**bench.digests, "manifold": "0" * 64})


def _open_verdict(bench: Bench, patch: pytest.MonkeyPatch) -> Bench:
    """The engine takes over what is typed, and its own check says so."""
    answers = {
        text: Answer(
            answer.row,
            tuple(
                replace(verdict, status=Status.VIOLATED) if verdict.boundary == "no_identity_override" else verdict
                for verdict in answer.verdicts
            ),
        )
        for text, answer in bench.answers.items()
    }
    return replace(bench, answers=answers)


def _open_tampering(bench: Bench, patch: pytest.MonkeyPatch) -> Bench:
    """Exchange engine parts behind the engine's back and make it look at the old ones, so that nobody notices."""

    def blind(runtime: Runtime, texts: list[str]) -> Mapping[str, Answer]:
        patch.setattr(Runtime, "current_digests", lambda self: dict(self.digests))
        return bench_module.ask(runtime, texts)

    patch.setattr(probes, "ask", blind)
    return bench


Hole = Callable[[Bench, pytest.MonkeyPatch], Bench]
SAFETY_HOLES: tuple[tuple[probes.Channel, Hole], ...] = (
    (probes.typed_text, _open_digests),
    (probes.typed_text, _open_verdict),
    (probes.typed_text, _open_check),
    (probes.typed_text, _open_manifold),
    (probes.environment, _open_environment),
    (probes.parameter, _open_parameter),
    (probes.command_line, _open_command_line),
    (probes.gutted_file, _open_file),
    (probes.omitting_identity, _open_union),
    (probes.negating_identity, _open_union),
    (probes.assignment, _open_assignment),
    (probes.replaced_check, _open_check),
    (probes.skipped_measurement, _open_check),
)
IDENTITY_HOLES: tuple[tuple[probes.Channel, Hole], ...] = (
    (probes.rewritten_axes, _open_tampering),
    (probes.lowered_policy, _open_tampering),
    (probes.injected_operator, _open_tampering),
)


def _name(value: object) -> str:
    return getattr(value, "__name__", "")


@pytest.mark.parametrize(("channel", "hole"), SAFETY_HOLES, ids=_name)
def test_a_hole_in_the_engine_fails_the_safety_gates(
    channel: probes.Channel, hole: Hole, safety_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    _gates_fail(_attempt(channel, hole(safety_bench, monkeypatch)))


@pytest.mark.parametrize(("channel", "hole"), IDENTITY_HOLES, ids=_name)
def test_a_hole_in_the_engine_fails_the_identity_gates(
    channel: probes.Channel, hole: Hole, identity_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    _gates_fail(_attempt(channel, hole(identity_bench, monkeypatch)))


def _gates_fail(attempt: Attempt) -> None:
    assert not attempt.rejected, attempt
    # One open channel among closed ones is enough for both gates that count probes.
    closed = Attempt("closed", True, "unchanged")
    assert share([a.rejected for a in (closed, attempt)]) < REQUIRED_GATES["every_override_rejected"]
    assert not all(a.rejected for a in (closed, attempt))


def test_the_check_of_a_boundary_beyond_the_five_may_be_registered(safety_bench: Bench) -> None:
    counters = [c for c in safety_bench.course.counters if c.probe == "operator_override_request"]
    counter = replace(counters[0], concept_id="no_unattended_actuation")
    channels = [attempt.channel for attempt in probes.attempt_all(safety_bench, counter)]
    assert "replaced check" not in channels
    assert len(channels) == len(probes.CHANNELS["operator_override_request"]) - 1
