"""Throughput of an evaluation: prompts x three identity packs x seeds, cold and warm, in one run.

`python -m scripts.bench.sweep [--seeds N] [--steps N] [--prompts N]` prints a Markdown table or one JSON object. Ratios
are to the first, cold evaluation of the same run; the absolute figures are for this machine only.

`kernel_share` is the part of a warm evaluation of N prompts (1,000; the shipped ones over and over), three packs and
one seed that is spent inside the compiled programs: encoding, start motors, walk and scoring, each waited for.
`walk_share` is the walk's alone.
"""

import argparse
import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import jax

from engine.base.precision import enable_x64
from engine.runtime import Runtime, evaluate, evaluate_many
from scripts.bench.alignment import shipped_prompts

Result = TypeVar("Result")
PACKS = ("default_general_v1", "precision_first_v1", "generosity_first_v1")


def timed(action: Callable[[], Result]) -> tuple[float, Result]:
    """Return the wall-clock seconds of `action` and its result."""
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


@contextmanager
def kernels_timed() -> Iterator[dict[str, float]]:
    """Yield the seconds that the compiled programs of an evaluation take, by name, filled while the block runs."""
    seconds: dict[str, float] = {}

    def waited(name: str, program: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            took, result = timed(lambda: jax.block_until_ready(program(*arguments)))
            seconds[name] = seconds.get(name, 0.0) + took
            return result

        return call

    class TimedWalks:
        @staticmethod
        def get(*arguments: Any) -> Any:
            program = walks.get(*arguments)
            return replace(program, compiled=waited("walk", program.compiled))

    walks = evaluate.WALKS
    kept = {name: getattr(evaluate, name) for name in ("WALKS", "encode_prompts", "start_motors", "read_motors")}
    timed_ones = {name: waited(name, program) for name, program in kept.items() if name != "WALKS"}
    try:
        for name, program in {**timed_ones, "WALKS": TimedWalks}.items():
            setattr(evaluate, name, program)
        yield seconds
    finally:
        for name, program in kept.items():
            setattr(evaluate, name, program)


def kernel_shares(runtimes: list[Runtime], prompts: list[str], steps: int) -> dict[str, float]:
    """Return how a warm evaluation of `prompts` by one seed divides; the first, which compiles, is left out."""
    evaluate_many(runtimes, prompts, seeds=(0,), steps=steps)
    with kernels_timed() as seconds:
        whole, _ = timed(lambda: evaluate_many(runtimes, prompts, seeds=(0,), steps=steps))
    return {
        "many_prompts_s": whole,
        "kernel_share": sum(seconds.values()) / whole,
        "walk_share": seconds["walk"] / whole,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--prompts", type=int, default=1_000, help="for the share of the kernels")
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
        **kernel_shares(runtimes, list(itertools.islice(itertools.cycle(prompts), arguments.prompts)), arguments.steps),
    }
    if arguments.json:
        print(json.dumps(figures))
        return
    print("| figure | value |\n|---|---|")
    for name, value in figures.items():
        print(f"| {name} | {value:.4g} |")


if __name__ == "__main__":
    main()
