"""Read the published shadow run with an embedder at hand, and time a whole reading on the published patterns.

`python -m scripts.bench.published_readings FOLDER [--embedder NAME] [--runs N] [--json]`, where FOLDER holds the
published texts as docs/tutorials/readings.md says how to fetch them. What has to reproduce is the order run > same
genre > unrelated; the published cosines belong to their own embedder.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from engine.base.precision import enable_x64
from engine.instruments.cache import EmbeddingCache
from engine.instruments.calibration import measure_anchors, read_texts
from engine.instruments.constitution import read_constitution
from engine.instruments.embed import load_embedder
from engine.instruments.figure import draw_reading
from engine.instruments.files import read_text, text_sha256
from engine.instruments.patterns import read_patterns
from engine.instruments.readings import distances
from engine.instruments.report import read_runs
from engine.instruments.resources import packaged_texts
from engine.instruments.shadow import synthesize_shadow_constitution
from engine.instruments.synthesize import load_generator

OUTLIER = "tabula-rasa"
"""The published outlier of the same-genre band: a constitution of two words."""


def main(arguments: list[str] | None = None) -> int:
    """Print the readings; exit 0 if digests, lengths and the order are as published."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument("--generator", default="extractive")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    enable_x64()
    published = json.loads((options.folder / "published.json").read_text(encoding="utf-8"))
    report = read_published(options.folder, published, options.embedder)
    if options.runs:
        report["whole_reading"] = time_whole_reading(options.folder, options.embedder, options.generator, options.runs)
    if options.json:
        json.dump(report, sys.stdout, indent=1)
        print()
    else:
        print("\n".join(_lines(report)))
    return 0 if report["digests_match"] and report["order_reproduces"] else 1


def read_published(folder: Path, published: dict[str, Any], embedder_name: str) -> dict[str, Any]:
    """Return digests, the cosines of the published texts to the live text, and whether the order reproduces."""
    live = read_text(folder / "live-constitution.md").strip()
    run = read_text(folder / "shadow-run-1.md").strip()
    expected = [(live, published["live"]), (run, published["shadow_run_1"])]
    embedder = load_embedder(embedder_name)
    genre, unrelated = read_texts(folder / "same-genre"), packaged_texts("readings", "unrelated")
    readings, _ = distances(embedder, live, [run, *genre.values(), *unrelated.values()])
    values = [reading.value for reading in readings]
    band = dict(zip(genre, values[1 : 1 + len(genre)], strict=True))
    floor = dict(zip(unrelated, values[1 + len(genre) :], strict=True))
    in_band = [value for name, value in band.items() if name != OUTLIER and value is not None]
    measured = [value for value in floor.values() if value is not None]
    shadow = values[0]
    is_ordered = shadow is not None and None not in values and shadow > max(in_band) and min(in_band) > max(measured)
    return {
        "embedder": embedder.id,
        "digests_match": all(text_sha256(text) == entry["sha256"] for text, entry in expected)
        and all(len(text) == entry["chars"] for text, entry in expected),
        "shadow_run_1": shadow,
        "same_genre": band,
        "unrelated": floor,
        "order_reproduces": is_ordered,
        "published_with": published["embedder"],
        "published": {
            "shadow_run_1": published["shadow_run_1"]["cosine_vs_live"],
            "same_genre_band": published["same_genre_band"],
            "unrelated_floor": published["unrelated_floor"],
        },
    }


def time_whole_reading(folder: Path, embedder_name: str, generator_name: str, runs: int) -> dict[str, Any]:
    """Return what `runs` runs on the published patterns take, anchors, comparison and figure included."""
    started, processor = time.perf_counter(), time.process_time()
    embedder, generator, cache = load_embedder(embedder_name), load_generator(generator_name), EmbeddingCache()
    with tempfile.TemporaryDirectory() as temporary:
        live = Path(temporary) / "live"
        live.mkdir()
        (live / "constitution.md").write_text(read_text(folder / "live-constitution.md"), encoding="utf-8")
        store = read_patterns(folder / "patterns-400.json")
        constitution = read_constitution(live)
        calibration = measure_anchors(constitution, store, embedder, cache=cache)
        anchors_s = time.perf_counter() - started
        results = [
            synthesize_shadow_constitution(
                live,
                store,
                log_path=Path(temporary) / "log.jsonl",
                embedder=embedder,
                generator=generator,
                key=key,
                calibration=calibration,
                cache=cache,
            )
            for key in range(runs)
        ]
        runs_s = time.perf_counter() - started - anchors_s
        compare_started = time.perf_counter()
        reading = read_runs(results, constitution.text, embedder, calibration, cache)
        compare_s = time.perf_counter() - compare_started
        draw_reading(reading, Path(temporary) / "figure.png")
    return {
        "patterns": len(store.patterns),
        "runs": runs,
        "anchors_s": anchors_s,
        "runs_s": runs_s,
        "comparison_s": compare_s,
        "total_s": time.perf_counter() - started,
        "processor_s": time.process_time() - processor,
        "cores": os.cpu_count(),
        "cosine": reading["cosine"],
        "noise_floor": reading["noise_floor"],
        "runs_to_resolve": reading["runs_to_resolve"],
        "calibration": reading["calibration"],
        "validation_failure_rate": reading["validation_failure_rate"],
    }


def _lines(report: dict[str, Any]) -> list[str]:
    lines = [f"embedder {report['embedder']}; digests and lengths match: {report['digests_match']}"]
    lines.append(f"shadow run 1     {report['shadow_run_1']:.3f}   published {report['published']['shadow_run_1']}")
    lines += [f"same genre       {value:.3f}   {name}" for name, value in report["same_genre"].items()]
    lines += [f"unrelated        {value:.3f}   {name}" for name, value in report["unrelated"].items()]
    lines.append(f"order reproduces: {report['order_reproduces']} (published with {report['published_with']})")
    if "whole_reading" in report:
        lines.append(json.dumps(report["whole_reading"]))
    return lines


if __name__ == "__main__":
    sys.exit(main())
