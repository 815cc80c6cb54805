"""From what a run measured to rows that say it: hedge, surface, verdicts, refusal, digests."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from engine.base.errors import InnerLoopExhaustion
from engine.generate.hedge import Band, Hedge, choose_hedge
from engine.generate.intent import OPEN, RELATION_CHECK
from engine.generate.surface import Speaker, Surface
from engine.generate.walk import EXHAUSTED, WalkReason
from engine.runtime.prompts import NO_KNOWN_WORD, NOT_GROUNDED, UNKNOWN_WORD, PreparedPrompt
from engine.runtime.result import COLUMNS, ResultTable
from engine.runtime.runtime import Runtime
from engine.runtime.settings import Settings
from engine.safety.account import Account
from engine.safety.check import RUN_BOUNDARIES, ClosureEvidence, Evidence, Verdict, refusal
from engine.safety.citations import CitedClaim
from engine.safety.hotpath import HotPathReport

SAID_STEPS = 2
"""Steps of a walk that become sentences; a relation check says only the one it asked for."""

MAX_NAMED_UNKNOWN = 3
"""Unknown words that a surface names."""


@dataclass(frozen=True)
class Outcome:
    """What one row's walk measured, on the host."""

    token_ids: NDArray[np.int32]
    edges: tuple[int, ...]
    motor: NDArray[np.float64]
    reason: WalkReason
    residuals: NDArray[np.float64]
    max_residual: float
    first_violation: int
    closed: bool
    alignment: float
    axis_alignments: NDArray[np.float64]
    deviating: NDArray[np.bool_]
    leakage: float
    flagged: bool


@dataclass(frozen=True)
class RunRecord:
    """A whole run: `outcomes` by prompt number, each a list over (runtime, seed)."""

    runtimes: tuple[Runtime, ...]
    prepared: tuple[PreparedPrompt, ...]
    settings: Settings
    outcomes: Mapping[int, list[Outcome]]
    digests_before: tuple[Mapping[str, str], ...]
    digests_after: tuple[Mapping[str, str], ...]
    proofs: Mapping[str, HotPathReport]
    account: Account


@dataclass(frozen=True)
class _Said:
    """What a row says: the surface it would say, its claims, the refusal code if it says none."""

    surface: Surface
    claims: tuple[CitedClaim, ...]
    code: str | None


def write_rows(record: RunRecord) -> ResultTable:
    """Return the result table of a run; every prompt, runtime and seed has its row."""
    seeds, steps = record.settings.seeds, record.settings.steps
    expected = len(record.prepared) * len(record.runtimes) * len(seeds)
    cells = [
        (number, index, place)
        for number in range(len(record.prepared))
        for index in range(len(record.runtimes))
        for place in range(len(seeds))
    ]
    outcomes = [_outcome_of(record, *cell) for cell in cells]
    said = [_say(record, number, index, outcome) for (number, index, _), outcome in zip(cells, outcomes, strict=True)]
    run_verdicts = [_judge_run(record, index, expected, len(said)) for index in range(len(record.runtimes))]
    rows: list[dict[str, Any]] = []
    verdicts: list[tuple[Verdict, ...]] = []
    for (number, index, place), outcome, words in zip(cells, outcomes, said, strict=True):
        judged = _judge_row(record.runtimes[index], outcome, words, run_verdicts[index])
        verdicts.append(judged)
        rows.append(_row(record, number, index, seeds[place], outcome, words, judged))
    nothing = np.full(steps, -1, np.int32)
    return ResultTable(
        rows=rows,
        token_ids=np.array([nothing if o is None else o.token_ids for o in outcomes], np.int32).reshape(-1, steps),
        final_motors=np.array([np.full(16, np.nan) if o is None else o.motor for o in outcomes]).reshape(-1, 16),
        residuals=np.array([np.zeros(steps + 1) if o is None else o.residuals for o in outcomes], np.float64).reshape(
            -1, steps + 1
        ),
        verdicts=tuple(verdicts),
        claims=tuple(words.claims for words in said),
        exhaustions=tuple(
            None if outcome is None else _exhaustion(record.runtimes[index], record.prepared[number], outcome)
            for (number, index, _), outcome in zip(cells, outcomes, strict=True)
        ),
        incidents=record.account.incidents,
        digests=dict(record.digests_after[0]),
    )


