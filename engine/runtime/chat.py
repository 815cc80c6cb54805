"""One turn of talk at a time, on a runtime that no turn can change."""

import json
import os
from dataclasses import dataclass
from typing import Any

from engine.runtime.result import ResultTable
from engine.runtime.runtime import Runtime
from engine.safety.check import Status, Verdict
from packs.language.model import Relation


@dataclass(frozen=True)
class ChatCitation:
    """What a claim stands on: the relation, the span of the source (bytes, end exclusive) and the sentence in it."""

    claim: str
    relation: Relation
    source: str
    sha256: str
    start: int
    end: int
    sentence: str


@dataclass(frozen=True)
class ChatRefusal:
    """Why a turn has no answer: a reason code, and the boundaries that an answer would have violated, if any."""

    reason: str
    boundaries: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class ChatResponse:
    """One answer. `surface` is what is said, `refusal` is None where the question was answered.

    `row` has the columns of `engine.runtime.COLUMNS`: alignment, hedge, tokens, digests and the rest.
    """

    surface: str
    verdicts: tuple[Verdict, ...]
    citations: tuple[ChatCitation, ...]
    refusal: ChatRefusal | None
    row: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the response as plain values, fit for JSON."""
        row = self.row
        return {
            "surface": self.surface,
            "refusal": None if self.refusal is None else {**vars(self.refusal)},
            "verdicts": [
                {"boundary": verdict.boundary, "status": verdict.status.value, "evidence": verdict.evidence}
                for verdict in self.verdicts
            ],
            "citations": [{**vars(citation), "relation": _triple(citation.relation)} for citation in self.citations],
            "tokens": json.loads(row["tokens"]),
            "unknown_words": json.loads(row["unknown_words"]),
            "axis_alignments": None if row["axis_alignments"] is None else json.loads(row["axis_alignments"]),
            **{name: row[name] for name in _PLAIN},
        }


_PLAIN = (
    "identity",
    "language",
    "intent",
    "alignment",
    "leakage",
    "flagged",
    "hedge",
    "hedge_phrase",
    "reason",
    "steps",
    "max_residual",
    "first_violation",
    "safety_sha256",
    "identity_sha256",
    "language_sha256",
    "ratified",
)


class ChatRuntime:
    """Talks in one language under one identity. Another identity or language is another `ChatRuntime`."""

    def __init__(
        self,
        runtime: Runtime | None = None,
        *,
        identity: str | None = "default_general_v1",
        language: str | None = "en",
        packs_path: str | os.PathLike[str] | None = None,
    ) -> None:
        """Talk to `runtime`, or to one that is loaded as `Runtime.load` would."""
        self._runtime = runtime if runtime is not None else Runtime.load(identity, language, packs_path=packs_path)

    @classmethod
    def load(
        cls,
        identity: str | None = "default_general_v1",
        language: str | None = "en",
        *,
        packs_path: str | os.PathLike[str] | None = None,
    ) -> "ChatRuntime":
        """Load a runtime to talk with; arguments and errors as for `Runtime.load`."""
        return cls(identity=identity, language=language, packs_path=packs_path)

    @property
    def runtime(self) -> Runtime:
        """The runtime that is talked to."""
        return self._runtime

    def chat(self, text: str) -> ChatResponse:
        """Answer one text. A text that cannot be answered gives a response with a refusal; nothing is remembered.

        Raises `SafetyPackError` if the installed safety pack is no longer the one in force.
        """
        return _response(self._runtime, self._runtime.evaluate([text]))


def _response(runtime: Runtime, table: ResultTable) -> ChatResponse:
    row, verdicts = table.rows[0], table.verdicts[0]
    refusal = None
    if row["refusal"] is not None:
        violated = tuple(verdict.boundary for verdict in verdicts if verdict.status is Status.VIOLATED)
        refusal = ChatRefusal(row["refusal"], violated, row["surface"])
    pack = runtime.composition.language
    citations = tuple(
        ChatCitation(
            claim=claim.text,
            relation=claim.relation,
            source=claim.citation.source,
            sha256=claim.citation.sha256,
            start=claim.citation.start,
            end=claim.citation.end,
            sentence=pack.cited_text(claim.citation),
        )
        for claim in table.claims[0]
        if claim.citation is not None and refusal is None
    )
    return ChatResponse(row["surface"], verdicts, citations, refusal, row)


def _triple(relation: Relation) -> list[str]:
    return [relation.head, relation.relation, relation.tail]
