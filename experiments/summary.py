"""What a sweep says about its packs: means, spreads, refusals, and the divergence of each pack from another.

The divergence of two identities over the rows that they share (same prompt, language, seed and settings):
*changed paths* is the share of rows whose token paths differ at all; *shared words* is the mean share of words that two
paths have in common (intersection over union); *motor distance* is the mean Euclidean distance of the final motors'
coefficients, up to sign, since F and -F are the same motion.
"""

import json
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from experiments.results import SETTING_COLUMNS, Row

_Name = TypeVar("_Name", bound=Hashable)

DEFAULT_IDENTITY = "default_general_v1"
MEASURES = ("changed_paths", "shared_words", "motor_distance")
PAIR_KEY = ("prompt_id", "language", "seed", *SETTING_COLUMNS)


def summarise(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the summary of a sweep's rows: one entry per identity and language, and every pair's divergence."""
    swept = [name for name in SETTING_COLUMNS if len({row.get(name) for row in rows}) > 1]
    languages = _ordered(row["language"] for row in rows)
    groups = _ordered((row["language"], row["identity"], *(row[name] for name in swept)) for row in rows)
    return {
        "rows": len(rows),
        "swept_settings": swept,
        "identities": [
            _summarise_group(language, identity, dict(zip(swept, settings, strict=True)), rows)
            for language, identity, *settings in groups
        ],
        "divergence": {language: divergence_matrix(_of(rows, language=language)) for language in languages},
    }


def divergence_matrix(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the identities in order, and each of `MEASURES` between every two of them."""
    identities = _ordered(row["identity"] for row in rows)
    pairs = {(a, b): divergence(_of(rows, identity=a), _of(rows, identity=b)) for a in identities for b in identities}
    return {
        "identities": identities,
        **{name: [[pairs[a, b][name] for b in identities] for a in identities] for name in MEASURES},
    }


def divergence(first: Sequence[Row], second: Sequence[Row]) -> dict[str, Any]:
    """Return how far two lists of rows diverge, with the number of `pairs` compared; None where nothing compares.

    A row that is refused in one list and answered in the other counts as a changed path and has no motor distance;
    a prompt refused in both is not compared.
    """
    others = {_pair_key(row): row for row in second}
    pairs = [(row, others[_pair_key(row)]) for row in first if _pair_key(row) in others]
    pairs = [pair for pair in pairs if not all(_is_refused(row) for row in pair)]
    changed = [_path(one) != _path(other) for one, other in pairs]
    shared = [_overlap(_path(one), _path(other)) for one, other in pairs]
    distances = [
        motor_distance(json.loads(one["final_motor"]), json.loads(other["final_motor"]))
        for one, other in pairs
        if one.get("final_motor") and other.get("final_motor")
    ]
    return {
        "pairs": len(pairs),
        "changed_paths": _mean(changed),
        "shared_words": _mean(shared),
        "motor_distance": _mean(distances),
    }


def motor_distance(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the Euclidean distance of two motors' 16 coefficients, up to the sign of one of them."""
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    return float(min(np.linalg.norm(a - b), np.linalg.norm(a + b)))


def _summarise_group(language: str, identity: str, settings: Row, rows: Sequence[Row]) -> dict[str, Any]:
    here = _of(rows, identity=identity, language=language, **settings)
    answered = [row for row in here if not _is_refused(row)]
    alignments = [row["alignment"] for row in answered if row["alignment"] is not None]
    residuals = [row["max_residual"] for row in here if row["max_residual"] is not None]
    default = _of(rows, identity=DEFAULT_IDENTITY, language=language)
    return {
        "identity": identity,
        "language": language,
        "settings": settings,
        "rows": len(here),
        "seeds": len({row["seed"] for row in here}),
        "alignment_mean": _mean(alignments),
        "alignment_spread": float(np.std(alignments)) if alignments else None,
        "alignment_min": min(alignments, default=None),
        "alignment_max": max(alignments, default=None),
        "leakage_max": max((row["leakage"] for row in answered if row["leakage"] is not None), default=None),
        "flagged": sum(bool(row["flagged"]) for row in answered),
        "hedges": dict(sorted(Counter(row["hedge"] for row in answered if row["hedge"]).items())),
        "refusals": dict(sorted(Counter(str(row["refusal"]) for row in here if _is_refused(row)).items())),
        "divergence_from_default": divergence(here, default) if default else None,
        "divergence_between_seeds": _seed_divergence(here),
        # Not a plain max: a NaN has to win, and infinity has no place in JSON.
        "worst_residual": _worst(residuals),
        "violations": sum(row["first_violation"] is not None and row["first_violation"] >= 0 for row in here),
    }


def _seed_divergence(rows: Sequence[Row]) -> dict[str, Any] | None:
    """Return the divergence of every other seed from the lowest one: zero at `perturb=0`, a sensitivity otherwise."""
    seeds = sorted({row["seed"] for row in rows})
    if len(seeds) < 2:
        return None
    lowest = _of(rows, seed=seeds[0])
    others = [row for row in rows if row["seed"] != seeds[0]]
    reference = [{**row, "seed": seed} for seed in seeds[1:] for row in lowest]
    return divergence(others, reference)


def _worst(residuals: Sequence[float]) -> float | str | None:
    if not residuals:
        return None
    if not all(math.isfinite(value) for value in residuals):
        return "not finite"
    return max(residuals)


def _is_refused(row: Mapping[str, Any]) -> bool:
    return row["status"] != "ok"


def _path(row: Mapping[str, Any]) -> str | None:
    return None if _is_refused(row) else row["tokens"]


def _overlap(one: str | None, other: str | None) -> float:
    words, others = (set(json.loads(path)) if path else set() for path in (one, other))
    return len(words & others) / len(words | others) if words | others else float(one == other)


def _pair_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in PAIR_KEY)


def _of(rows: Sequence[Row], **wanted: Any) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def _mean(values: Sequence[float | bool]) -> float | None:
    return float(np.mean(values)) if values else None


def _ordered(names: Iterable[_Name]) -> list[_Name]:
    return list(dict.fromkeys(names))
