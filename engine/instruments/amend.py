"""The amend arm: a conservative revision of the first constitution file, with lineage, staged for a human to adopt.

Guards, retrieval, renderer and generation parameters are those of the shadow arm, and nothing of the shadow arm is
imported: what is staged is the same whether that arm exists, ran, or was never asked.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.instruments.arms import (
    Abstain,
    Inputs,
    Material,
    PathLike,
    Verdict,
    gather,
    make_inputs,
    require_complete,
)
from engine.instruments.cache import EmbeddingCache
from engine.instruments.constitution import ConstitutionFile
from engine.instruments.embed.base import DEFAULT_EMBEDDER, Embedder
from engine.instruments.notes import NOT_A_CANDIDATE
from engine.instruments.patterns import PatternStore
from engine.instruments.readings import embed_checked
from engine.instruments.sections import ParsedSection, clause_sections
from engine.instruments.staging import Proposal, stage
from engine.instruments.stamp import take_stamp
from engine.instruments.synthesize.base import (
    DEFAULT_GENERATOR,
    Generated,
    GenerationRequest,
    Generator,
    Revision,
    Section,
)
from engine.instruments.validate import validate


@dataclass(frozen=True)
class AmendResult:
    """One amendment. `text` is the proposed first file, `diff` its unified diff to the text in force, `staged` the
    files written (none where nothing was to be staged)."""

    verdict: Verdict
    message: str
    text: str | None
    diff: str
    validation: tuple[str, ...]
    generated: Generated | None
    staged: tuple[Path, ...]
    fields: Mapping[str, Any]

    @property
    def ok(self) -> bool:
        """Whether there is a valid proposal."""
        return self.verdict == "ok"


def amend_constitution(
    constitution_dir: PathLike | None,
    patterns: PatternStore | PathLike,
    *,
    stage_dir: PathLike | None = None,
    embedder: Embedder | str = DEFAULT_EMBEDDER,
    generator: Generator | str = DEFAULT_GENERATOR,
    key: int = 0,
    views_dir: PathLike | None = None,
    prompts_dir: PathLike | None = None,
    cache: EmbeddingCache | None = None,
) -> AmendResult:
    """Propose an amendment of the first constitution file and, where `stage_dir` is given, stage it.

    The arguments are those of `synthesize_shadow_constitution`. The proposal keeps every section, heading and clause
    count of the text in force; one that does not, or fails validation, is returned as `validation_failed` and not
    staged.

    Raises:
      SafetyPackError: the safety pack cannot be trusted.
      PatternFileError, ConfigError: a mistake of the call.
      StagingError: the staging folder cannot be written.
    """
    stamp = take_stamp()
    inputs = make_inputs(
        constitution_dir,
        patterns,
        embedder=embedder,
        generator=generator,
        key=key,
        views_dir=views_dir,
        prompts_dir=prompts_dir,
        cache=cache,
    )
    fields: dict[str, Any] = {}
    try:
        material = gather("amend", inputs, fields)
        generated = inputs.generator.generate(make_request(material, inputs))
        require_complete(generated)
    except Abstain as fault:
        return AmendResult(fault.code, str(fault), None, "", (), None, (), fields)
    stamp.recheck()
    return _propose(material, inputs, generated, fields, stage_dir)


def make_request(material: Material, inputs: Inputs) -> GenerationRequest:
    """Return the generator's request: as the shadow arm's, with the first file to revise and its clauses' embeddings.

    Raises `Abstain` (`llm_failure`) if the clauses cannot be embedded, `validation_failed` cases being found later.
    """
    first = material.constitution.first
    return GenerationRequest(
        prompt=material.templates.render({"PATTERNS": material.patterns_block, "CONSTITUTION": first.text}),
        system=material.templates.system,
        patterns=material.retrieved.patterns,
        vectors=material.retrieved.vectors,
        key=inputs.key,
        revision=_revision(first, inputs.embedder),
    )


def shape_faults(before: str, after: str) -> tuple[str, ...]:
    """Return where `after` does not keep the sections, headings and clause counts of `before`."""
    old, new = clause_sections(before), clause_sections(after)
    if [section.heading for section in old] != [section.heading for section in new]:
        return ("shape: the sections or their headings changed",)
    return tuple(
        f"shape: section {a.heading!a} has {len(b.clauses)} clauses instead of {len(a.clauses)}"
        for a, b in zip(old, new, strict=True)
        if len(a.clauses) != len(b.clauses)
    )


def _revision(first: ConstitutionFile, embedder: Embedder) -> Revision:
    sections = clause_sections(first.text)
    clauses = [clause.text for section in sections for clause in section.clauses]
    if not clauses:
        raise Abstain("empty_constitution", f"{first.name} holds no clauses to amend")
    embedded = embed_checked(embedder, clauses)
    if embedded.vectors is None:
        raise Abstain("llm_failure", f"the clauses in force could not be embedded: {embedded.reason}")
    return Revision(first.text, tuple(_plain(section) for section in sections), embedded.vectors)


def _plain(section: ParsedSection) -> Section:
    return Section(section.heading, tuple(clause.text for clause in section.clauses))


def _propose(
    material: Material, inputs: Inputs, generated: Generated, fields: dict[str, Any], stage_dir: PathLike | None
) -> AmendResult:
    first = material.constitution.first
    text = generated.text.strip()
    difference = unified_diff(first.text, text, first.name)
    faults = (*shape_faults(first.text, text), *_new_faults(first.text, text))
    if faults:
        message = "; ".join(faults)
        return AmendResult("validation_failed", message, text, difference, faults, generated, (), fields)
    staged: tuple[Path, ...] = ()
    if stage_dir is not None:
        proposal = Proposal(
            constitution_dir=material.constitution.folder.resolve(),
            file=first.name,
            current_text=first.text,
            text=text,
            diff=difference,
            lineage=generated.lineage,
            pattern_texts={pattern.id: pattern.text for pattern in material.retrieved.patterns},
            patterns_sha256=inputs.store.sha256,
            generator=inputs.generator.id,
            generator_parameters=dict(inputs.generator.parameters),
            embedding_model=inputs.embedder.id,
            key=inputs.key,
        )
        staged = stage(proposal, stage_dir)
    message = "amended by patterns" if difference else "no clause was changed"
    return AmendResult("ok", message, text, difference, (), generated, staged, fields)


def _new_faults(before: str, after: str) -> tuple[str, ...]:
    """Faults that the text in force does not have already: an amendment is not blamed for the shape it had to keep."""
    known = set(validate(before))
    return tuple(fault for fault in validate(after) if fault not in known)


def unified_diff(before: str, after: str, name: str) -> str:
    """Return the unified diff of two texts, empty where they are equal. No dates: equal inputs give equal bytes."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"in force: {name}", f"proposed: {name}", lineterm=""
    )
    return "".join(f"{line}\n" for line in lines)


STATUS = f"The shadow text is {NOT_A_CANDIDATE}. This proposal is staged: nothing changes until it is adopted."
