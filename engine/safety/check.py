"""The safety check: one predicate per boundary, evidence in every verdict, and a refusal where one is violated.

Verdicts pass or fail and are never a score. The predicates take what was measured (closure, claims, digests, proofs,
the account) and nothing else: no axis, weight, threshold or preference of an identity pack can reach them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.safety.account import Incident
from engine.safety.citations import CitationResolver, CitedClaim
from engine.safety.hotpath import HotPathReport
from packs.errors import SafetyOverrideError
from packs.ids import require_id
from packs.safety.loader import REQUIRED_BOUNDARIES


class Status(StrEnum):
    """Outcome of one boundary. A boundary that nobody can check is said to be so, and never upheld."""

    UPHELD = "upheld"
    VIOLATED = "violated"
    NOT_CHECKABLE = "not_checkable"


@dataclass(frozen=True)
class Verdict:
    """One boundary's outcome and the evidence for it, in one line."""

    boundary: str
    status: Status
    evidence: str


@dataclass(frozen=True)
class ClosureEvidence:
    """Worst closure residual over every state of a row, and the first step that broke the tolerance (-1: none)."""

    max_residual: float
    first_violation: int
    ok: bool


@dataclass(frozen=True)
class Evidence:
    """What a turn or a run left behind for the check. None means that it was not measured.

    `digests_before` and `digests_after` are of manifold, policy, vocabulary and operators; `proofs` are of the traced
    programs by name; `expected` and `returned` count result rows, so that a dropped one shows.
    """

    closure: ClosureEvidence | None = None
    claims: Sequence[CitedClaim] | None = None
    digests_before: Mapping[str, str] | None = None
    digests_after: Mapping[str, str] | None = None
    proofs: Mapping[str, HotPathReport] | None = None
    incidents: Sequence[Incident] | None = None
    expected: int | None = None
    returned: int | None = None


@dataclass(frozen=True)
class Refusal:
    """Why the runtime does not say what it would have said. `boundaries` are sorted; `text` follows from them alone."""

    boundaries: tuple[str, ...]
    text: str


Predicate = Callable[[Evidence], tuple[Status, str]]

PROVEN_PROGRAMS = ("propagate", "vault_store", "walk")
"""Programs that `no_hot_path_repair` needs a proof of."""

RUN_BOUNDARIES = frozenset({"no_hot_path_repair", "no_identity_override", "no_silent_correction"})
"""Boundaries whose evidence is of a whole run and not of one row."""

DIGESTED_PARTS = ("manifold", "operators", "policy", "vocabulary")
"""Parts that `no_identity_override` needs a digest of, before and after."""


class SafetyCheck:
    """Judges evidence against the boundaries of a composed runtime.

    The five boundaries of the floor have the predicates of this module and no others. For any other boundary a
    predicate can be registered; without one it is reported as not checkable.
    """

    def __init__(self, boundary_ids: Iterable[str], resolver: CitationResolver) -> None:
        self._boundaries = tuple(sorted(set(boundary_ids) | REQUIRED_BOUNDARIES))
        self._resolver = resolver
        self._custom: dict[str, Predicate] = {}

    @property
    def boundaries(self) -> tuple[str, ...]:
        """The boundaries that are judged, sorted."""
        return self._boundaries

    def register(self, boundary: str, predicate: Predicate) -> None:
        """Register the predicate of a boundary that an identity pack declares.

        Raises `SafetyOverrideError` for one of the five, and for a boundary that already has a predicate;
        `PackFormatError` for something that is no boundary id.
        """
        require_id(boundary, what="boundary")
        if boundary in REQUIRED_BOUNDARIES:
            raise SafetyOverrideError(f"the check of {boundary} is part of the engine and cannot be replaced")
        if boundary in self._custom:
            raise SafetyOverrideError(f"{boundary} already has a check; it cannot be replaced")
        self._custom[boundary] = predicate

    def judge(self, evidence: Evidence, boundaries: Iterable[str] | None = None) -> tuple[Verdict, ...]:
        """Return one verdict per boundary (of `boundaries`, where given), sorted by boundary."""
        judged = self._boundaries if boundaries is None else tuple(sorted(set(boundaries) & set(self._boundaries)))
        return tuple(self._verdict(boundary, evidence) for boundary in judged)

    def _verdict(self, boundary: str, evidence: Evidence) -> Verdict:
        if boundary == "no_fabricated_source":
            return Verdict(boundary, *self._judge_claims(evidence))
        predicate = _FLOOR.get(boundary) or self._custom.get(boundary)
        if predicate is None:
            return Verdict(boundary, Status.NOT_CHECKABLE, "no check is registered for this boundary")
        return Verdict(boundary, *predicate(evidence))

    def _judge_claims(self, evidence: Evidence) -> tuple[Status, str]:
        if evidence.claims is None:
            return Status.NOT_CHECKABLE, "the claims were not handed to the check"
        faults = [fault for claim in evidence.claims if (fault := self._resolver.fault(claim)) is not None]
        if faults:
            return Status.VIOLATED, faults[0]
        return Status.UPHELD, f"{len(evidence.claims)} of {len(evidence.claims)} claims cite a span that states them"


