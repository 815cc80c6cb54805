"""Weak and strong scaling over devices and processes of one machine: `python -m scripts.bench.scaling [--json]`.

Propagation of a batch by 200 shared versors, spread over 1, 2, 4 and 8 devices into which one process divides the
processor, and over 1, 2 and 4 processes of one cluster. Strong: the same 8,192 states throughout. Weak: 2,048 states
for each device. Within each kind the counts run in turn and the least time of each is kept; figures are multiples of
the time of one device, or one process, in the same run.

What it says: what spreading itself costs, since all counts share the same cores. What it does not say: how much faster
more hardware would be, which needs more hardware.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

DEVICES = (1, 2, 4, 8)
PROCESSES = (1, 2, 4)
STEPS = 200
STRONG = 8_192
WEAK = 2_048


def rows_of(kind: str, count: int) -> int:
    """Return the states that `count` devices or processes move."""
    return STRONG if kind == "strong" else WEAK * count


def timed(rows: int, mesh: Any, rounds: int) -> list[float]:
    """Return seconds of each of `rounds` propagations of `rows` states over a mesh; the compiling one is left out."""
    from engine.field import FieldState
    from engine.field.mesh import propagate_over
    from scripts.bench.propagate import random_rotors

    state, versors = FieldState(random_rotors(1, rows)), random_rotors(2, STEPS)
    seconds = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        moved, _ = propagate_over(mesh, state, versors)
        moved.motor.block_until_ready()
        seconds.append(time.perf_counter() - start)
    return seconds[1:]


def over_devices(rounds: int) -> dict[tuple[str, int], float]:
    """Return the least seconds for each kind and count of devices of this process, in turn."""
    import jax

    from engine.field.mesh import data_mesh

    jax.config.update("jax_num_cpu_devices", max(DEVICES))
    least: dict[tuple[str, int], float] = {}
    for _ in range(rounds):
        for kind in ("strong", "weak"):
            for count in DEVICES:
                seconds = min(timed(rows_of(kind, count), data_mesh(count), 1))
                least[kind, count] = min(least.get((kind, count), seconds), seconds)
    return least


def member(coordinator: str, processes: int, index: int, rounds: int) -> None:
    """Take part in one cluster and print, as the first process, the least seconds of each kind."""
    import jax

    from engine.base.precision import enable_x64
    from engine.field.mesh import data_mesh

    enable_x64()
    if processes > 1:
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(coordinator, processes, index)
    found = {kind: min(timed(rows_of(kind, processes), data_mesh(), rounds)) for kind in ("strong", "weak")}
    if jax.process_index() == 0:
        print(json.dumps(found))


def over_processes(rounds: int) -> dict[tuple[str, int], float]:
    """Return the least seconds for each kind and count of processes; a cluster of each count is started in turn."""
    least: dict[tuple[str, int], float] = {}
    for _ in range(2):
        for count in PROCESSES:
            for kind, seconds in _cluster(count, rounds).items():
                least[kind, count] = min(least.get((kind, count), seconds), seconds)
    return least


def _cluster(count: int, rounds: int) -> dict[str, float]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    kept = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
    with tempfile.TemporaryDirectory() as folder:
        members = []
        for index in range(count):
            command = [sys.executable, "-m", "scripts.bench.scaling", "--member", address, str(count), str(index)]
            with open(Path(folder) / str(index), "w") as output:
                members.append(
                    subprocess.Popen([*command, "--rounds", str(rounds)], stdout=output, stderr=output, env=kept)
                )
        codes = [process.wait() for process in members]
        text = (Path(folder) / "0").read_text()
    if any(codes):
        raise RuntimeError(f"a cluster of {count} ended with {codes}: {text[-500:]}")
    found: dict[str, float] = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
    return found


def main() -> int:
    """Print the tables, or one JSON object for each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object a line instead of the table")
    parser.add_argument("--rounds", type=int, default=5, help="times every candidate runs (default 5)")
    parser.add_argument("--member", nargs=3, metavar=("HOST:PORT", "N", "I"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.member:
        coordinator, processes, index = arguments.member
        member(coordinator, int(processes), int(index), arguments.rounds)
        return 0
    from engine.base.precision import enable_x64

    enable_x64()
    tables = {"devices": over_devices(arguments.rounds), "processes": over_processes(arguments.rounds)}
    if not arguments.json:
        print("| spread over | scaling | count | states | time, s | multiple of one |")
        print("|---|---|---|---|---|---|")
    for what, least in tables.items():
        for kind, count in sorted(least):
            seconds, ratio = least[kind, count], least[kind, count] / least[kind, 1]
            if arguments.json:
                row = {"over": what, "scaling": kind, "count": count, "states": rows_of(kind, count)}
                print(json.dumps({**row, "steps": STEPS, "seconds": seconds, "multiple": ratio}))
            else:
                print(f"| {what} | {kind} | {count} | {rows_of(kind, count):,} | {seconds:.3f} | {ratio:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
