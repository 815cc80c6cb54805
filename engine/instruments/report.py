"""The whole reading of one or more runs: numbers as JSON for machines, a table for people, the notes in both."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.instruments.cache import EmbeddingCache
from engine.instruments.calibration import Calibration
from engine.instruments.compare import compare
from engine.instruments.embed.base import Embedder
from engine.instruments.noise import measure_noise, runs_to_resolve
from engine.instruments.notes import NOTES, SINGLE_RUN, notes_text
from engine.instruments.shadow import ShadowResult

DIFFERENCES = (0.005, 0.01, 0.02, 0.05)
"""Differences of mean cosine for which the report says how many runs would show them."""

_BANDS = (
    ("unrelated_band", "unrelated floor"),
    ("same_genre_band", "same-genre band"),
    ("top_band", "top band"),
)


def read_runs(
    results: Sequence[ShadowResult],
    live: str | None,
    embedder: Embedder,
    calibration: Calibration | None,
    cache: EmbeddingCache | None = None,
) -> dict[str, Any]:
    """Return the reading of `results` (at least one) as JSON; `live` is None where no run came to read it."""
    read = [result for result in results if result.reading is not None and result.reading.value is not None]
    values = [result.reading.value for result in read if result.reading and result.reading.value is not None]
    noise = measure_noise(str(results[0].record["generator"]), [(r.key, v) for r, v in zip(read, values, strict=True)])
    generated = [result for result in results if result.text is not None]
    failed = sum(bool(result.validation) for result in generated)
    floor = calibration.body["unrelated_band"] if calibration is not None else None
    texts = [result.text for result in generated if result.text is not None]
    return {
        "verdict": next((result.verdict for result in results if result.verdict != "ok"), "ok"),
        "recorded": _recorded(results),
        "evidence": SINGLE_RUN if noise.distinct_keys < 2 else None,
        "runs": [_run(result) for result in results],
        "cosine": _spread(values),
        "noise_floor": noise.as_dict(),
        "runs_to_resolve": {str(d): runs_to_resolve(noise.sd, d) for d in DIFFERENCES},
        "validation_failure_rate": failed / len(generated) if generated else None,
        "calibration": None if calibration is None else calibration.bands(),
        "calibration_sha256": None if calibration is None else calibration.sha256,
        "calibration_drift": next((r.record["calibration_drift"] for r in results), None),
        "embedding_model": embedder.id,
        "generator": results[0].record["generator"],
        "pattern_count": results[0].record["pattern_count"],
        "current_sha256": results[0].record["current_sha256"],
        "comparison": compare(live, texts, embedder, floor[1] if floor else None, cache) if live and texts else None,
        "notes": dict(NOTES),
    }


def reading_table(reading: Mapping[str, Any]) -> str:
    """Return the reading as a text table for a person."""
    lines = [f"verdict: {reading['verdict']}"]
    if reading["evidence"]:
        lines.append(reading["evidence"])
    lines += ["", f"{'run':>4} {'key':>10}  {'verdict':<22} {'cosine':>8}  message"]
    for number, run in enumerate(reading["runs"], start=1):
        lines.append(
            f"{number:>4} {run['key']:>10}  {run['verdict']:<22} {_number(run['cosine']):>8}  "
            f"{run['message'] if run['verdict'] != 'ok' else run['reason']}"
        )
    lines += ["", *_summary_lines(reading), "", *_comparison_lines(reading["comparison"]), "", notes_text()]
    return "\n".join(lines)


def _run(result: ShadowResult) -> dict[str, Any]:
    return {
        "run_id": result.run_id,
        "key": result.key,
        "verdict": result.verdict,
        "message": result.message,
        "cosine": result.reading.value if result.reading else None,
        "reason": result.reading.reason if result.reading else None,
        "validation": list(result.validation),
        "shadow_chars": result.record["shadow_chars"],
        "current_chars": result.record["current_chars"],
        "done_reason": result.record["done_reason"],
        "recorded": result.recorded,
        "text": result.text,
    }


def _recorded(results: Sequence[ShadowResult]) -> bool | None:
    states = {result.recorded for result in results}
    return None if states == {None} else False not in states


def _spread(values: Sequence[float]) -> dict[str, float] | None:
    if not values:
        return None
    return {"mean": float(np.mean(values)), "min": min(values), "max": max(values)}


def _summary_lines(reading: Mapping[str, Any]) -> list[str]:
    noise, cosine = reading["noise_floor"], reading["cosine"]
    lines = []
    if cosine is not None:
        keys = noise["distinct_keys"]
        lines.append(f"mean cosine to the live text   {_number(cosine['mean'])}  ({keys} distinct keys)")
        for label, name in (("noise floor, largest swing", "swing"), ("noise floor, sd", "sd")):
            interval = noise[f"{name}_interval"]
            shown = f"95% {_band(interval)}" if interval else noise["interval_reason"]
            lines.append(f"{label:<30} {_number(noise[name])}  {shown}")
        lines.append(f"                               {noise['label']}")
        needed = ", ".join(f"{d}: {n}" for d, n in reading["runs_to_resolve"].items() if n is not None)
        lines.append(f"runs a side to resolve         {needed or 'unknown without a spread'}")
    if reading["validation_failure_rate"] is not None:
        lines.append(f"validation failures            {reading['validation_failure_rate']:.0%}")
    return lines + _anchor_lines(reading)


def _anchor_lines(reading: Mapping[str, Any]) -> list[str]:
    bands = reading["calibration"]
    lines = [f"embedder                       {reading['embedding_model']}"]
    if bands is None:
        return [*lines, "anchors                        none: run `core readings anchors`"]
    for name, label in _BANDS:
        lines.append(f"anchor: {label:<22} {_band(bands[name])}")
    lines.append(f"anchor: {'corpus mean':<22} {_number(bands['corpus_mean'])}")
    if reading["calibration_drift"]:
        lines.append(f"DRIFT: {reading['calibration_drift']}")
    return lines


def _comparison_lines(comparison: Mapping[str, Any] | None) -> list[str]:
    if comparison is None or comparison["reason"] != "ok":
        return [f"comparison: {comparison['reason'] if comparison else 'no text'}"]
    lines = []
    if comparison["similarity"]:
        similarity = comparison["similarity"]
        mean, least = _number(similarity["mean"]), _number(similarity["min"])
        lines.append(f"shadow to shadow               mean {mean}, min {least}")
    first = comparison["sections"][0]
    lines.append("sections of the first run against the live text:")
    lines += [f"  {_number(m['cosine'])}  {m['live']}  ~  {m['shadow']}" for m in first["matched"]]
    lines += [f"  live only    {heading}" for heading in first["live_only"]]
    lines += [f"  shadow only  {heading}" for heading in first["shadow_only"]]
    for side in ("live", "shadow"):
        lines.append(f"{side} clauses farthest from any counterpart:")
        lines += [f"  {_number(c['cosine'])}  {c['clause']}" for c in comparison["divergent_clauses"][side][:3]]
    return lines


def _band(band: Sequence[float] | None) -> str:
    return "-" if band is None else f"{_number(band[0])} to {_number(band[1])}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
