"""Start-up cost of the pack check on top of the interpreter: `python -m scripts.bench.startup [--runs N] [--json]`.

Three programs run in turn, N times each, in processes of their own: an empty one, one that imports the loader, and one
that also loads the safety pack. Medians of processor time (user and system, which other work on the machine moves less
than elapsed time) and the differences to the empty one are printed in milliseconds; `load` is one call in a warm
process.

With `--sweeps N` a sweep of four prompts is run N times without a compilation cache, with an empty one and with the one
that the run before filled; medians of elapsed and processor seconds.

With `--commands N` the commands that need no JAX, and a program whose first result is a checked propagation of 1,000
steps with a filled compilation cache (and without one), are run N times: medians of elapsed milliseconds.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from engine.base.origin import engine_root

PROGRAMS = {
    "interpreter": "pass",
    "import": "import packs.safety.loader",
    "check": "from packs.safety.loader import load_safety_pack; load_safety_pack()",
}

COMMANDS = (("--help",), ("packs", "list"), ("chat", "--show-safety-pack"))
IMPORT_JAX = "import jax, jax.numpy"
FIRST_RESULT = """
import sys
import jax
import numpy as np
from engine.base.precision import enable_x64
from engine.field import FieldState, run
enable_x64()
if sys.argv[1:]:
    jax.config.update("jax_compilation_cache_dir", sys.argv[1])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
versors = np.zeros((1_000, 16))
versors[:, 0] = 1.0
run(FieldState(versors[0]), versors).motor.block_until_ready()
"""


def measure(runs: int) -> dict[str, float]:
    """Return medians in milliseconds."""
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(runs):
        for name, program in PROGRAMS.items():
            times[name].append(1e3 * _processor_seconds(program))
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {
        **medians,
        "import on top": medians["import"] - medians["interpreter"],
        "check on top": medians["check"] - medians["interpreter"],
        "load": _warm_load(runs),
    }


def measure_sweeps(runs: int) -> dict[str, float]:
    """Return medians in seconds of a small sweep without, with an empty and with a filled compilation cache."""
    times: dict[str, list[float]] = {}
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            cache = f"compilation_cache={folder}/cache"
            for name, extra in (("no cache", []), ("empty cache", [cache]), ("filled cache", [cache])):
                arguments = ["limit=4", f"hydra.run.dir={folder}/{name.replace(' ', '-')}", *extra]
                before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
                subprocess.run(
                    [sys.executable, "-m", "engine.cli", "sweep", *arguments],
                    cwd=engine_root(),
                    env=_environment(),
                    check=True,
                    capture_output=True,
                )
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                times.setdefault(f"{name}, elapsed", []).append(time.perf_counter() - began)
                used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                times.setdefault(f"{name}, processor", []).append(used)
    return {name: statistics.median(values) for name, values in times.items()}


def measure_commands(runs: int) -> dict[str, float]:
    """Return medians in elapsed milliseconds of commands without JAX and of first results with it."""
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as cache:
        programs = {
            "interpreter": ("-c", PROGRAMS["interpreter"]),
            **{f"core {' '.join(command)}": ("-m", "engine.cli", *command) for command in COMMANDS},
            "import jax": ("-c", IMPORT_JAX),
            "first result, no cache": ("-c", FIRST_RESULT),
            "first result, filled cache": ("-c", FIRST_RESULT, cache),
        }
        _elapsed(programs["first result, filled cache"])
        for _ in range(runs):
            for name, arguments in programs.items():
                times.setdefault(name, []).append(1e3 * _elapsed(arguments))
    return {name: statistics.median(values) for name, values in times.items()}


def _elapsed(arguments: tuple[str, ...]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=engine_root(), env=_environment(), check=True, capture_output=True)
    return time.perf_counter() - began


def _processor_seconds(program: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], cwd=engine_root(), env=_environment(), check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _warm_load(runs: int) -> float:
    from packs.safety.loader import load_safety_pack

    values = []
    for _ in range(10 * runs):
        start = time.process_time()
        load_safety_pack()
        values.append(1e3 * (time.process_time() - start))
    return statistics.median(values)


def _environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("CORE_") and name != "PYTHONDONTWRITEBYTECODE"
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="startup", description=__doc__, allow_abbrev=False)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--sweeps", type=int, default=0, help="time N small sweeps by compilation cache instead")
    parser.add_argument("--commands", type=int, default=0, help="time N runs of commands and of first results instead")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    options = parser.parse_args()
    unit = "s" if options.sweeps else "ms"
    if options.sweeps:
        result = measure_sweeps(options.sweeps)
    elif options.commands:
        result = measure_commands(options.commands)
    else:
        result = measure(options.runs)
    if options.json:
        print(json.dumps({"unit": unit, **{name: round(value, 3) for name, value in result.items()}}))
    else:
        print("\n".join(f"{name:<28} {value:8.2f} {unit}" for name, value in result.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
