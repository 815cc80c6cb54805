"""The one protocol of sentence embedders, what an embedding call returns, and the registry by name.

An embedder never raises for a text it cannot embed or a service that does not answer: it returns `Embedded` with
`vectors=None` and a reason code, so that a degraded reading is a reason and never 0.0 (DESIGN §7).
A new embedder is a new file in this folder and one line in `EMBEDDERS`.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
from jaxtyping import Float64

from engine.instruments.registry import load_registered

Vectors: TypeAlias = Float64[np.ndarray, "texts dimensions"]
"""One embedding a row, as the embedder gives them: readings normalise, callers must not assume unit length."""

EmbedReason: TypeAlias = Literal["ok", "embed_unavailable", "embed_malformed", "truncated"]
"""`embed_unavailable`: no answer; `embed_malformed`: wrong rows, shape or type; `truncated`: a text is longer than
the window and the embedder is configured to refuse rather than to read it in windows."""


@dataclass(frozen=True)
class Embedded:
    """The result of one embedding call.

    `vectors` is float64 `(texts, dimensions)` or None; `reason` is `ok` exactly when vectors are there; `detail` is one
    line for a person. `windows[i]` counts the token windows text i was read in, `truncated[i]` says that a part
    of text i was not read. Vectors may still hold zeros or non-finite values: the reading judges those.
    """

    vectors: Vectors | None
    reason: EmbedReason
    detail: str = ""
    windows: tuple[int, ...] = ()
    truncated: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        if (self.vectors is not None) != (self.reason == "ok"):
            raise ValueError("an embedding has vectors exactly when its reason is 'ok'")

    @staticmethod
    def failed(reason: EmbedReason, detail: str) -> "Embedded":
        """Return a result without vectors for the given reason."""
        return Embedded(None, reason, detail)


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors. Constructing one does no work that can fail: models load on the first `embed`.

    `id` is a spec that `load_embedder` takes (as in `hashing:512`), so that a replay finds it again; `revision` is a
    digest or version of the weights ("unknown" where the service tells none); `parameters` is everything else that
    changes a vector (pooling, normalisation, window, policy for long texts), JSON values only.
    """

    @property
    def id(self) -> str: ...
    @property
    def revision(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...
    def embed(self, texts: Sequence[str]) -> Embedded: ...


def embedder_digest(embedder: Embedder) -> str:
    """Return the SHA-256 over id, revision and parameters: equal digests may share cached vectors and calibrations."""
    identity = {"id": embedder.id, "revision": embedder.revision, "parameters": dict(embedder.parameters)}
    return hashlib.sha256(json.dumps(identity, sort_keys=True, allow_nan=False).encode("ascii")).hexdigest()


EMBEDDERS: Mapping[str, str] = {
    "minilm": "engine.instruments.embed.sentence:SentenceEmbedder",
    "ollama": "engine.instruments.embed.ollama:OllamaEmbedder",
    "openai": "engine.instruments.embed.openai:OpenAIEmbedder",
    "hashing": "engine.instruments.embed.hashing:HashingEmbedder",
}
"""Name -> `module:factory`; a factory takes the argument after the colon of `--embedder name:argument`, or None."""

DEFAULT_EMBEDDER = "minilm"


def load_embedder(spec: str = DEFAULT_EMBEDDER) -> Embedder:
    """Return the embedder that `spec` names: `name` or `name:argument` (a model name or a model folder).

    Raises `UsageError` for an unknown name. A missing model or extra is not an error here: `embed` then
    returns `embed_unavailable` with the hint.
    """
    return cast(Embedder, load_registered(EMBEDDERS, spec, "embedder"))
