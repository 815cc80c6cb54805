"""What the shadow and the amend arm share: the guards in their one order, retrieval, and the bookkeeping of a run.

View registry, at least three patterns, prompt, folder, files, readable, not empty: the first fault names the run.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from engine.base.errors import UsageError
from engine.instruments.cache import EmbeddingCache
from engine.instruments.constitution import Constitution, ConstitutionUnreadable, read_constitution
from engine.instruments.embed.base import DEFAULT_EMBEDDER, Embedder, embedder_digest, load_embedder
from engine.instruments.patterns import PatternStore, epistemic_counts, read_patterns
from engine.instruments.prompts import Arm, PromptFault, Templates, load_templates
from engine.instruments.render import render_patterns
from engine.instruments.retrieval import MIN_PATTERNS, RetrievalFault, Retrieved, retrieve
from engine.instruments.synthesize.base import (
    DEFAULT_GENERATOR,
    ClauseLineage,
    Generated,
    Generator,
    load_generator,
)

AbstainCode: TypeAlias = Literal[
    "no_view_registry",
    "insufficient_patterns",
    "prompt_missing",
    "no_constitution_dir",
    "no_constitution_files",
    "constitution_read_error",
    "empty_constitution",
    "llm_failure",
]
Verdict: TypeAlias = AbstainCode | Literal["ok", "validation_failed"]

PathLike: TypeAlias = str | os.PathLike[str]


class Abstain(Exception):
    """A run that gives no text; `code` is its verdict, the text its one-line message."""

    def __init__(self, code: AbstainCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Inputs:
    """What a run of either arm is asked to work with."""

    constitution_dir: PathLike | None
    store: PatternStore
    embedder: Embedder
    generator: Generator
    cache: EmbeddingCache
    views_dir: PathLike | None
    prompts_dir: PathLike | None
    key: int


@dataclass(frozen=True)
class Material:
    """What the guards let through."""

    retrieved: Retrieved
    templates: Templates
    constitution: Constitution

    @property
    def patterns_block(self) -> str:
        """The retrieved patterns as both arms' prompts show them."""
        return render_patterns([pattern.text for pattern in self.retrieved.patterns])


def make_inputs(
    constitution_dir: PathLike | None,
    patterns: PatternStore | PathLike,
    *,
    embedder: Embedder | str = DEFAULT_EMBEDDER,
    generator: Generator | str = DEFAULT_GENERATOR,
    key: int = 0,
    views_dir: PathLike | None = None,
    prompts_dir: PathLike | None = None,
    cache: EmbeddingCache | None = None,
) -> Inputs:
    """Return the inputs of a run with names resolved and the pattern file read.

    Raises `PatternFileError` for an unreadable pattern file and `UsageError` for an unknown name or a key outside
    [0, 2**32): these are mistakes of the call, not runs.
    """
    if not 0 <= key < 2**32:
        raise UsageError(f"a key must lie in [0, 2**32), not {key}")
    return Inputs(
        constitution_dir,
        patterns if isinstance(patterns, PatternStore) else read_patterns(patterns),
        load_embedder(embedder) if isinstance(embedder, str) else embedder,
        load_generator(generator) if isinstance(generator, str) else generator,
        cache if cache is not None else EmbeddingCache(),
        views_dir,
        prompts_dir,
        key,
    )


def gather(arm: Arm, inputs: Inputs, fields: dict[str, Any]) -> Material:
    """Pass the guards in order and return what generation needs; `fields` is filled as far as the run comes.

    Raises `Abstain` with the first fault.
    """
    try:
        retrieved = retrieve(
            inputs.store, inputs.constitution_dir, inputs.embedder, inputs.cache, views_dir=inputs.views_dir
        )
    except RetrievalFault as fault:
        raise Abstain("no_view_registry", str(fault)) from None
    fields.update(_retrieval_fields(inputs, retrieved))
    if len(retrieved.patterns) < MIN_PATTERNS:
        found = f"{len(retrieved.patterns)} of {len(inputs.store.patterns)} live patterns selected"
        raise Abstain("insufficient_patterns", f"{found}; at least {MIN_PATTERNS} are needed")
    try:
        templates = load_templates(arm, inputs.prompts_dir)
    except PromptFault as fault:
        raise Abstain("prompt_missing", str(fault)) from None
    try:
        constitution = read_constitution(inputs.constitution_dir)
    except ConstitutionUnreadable as fault:
        raise Abstain(fault.code, str(fault)) from None
    fields["current_sha256"] = constitution.sha256
    fields["constitution_files"] = [file.name for file in constitution.files]
    fields["constitution_file_sha256"] = [file.sha256 for file in constitution.files]
    return Material(retrieved, templates, constitution)


def require_complete(generated: Generated) -> None:
    """Raise `Abstain` (`llm_failure`) unless the generator gave a whole text."""
    if not generated.complete:
        detail = f": {generated.detail}" if generated.detail else ""
        raise Abstain("llm_failure", f"the generator ended with {generated.done_reason!r}{detail}")
    if not generated.text.strip():
        raise Abstain("llm_failure", "the generator gave an empty text")


def lineage_fields(lineage: tuple[ClauseLineage, ...] | None) -> list[dict[str, Any]] | None:
    """Return a lineage as JSON: section, clause and the ids of the patterns it came from."""
    if lineage is None:
        return None
    return [{"section": c.section, "clause": c.clause, "pattern_ids": list(c.pattern_ids)} for c in lineage]


def embedder_fields(embedder: Embedder) -> Mapping[str, Any]:
    """Return what a record says about the embedder."""
    return {
        "embedding_model": embedder.id,
        "embedding_revision": embedder.revision,
        "embedding_parameters": dict(embedder.parameters),
        "embedding_sha256": embedder_digest(embedder),
    }


def _retrieval_fields(inputs: Inputs, retrieved: Retrieved) -> dict[str, Any]:
    return {
        "pattern_count": len(retrieved.patterns),
        "pattern_ids": [pattern.id for pattern in retrieved.patterns],
        "epistemic_counts": epistemic_counts(retrieved.patterns),
        "view_sha256": retrieved.view.sha256,
        "view_band": [min(retrieved.cosines), max(retrieved.cosines)] if retrieved.cosines else None,
    }
