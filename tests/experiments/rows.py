"""Result rows made by hand, to check what is computed from rows by hand too."""

import json
from typing import Any

IDENTITY_MOTOR = [1.0] + [0.0] * 15


def row(prompt_id: str = "0001", identity: str = "default_general_v1", **changes: Any) -> dict[str, Any]:
    """Return a complete row; `tokens` and `final_motor` may be given as lists."""
    values: dict[str, Any] = {
        "prompt_id": prompt_id,
        "prompt": "What is truth?",
        "identity": identity,
        "language": "en",
        "seed": 0,
        "perturb": 0.0,
        "alpha": 0.5,
        "max_steps": 12,
        "status": "ok",
        "refusal": None,
        "surface": "Truth is known.",
        "tokens": ["truth", "known"],
        "steps": 2,
        "alignment": 0.5,
        "leakage": 0.0,
        "flagged": False,
        "hedge": "none",
        "max_residual": 1e-14,
        "first_violation": -1,
        "final_motor": IDENTITY_MOTOR,
        "safety_sha256": "a" * 64,
        "identity_sha256": "b" * 64,
        "language_sha256": "c" * 64,
    }
    values |= changes
    for name in ("tokens", "final_motor"):
        if isinstance(values[name], list):
            values[name] = json.dumps(values[name])
    return values


def refused(prompt_id: str, **changes: Any) -> dict[str, Any]:
    """Return the row of a prompt without a known word."""
    nothing = dict.fromkeys(("alignment", "leakage", "flagged", "max_residual", "first_violation", "final_motor"))
    return row(prompt_id, status="refused", refusal="no_known_word", tokens=[], steps=0, **{**nothing, **changes})
