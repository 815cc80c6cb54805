"""Throughput of an evaluation: prompts x three identity packs x seeds, cold and warm, in one run.

`python -m scripts.bench.sweep [--seeds N] [--steps N]` prints one JSON line and a Markdown table. Ratios are to the
first, cold evaluation of the same run; the absolute figures are for this machine only.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import TypeVar

from engine.base.precision import enable_x64
from engine.runtime import Runtime, evaluate_many
from scripts.bench.alignment import shipped_prompts

Result = TypeVar("Result")
PACKS = ("default_general_v1", "precision_first_v1", "generosity_first_v1")


def timed(action: Callable[[], Result]) -> tuple[float, Result]:
    """Return the wall-clock seconds of `action` and its result."""
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    arguments = parser.parse_args()
    enable_x64()
    prompts = shipped_prompts("en")
    seeds = range(arguments.seeds)
    load, runtimes = timed(lambda: [Runtime.load(pack) for pack in PACKS])
    cold, table = timed(lambda: evaluate_many(runtimes, prompts, seeds=seeds, steps=arguments.steps))
    warm = min(timed(lambda: evaluate_many(runtimes, prompts, seeds=seeds, steps=arguments.steps))[0] for _ in range(3))
    one = min(timed(lambda: runtimes[0].evaluate(prompts[:1]))[0] for _ in range(5))
    figures = {
        "rows": len(table.rows),
        "load_s": load,
        "cold_s": cold,
        "warm_s": warm,
        "warm_over_cold": warm / cold,
        "rows_per_s_warm": len(table.rows) / warm,
        "one_prompt_warm_s": one,
    }
    if arguments.json:
        print(json.dumps(figures))
        return
    print("| figure | value |\n|---|---|")
    for name, value in figures.items():
        print(f"| {name} | {value:.4g} |")


if __name__ == "__main__":
    main()
