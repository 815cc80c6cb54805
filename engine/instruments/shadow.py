"""The shadow arm: a constitution from the patterns alone, its distance to the live text, and a record of the run.

The live text is read for its guards and for the reading; it enters neither the prompt nor the system prompt nor any
other part of the generator's request. The arm decides nothing and writes nothing but its record.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from engine.instruments.arms import (
    Abstain,
    Inputs,
    Material,
    PathLike,
    Verdict,
    embedder_fields,
    gather,
    lineage_fields,
    make_inputs,
    require_complete,
)
from engine.instruments.bundles import bundle
from engine.instruments.cache import EmbeddingCache
from engine.instruments.calibration import Calibration
from engine.instruments.embed.base import DEFAULT_EMBEDDER, Embedder
from engine.instruments.notes import NOTES
from engine.instruments.patterns import PatternStore
from engine.instruments.readings import Reading, distances
from engine.instruments.records import append_record
from engine.instruments.stamp import Stamp, take_stamp
from engine.instruments.synthesize.base import DEFAULT_GENERATOR, Generated, GenerationRequest, Generator
from engine.instruments.validate import validate

SCHEMA_VERSION = "1.0.0"
EVENT = "shadow_constitution"

BUNDLES = ("prompt", "system", "output", "thinking", "current")

FIELDS = (
    "pattern_count",
    "pattern_ids",
    "patterns_sha256",
    "epistemic_counts",
    "view_sha256",
    "view_band",
    "current_sha256",
    "constitution_files",
    "constitution_file_sha256",
    "cosine_vs_current",
    "cosine_reason",
    "embedding_model",
    "embedding_revision",
    "embedding_parameters",
    "embedding_sha256",
    "embedding_windows",
    "calibration",
    "calibration_drift",
    "calibration_sha256",
    "shadow_chars",
    "current_chars",
    "generator",
    "generator_parameters",
    "done_reason",
    "key",
    "validation",
    "lineage",
)
"""Fields of a record beside the stamp and the bundles; null as far as the run did not come."""


@dataclass(frozen=True)
class ShadowResult:
    """One run. `text` is there for `ok` and `validation_failed`; `reading` wherever a text was read.

    `recorded` is None when recording was switched off and False when the record could not be written. `record` is what
    was, or would have been, recorded (without the chain hash).
    """

    verdict: Verdict
    message: str
    run_id: str
    key: int
    text: str | None
    validation: tuple[str, ...]
    reading: Reading | None
    generated: Generated | None
    recorded: bool | None
    record: Mapping[str, Any]
    notes: Mapping[str, str]

    @property
    def ok(self) -> bool:
        """Whether the run gave a valid text and, where asked for, a record."""
        return self.verdict == "ok" and self.recorded is not False


def synthesize_shadow_constitution(
    constitution_dir: PathLike | None,
    patterns: PatternStore | PathLike,
    *,
    log_path: PathLike | None,
    embedder: Embedder | str = DEFAULT_EMBEDDER,
    generator: Generator | str = DEFAULT_GENERATOR,
    key: int = 0,
    views_dir: PathLike | None = None,
    prompts_dir: PathLike | None = None,
    calibration: Calibration | None = None,
    cache: EmbeddingCache | None = None,
) -> ShadowResult:
    """Synthesise a constitution from `patterns` with the live text absent, read its distance, and record the run.

    Args:
      constitution_dir: folder of the constitution in force; every `*.md` in it is the reading's baseline.
      patterns: a pattern file, or a store read from one.
      log_path: the record log; None switches recording off on purpose.
      embedder, generator: an object of the protocol or a registered name (`name` or `name:argument`).
      key: seeds the generator, in [0, 2**32).
      views_dir, prompts_dir: folders that stand in for the shipped views and prompts.
      calibration: anchors that the reading is recorded with.
      cache: kept embeddings of patterns and seed; pass one to several runs on one corpus.

    Returns:
      The run, also when it abstained: the verdict is `ok`, `validation_failed` or one of the eight abstain codes.

    Raises:
      SafetyPackError: the safety pack cannot be trusted, or changed while the run went on.
      PatternFileError, ConfigError: a mistake of the call; no run took place.
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
    run = _Run(inputs, calibration)
    try:
        run.synthesize()
    except Abstain as fault:
        run.verdict, run.message = fault.code, str(fault)
    return run.finish(stamp, log_path)