def refusal(verdicts: Sequence[Verdict]) -> Refusal | None:
    """Return the refusal that the verdicts demand, or None where no boundary is violated."""
    violated = tuple(sorted(verdict.boundary for verdict in verdicts if verdict.status is Status.VIOLATED))
    if not violated:
        return None
    return Refusal(violated, f"Refused: this would violate {', '.join(violated)}.")


def _judge_closure(evidence: Evidence) -> tuple[Status, str]:
    closure = evidence.closure
    if closure is None:
        return Status.NOT_CHECKABLE, "the closure was not measured"
    if closure.ok and closure.first_violation < 0:
        return Status.UPHELD, f"worst closure residual {closure.max_residual:.2e}"
    return Status.VIOLATED, f"closure residual {closure.max_residual:.2e}, first at state {closure.first_violation}"


def _judge_override(evidence: Evidence) -> tuple[Status, str]:
    before, after = evidence.digests_before, evidence.digests_after
    if before is None or after is None:
        return Status.NOT_CHECKABLE, "the digests were not taken"
    missing = [part for part in DIGESTED_PARTS if part not in before or part not in after]
    if missing:
        return Status.NOT_CHECKABLE, f"no digest of {', '.join(missing)}"
    changed = sorted(part for part in {*before, *after} if before.get(part) != after.get(part))
    if changed:
        return Status.VIOLATED, f"{', '.join(changed)} changed during the run"
    return Status.UPHELD, f"digests of {', '.join(sorted(before))} are unchanged"


def _judge_hot_path(evidence: Evidence) -> tuple[Status, str]:
    proofs = evidence.proofs
    if proofs is None:
        return Status.NOT_CHECKABLE, "the traced programs were not handed to the check"
    failed = [name for name in sorted(proofs) if not proofs[name].upheld]
    if failed:
        return Status.VIOLATED, f"{failed[0]}: {proofs[failed[0]]}"
    missing = [name for name in PROVEN_PROGRAMS if name not in proofs]
    if missing:
        return Status.NOT_CHECKABLE, f"no proof of {', '.join(missing)}"
    return Status.UPHELD, f"no repair in the traced programs of {', '.join(sorted(proofs))}"


def _judge_silence(evidence: Evidence) -> tuple[Status, str]:
    if evidence.incidents is None or evidence.expected is None or evidence.returned is None:
        return Status.NOT_CHECKABLE, "the account of the run was not handed to the check"
    silent = [incident for incident in evidence.incidents if not incident.shown_in]
    if silent:
        return Status.VIOLATED, f"{silent[0].seam}: {silent[0].detail} shows nowhere"
    if evidence.expected != evidence.returned:
        return Status.VIOLATED, f"{evidence.expected} results were due and {evidence.returned} returned"
    return Status.UPHELD, f"{len(evidence.incidents)} incidents, each shown in a result"


_FLOOR: Mapping[str, Predicate] = {
    "no_hot_path_repair": _judge_hot_path,
    "no_identity_override": _judge_override,
    "no_silent_correction": _judge_silence,
    "preserve_versor_closure": _judge_closure,
}
