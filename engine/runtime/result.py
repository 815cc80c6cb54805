"""The result table of an evaluation: tidy rows for people and files, arrays for further numerics."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.base.errors import InnerLoopExhaustion
from engine.safety.account import Incident
from engine.safety.check import Verdict
from engine.safety.citations import CitedClaim

COLUMNS = (
    "prompt_id",
    "prompt",
    "identity",
    "language",
    "seed",
    "perturb",
    "alpha",
    "status",
    "refusal",
    "surface",
    "withheld",
    "citations",
    "intent",
    "tokens",
    "token_ids",
    "steps",
    "reason",
    "alignment",
    "axis_alignments",
    "leakage",
    "flagged",
    "hedge",
    "hedge_phrase",
    "max_residual",
    "first_violation",
    "final_motor",
    "unknown_words",
    "safety_sha256",
    "identity_sha256",
    "language_sha256",
    "ratified",
    "backend",
    "device",
    "jax",
    "jaxlib",
    "precision",
)
"""Columns of a row, in order. Every value is a scalar or text: lists are JSON text, so that a row fits any table."""


@dataclass(frozen=True)
class ResultTable:
    """One row per prompt x identity x seed, in that order (seeds vary fastest).

    `rows` have the columns of `COLUMNS`. The arrays have one entry per row: `token_ids` (rows, steps), -1 after the
    end; `final_motors` (rows, 16), NaN where a prompt was refused before it had a state; `residuals` (rows, steps + 1).
    `verdicts`, `claims` and `exhaustions` (the typed error of a walk that ran out of admissible words, or None) belong
    to each row; `incidents` are the run's own account.
    """

    rows: list[dict[str, Any]]
    token_ids: NDArray[np.int32]
    final_motors: NDArray[np.float64]
    residuals: NDArray[np.float64]
    verdicts: tuple[tuple[Verdict, ...], ...]
    claims: tuple[tuple[CitedClaim, ...], ...]
    exhaustions: tuple[InnerLoopExhaustion | None, ...]
    incidents: tuple[Incident, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def column(self, name: str) -> list[Any]:
        """Return one column in row order. Raises `KeyError` for a name that is no column."""
        if name not in COLUMNS:
            raise KeyError(name)
        return [row[name] for row in self.rows]

    def select(self, **values: Any) -> list[dict[str, Any]]:
        """Return the rows whose columns have the given values."""
        return [row for row in self.rows if all(row[name] == value for name, value in values.items())]