def _outcome_of(record: RunRecord, number: int, index: int, place: int) -> Outcome | None:
    found = record.outcomes.get(number)
    return None if found is None else found[index * len(record.settings.seeds) + place]


def _say(record: RunRecord, number: int, index: int, outcome: Outcome | None) -> _Said:
    """Return what a row says before the safety check has seen it."""
    runtime, prompt = record.runtimes[index], record.prepared[number]
    speaker = runtime.lexis.speaker
    nothing = Hedge(Band.BARE)
    if outcome is None:
        key = {UNKNOWN_WORD: "unknown_word", NO_KNOWN_WORD: "not_grounded"}.get(str(prompt.refusal), "refusal")
        text = _phrase(record, number, speaker, key, word=prompt.detail)
        return _Said(Surface(text, (), nothing), (), prompt.refusal)
    if not outcome.edges:
        two = prompt.intent.head is not None and prompt.intent.tail is not None
        key = "relation_absent" if two and not speaker.lacks("relation_absent") else "not_grounded"
        ends = {"head": _text(prompt.intent.head), "tail": _text(prompt.intent.tail)}
        return _Said(Surface(_phrase(record, number, speaker, key, **ends), (), nothing), (), NOT_GROUNDED)
    hedge = _hedge(runtime, outcome)
    limit = 1 if prompt.intent.kind == RELATION_CHECK else SAID_STEPS
    steps = [runtime.lexis.step(edge) for edge in outcome.edges[:limit]]
    unknown = prompt.unknown[:MAX_NAMED_UNKNOWN]
    tagged = [_phrase(record, number, speaker, "unknown_word", word=word) for word in unknown]
    surface = speaker.say(steps, hedge, extra=tagged)
    language = runtime.language_id
    claims = tuple(CitedClaim(claim.text, language, claim.relation, claim.citation) for claim in surface.claims)
    return _Said(surface, claims, None)


def _text(mention: Any) -> str:
    return "" if mention is None else str(mention.text)


def _phrase(record: RunRecord, number: int, speaker: Speaker, key: str, **values: str) -> str:
    """Return a fixed phrase; where the pack has none of its own, the default that is said is entered in the account."""
    if speaker.lacks(key):
        shown = f"prompt {record.prepared[number].prompt_id}: surface"
        record.account.fallback("generate.surface", f"the pack has no phrase {key}", shown_in=shown)
    return speaker.phrase(key, **values)


def _hedge(runtime: Runtime, outcome: Outcome) -> Hedge:
    """Return the hedge of a row; a state that is not closed or not finite is refused later and is not hedged."""
    if not (outcome.closed and np.isfinite(outcome.alignment)):
        return Hedge(Band.BARE)
    names = runtime.manifold.axis_ids
    axes = [names[place] for place in np.flatnonzero(outcome.deviating[: len(names)])]
    return choose_hedge(runtime.manifold.surface_preferences, outcome.alignment, axes, runtime.lexis.speaker.phrases)


def _judge_run(record: RunRecord, index: int, expected: int, returned: int) -> tuple[Verdict, ...]:
    evidence = Evidence(
        digests_before=record.digests_before[index],
        digests_after=record.digests_after[index],
        proofs=record.proofs,
        incidents=record.account.incidents,
        expected=expected,
        returned=returned,
    )
    return record.runtimes[index].check.judge(evidence, RUN_BOUNDARIES)


def _judge_row(
    runtime: Runtime, outcome: Outcome | None, said: _Said, run_verdicts: tuple[Verdict, ...]
) -> tuple[Verdict, ...]:
    closure = None
    if outcome is not None:
        closure = ClosureEvidence(outcome.max_residual, outcome.first_violation, outcome.closed)
    check = runtime.check
    own = check.judge(Evidence(closure=closure, claims=said.claims), set(check.boundaries) - RUN_BOUNDARIES)
    return tuple(sorted((*run_verdicts, *own), key=lambda verdict: verdict.boundary))


