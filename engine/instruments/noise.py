"""The run-to-run noise floor: how far the same reading moves when nothing but the generator's key changed.

It is the noise of one generator on one corpus, against one live text, with one embedder; records are pooled only where
all of these are equal. SciPy is loaded when an interval is asked for.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from engine.base.errors import RecordError

MIN_RUNS_FOR_INTERVAL = 10
LEVEL = 0.95
POWER = 0.8
_RESAMPLES = 9999
_SEED = 20240229

IntervalReason: TypeAlias = Literal["ok", "too_few_runs", "no_spread"]

POOL_FIELDS = (
    "patterns_sha256",
    "current_sha256",
    "view_sha256",
    "embedding_sha256",
    "generator",
    "generator_parameters",
    "prompt_sha256",
    "system_sha256",
)
"""Records are pooled only where these are equal; of runs with one key the first counts."""


@dataclass(frozen=True)
class NoiseFloor:
    """Spread of a reading over runs with distinct keys.

    `swing` is the largest pairwise difference, `sd` the sample standard deviation; both None below two runs. The
    intervals are 95% bootstrap intervals over runs, None with `interval_reason` below ten. `same_key_swing` is the
    largest difference
    between runs of one key: exactly 0 for a deterministic generator, None where no key was repeated.
    """

    generator: str
    runs: int
    distinct_keys: int
    mean: float | None
    swing: float | None
    sd: float | None
    swing_interval: tuple[float, float] | None
    sd_interval: tuple[float, float] | None
    interval_reason: IntervalReason
    same_key_swing: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return the floor as JSON, with the line that says whose noise it is."""
        return {**asdict(self), "label": f"run-to-run noise of the generator {self.generator!r}, and of nothing else"}


def measure_noise(generator: str, readings: Sequence[tuple[int, float]]) -> NoiseFloor:
    """Return the noise floor of `(key, cosine)` pairs."""
    by_key: dict[int, list[float]] = {}
    for key, value in readings:
        by_key.setdefault(key, []).append(value)
    values = np.array([group[0] for group in by_key.values()], dtype=np.float64)
    repeated = [max(group) - min(group) for group in by_key.values() if len(group) > 1]
    few = len(values) < 2
    swing_interval, sd_interval, reason = _intervals(values)
    return NoiseFloor(
        generator=generator,
        runs=len(readings),
        distinct_keys=len(by_key),
        mean=float(values.mean()) if len(values) else None,
        swing=None if few else float(np.ptp(values)),
        sd=None if few else float(values.std(ddof=1)),
        swing_interval=swing_interval,
        sd_interval=sd_interval,
        interval_reason=reason,
        same_key_swing=max(repeated) if repeated else None,
    )


def runs_to_resolve(sd: float | None, difference: float) -> int | None:
    """Return how many runs on each side would show a difference of means at 95% level with 80% power, two-sided.

    `n = 2 ((z_0.975 + z_0.8) sd / difference)²`, the normal approximation (Cohen 1988, §2.4), at least 2. None
    without a spread or for a difference that is not positive.
    """
    if sd is None or not difference > 0.0:
        return None
    from scipy.stats import norm

    z = float(norm.ppf(0.5 + LEVEL / 2) + norm.ppf(POWER))
    return max(2, math.ceil(2.0 * (z * sd / difference) ** 2))


def pool_records(records: Iterable[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
    """Return the poolable records of a log: what each pool shares, and its records in order.

    Raises `RecordError` for a record whose key or cosine is no number.
    """
    pools: dict[str, tuple[Mapping[str, Any], list[Mapping[str, Any]]]] = {}
    for record in records:
        if record.get("event") != "shadow_constitution" or record.get("cosine_vs_current") is None:
            continue
        if not _is_number(record["cosine_vs_current"]) or not isinstance(record.get("key"), int):
            raise RecordError(f"run {str(record.get('run_id'))!a} has a key or cosine that is no number")
        shared = {name: record.get(name) for name in POOL_FIELDS}
        pools.setdefault(json.dumps(shared, sort_keys=True), (shared, []))[1].append(record)
    return list(pools.values())


def pooled_noise(records: Sequence[Mapping[str, Any]]) -> NoiseFloor:
    """Return the noise floor of one pool's records."""
    return measure_noise(str(records[0]["generator"]), [(r["key"], r["cosine_vs_current"]) for r in records])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _intervals(
    values: np.ndarray,
) -> tuple[tuple[float, float] | None, tuple[float, float] | None, IntervalReason]:
    if len(values) < MIN_RUNS_FOR_INTERVAL:
        return None, None, "too_few_runs"
    if np.ptp(values) == 0.0:
        return None, None, "no_spread"
    # A range is bounded by the sample's own, where BCa's acceleration is undefined: its interval is the percentile one.
    return (
        _bootstrap(values, lambda sample, axis: np.ptp(sample, axis=axis), "percentile"),
        _bootstrap(values, lambda sample, axis: np.std(sample, axis=axis, ddof=1), "BCa"),
        "ok",
    )


def _bootstrap(values: np.ndarray, statistic: Any, method: str) -> tuple[float, float]:
    from scipy.stats import bootstrap

    result = bootstrap(
        (values,),
        statistic,
        n_resamples=_RESAMPLES,
        confidence_level=LEVEL,
        method=method,
        rng=np.random.default_rng(_SEED),
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)
