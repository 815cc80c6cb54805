"""The one protocol of generators: what a synthesis is given, what it gives back, and the registry by name.

A generator is handed everything it may know in one `GenerationRequest`; the shadow arm builds that request without the
live text, and a test looks at every field of it. A service that does not answer or a text that was cut off is a
`Generated` with a `done_reason` other than `stop`, not an exception.
A new generator is a new file in this folder and one line in `GENERATORS`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from jaxtyping import Float64

from engine.instruments.patterns import Pattern
from engine.instruments.registry import load_registered


@dataclass(frozen=True)
class Section:
    """A headed part of a constitution: its heading line's text and its quoted clauses, in order."""

    heading: str
    clauses: tuple[str, ...]


@dataclass(frozen=True)
class Revision:
    """What the amend arm adds to a request: the document to rewrite. The shadow arm never builds one.

    `clause_vectors` holds one embedding per clause, in document order, from the embedder that gave the pattern vectors.
    """

    text: str
    sections: tuple[Section, ...]
    clause_vectors: Float64[np.ndarray, "clauses dimensions"]


@dataclass(frozen=True)
class GenerationRequest:
    """Everything a generator may know.

    `patterns` are the retrieved patterns with cleaned texts, best first; `vectors` their embeddings in that order;
    `key` seeds every random choice (equal requests give equal texts where `Generator.deterministic`).
    """

    prompt: str
    system: str
    patterns: tuple[Pattern, ...]
    vectors: Float64[np.ndarray, "patterns dimensions"]
    key: int
    revision: Revision | None = None


@dataclass(frozen=True)
class ClauseLineage:
    """Where one clause came from: ids of patterns; empty for a clause that was kept from the text being revised."""

    section: str
    clause: str
    pattern_ids: tuple[str, ...]


@dataclass(frozen=True)
class Generated:
    """A generated constitution. `done_reason` is `stop` for a complete text; anything else is a failure.

    Failures use `unavailable` (no answer), `timeout`, `malformed` (an answer of the wrong shape), `length` (cut off;
    the text is dropped) or the service's own word. `lineage` is None where the generator cannot trace clauses.
    """

    text: str
    done_reason: str
    thinking: str = ""
    lineage: tuple[ClauseLineage, ...] | None = None
    detail: str = ""
    measured: Mapping[str, Any] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether the text is a whole answer."""
        return self.done_reason == "stop"


@runtime_checkable
class Generator(Protocol):
    """Writes a constitution from a request; `parameters` is all that steers it (model, temperature, ...), as JSON."""

    @property
    def id(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...
    @property
    def deterministic(self) -> bool: ...
    def generate(self, request: GenerationRequest) -> Generated: ...


GENERATORS: Mapping[str, str] = {
    "extractive": "engine.instruments.synthesize.extractive:ExtractiveGenerator",
    "ollama": "engine.instruments.synthesize.ollama:OllamaGenerator",
    "openai": "engine.instruments.synthesize.openai:OpenAIGenerator",
}
"""Name -> `module:factory`; a factory takes the argument after the colon of `--generator name:argument`, or None."""

DEFAULT_GENERATOR = "extractive"


def load_generator(spec: str = DEFAULT_GENERATOR) -> Generator:
    """Return the generator that `spec` names: `name` or `name:argument`. Raises `UsageError` for an unknown name."""
    return cast(Generator, load_registered(GENERATORS, spec, "generator"))