def _row(
    record: RunRecord,
    number: int,
    index: int,
    seed: int,
    outcome: Outcome | None,
    said: _Said,
    verdicts: tuple[Verdict, ...],
) -> dict[str, Any]:
    runtime, prompt = record.runtimes[index], record.prepared[number]
    refused = refusal(verdicts)
    code = said.code if refused is None else f"boundary:{','.join(refused.boundaries)}"
    composition = runtime.composition
    row: dict[str, Any] = {
        "prompt_id": prompt.prompt_id,
        "prompt": prompt.text,
        "identity": runtime.identity_id,
        "language": runtime.language_id,
        "seed": seed,
        "perturb": record.settings.perturb,
        "alpha": record.settings.alpha,
        "status": "ok" if code is None else "refused",
        "refusal": code,
        "surface": said.surface.text if refused is None else refused.text,
        "withheld": None if refused is None else said.surface.text,
        "citations": json.dumps([_citation(claim) for claim in said.claims], ensure_ascii=False),
        "intent": prompt.intent.kind if prompt.intent.head is not None else OPEN,
        "unknown_words": json.dumps(list(prompt.unknown), ensure_ascii=False),
        "safety_sha256": composition.safety.sha256,
        "identity_sha256": composition.identity.sha256,
        "language_sha256": composition.language.sha256,
        "ratified": composition.ratified,
        **_software(),
        **_measured(runtime, outcome, said),
    }
    return {name: row[name] for name in COLUMNS}


def _measured(runtime: Runtime, outcome: Outcome | None, said: _Said) -> dict[str, Any]:
    """Return the columns that come from the walk; None where a prompt had no state."""
    if outcome is None:
        absent = ("reason", "alignment", "axis_alignments", "leakage", "flagged", "hedge", "hedge_phrase")
        numbers = ("max_residual", "first_violation", "final_motor")
        return {**dict.fromkeys((*absent, *numbers)), "tokens": "[]", "token_ids": "[]", "steps": 0}
    words = [int(token) for token in outcome.token_ids if token >= 0]
    axes = dict(zip(runtime.manifold.axis_ids, map(_number, outcome.axis_alignments), strict=False))
    return {
        "tokens": json.dumps([runtime.lexis.lemmas[word] for word in words], ensure_ascii=False),
        "token_ids": json.dumps(words),
        "steps": len(words),
        "reason": outcome.reason.name.lower(),
        "alignment": _number(outcome.alignment),
        "axis_alignments": json.dumps(axes),
        "leakage": _number(outcome.leakage),
        "flagged": outcome.flagged,
        "hedge": said.surface.hedge.band.value,
        "hedge_phrase": said.surface.hedge.phrase,
        "max_residual": outcome.max_residual,
        "first_violation": outcome.first_violation,
        "final_motor": json.dumps([_number(value) for value in outcome.motor]),
    }


def _number(value: Any) -> float | None:
    """Return a finite number, or None: JSON and tables have no NaN."""
    return float(value) if np.isfinite(value) else None


def _citation(claim: CitedClaim) -> dict[str, Any]:
    relation, citation = claim.relation, claim.citation
    triple = {"head": relation.head, "relation": relation.relation, "tail": relation.tail, "text": claim.text}
    if citation is None:
        return triple
    span = {"source": citation.source, "sha256": citation.sha256, "start": citation.start, "end": citation.end}
    return {**triple, **span}


@cache
def _software() -> dict[str, str]:
    device = jax.devices()[0]
    return {
        "backend": jax.default_backend(),
        "device": str(device.device_kind),
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "precision": "float64",
    }


def _exhaustion(runtime: Runtime, prompt: PreparedPrompt, outcome: Outcome) -> InnerLoopExhaustion | None:
    """Return the typed error of a walk that ended for want of an admissible word, with the words it rejected."""
    if outcome.reason not in EXHAUSTED:
        return None
    lexis, step = runtime.lexis, len(outcome.edges)
    word = int(outcome.token_ids[step - 1]) if step else prompt.start
    rejected = tuple(dict.fromkeys(lexis.lemmas[tail] for _, tail in lexis.edges_of(word)))
    region = prompt.region.label if step == 0 else ""
    return InnerLoopExhaustion(
        f"no admissible word after {lexis.lemmas[word]} at step {step}: {outcome.reason.name.lower()}, "
        f"{len(rejected)} words rejected",
        reason=outcome.reason.name.lower(),
        region=region or None,
        step=step,
        rejected=rejected,
    )