def make_request(material: Material, key: int) -> GenerationRequest:
    """Return everything the generator may know: the patterns and the two prompts. No argument of it is the live
    text."""
    return GenerationRequest(
        prompt=material.templates.render({"PATTERNS": material.patterns_block}),
        system=material.templates.system,
        patterns=material.retrieved.patterns,
        vectors=material.retrieved.vectors,
        key=key,
    )


class _Run:
    """The state of one run while it goes through its guards; `fields` becomes the record."""

    def __init__(self, inputs: Inputs, calibration: Calibration | None) -> None:
        self.inputs = inputs
        self.calibration = calibration
        self.verdict: Verdict = "ok"
        self.message = "synthesised from patterns alone"
        self.text: str | None = None
        self.validation: tuple[str, ...] = ()
        self.reading: Reading | None = None
        self.generated: Generated | None = None
        self.fields: dict[str, Any] = {
            **dict.fromkeys(FIELDS),
            **{name: value for part in BUNDLES for name, value in bundle(part, None).items()},
            "patterns_sha256": inputs.store.sha256,
            "embedding_model": inputs.embedder.id,
            "generator": inputs.generator.id,
            "generator_parameters": dict(inputs.generator.parameters),
            "key": inputs.key,
        }

    def synthesize(self) -> None:
        material = gather("shadow", self.inputs, self.fields)
        current = material.constitution.text
        self.fields.update(embedder_fields(self.inputs.embedder))
        request = make_request(material, self.inputs.key)
        self.fields.update(bundle("prompt", request.prompt) | bundle("system", request.system))
        self.fields.update(bundle("current", current))
        self.generated = self.inputs.generator.generate(request)
        self.fields["done_reason"] = self.generated.done_reason
        self.fields["lineage"] = lineage_fields(self.generated.lineage)
        self.fields.update(bundle("thinking", self.generated.thinking or None))
        require_complete(self.generated)
        self.text = self.generated.text
        self.fields.update(bundle("output", self.text))
        self._validate(self.text)
        self._read(self.text, current)

    def _validate(self, text: str) -> None:
        self.validation = validate(text)
        self.fields["validation"] = list(self.validation)
        if self.validation:
            self.verdict, self.message = "validation_failed", "; ".join(self.validation)

    def _read(self, text: str, current: str) -> None:
        readings, embedded = distances(self.inputs.embedder, current, [text.strip()])
        self.reading = readings[0]
        self.fields.update(
            cosine_vs_current=self.reading.value,
            cosine_reason=self.reading.reason,
            embedding_windows=list(embedded.windows) or None,
            shadow_chars=len(text.strip()),
            current_chars=len(current),
        )
        if self.calibration is not None:
            self.fields.update(
                calibration=self.calibration.bands(),
                calibration_sha256=self.calibration.sha256,
                calibration_drift=self.calibration.drift(
                    self.inputs.embedder, self.fields["current_sha256"], self.fields["view_sha256"]
                ),
            )

    def finish(self, stamp: Stamp, log_path: PathLike | None) -> ShadowResult:
        run_id = uuid.uuid4().hex
        record = {
            "ts": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": EVENT,
            "verdict": self.verdict,
            "message": self.message,
            "run_id": run_id,
            "schema_version": SCHEMA_VERSION,
            "engine_version": stamp.engine_version,
            "safety_sha256": stamp.safety_sha256,
            "ratified": stamp.ratified,
            **self.fields,
            "notes": dict(NOTES),
        }
        stamp.recheck()
        return ShadowResult(
            verdict=self.verdict,
            message=self.message,
            run_id=run_id,
            key=self.inputs.key,
            text=self.text,
            validation=self.validation,
            reading=self.reading,
            generated=self.generated,
            recorded=None if log_path is None else append_record(log_path, record),
            record=record,
            notes=NOTES,
        )
