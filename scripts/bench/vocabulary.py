"""The walk on vocabularies of any size: `python -m scripts.bench.vocabulary [--json] [--sizes N ...]`.

Random words with eight relations each in either direction. `tables` compiles the adjacency and the step motors,
`operators` builds the operator table of one identity, `step` is a step of one row: 1,024 rows walk 64 steps. `memory`
is the operator table of one identity. Least of the rounds; the first compiles and is left out.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from engine.algebra import identity_motor
from engine.algebra.rigid import rigid_motor, rotor_about
from engine.base.precision import enable_x64
from engine.generate.admissibility import admissibility, lower_regions
from engine.generate.tables import build_tables, step_operators
from engine.generate.walk import WalkPolicy, WalkRows, walk_program

ROWS, STEPS, DEGREE, RELATIONS, WINDOW = 1_024, 64, 8, 12, 6


def random_motors(random: np.random.Generator, count: int) -> np.ndarray:
    """Return motors of small turns and shifts, (count, 16)."""
    axes = random.normal(size=(count, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    turns = rotor_about(jnp.asarray(axes), jnp.asarray(random.uniform(-0.3, 0.3, count)))
    return np.asarray(rigid_motor(jnp.asarray(random.normal(scale=0.3, size=(count, 3))), turns))


def random_edges(random: np.random.Generator, words: int) -> np.ndarray:
    """Return (head, relation, tail) so that every word has about `DEGREE` neighbours, each in both directions."""
    count = words * DEGREE // 2
    heads, tails = random.integers(words, size=(2, count))
    kinds = random.integers(RELATIONS, size=count)
    apart = heads != tails
    one = np.stack([heads, kinds, tails], axis=1)[apart]
    other = np.stack([tails, kinds + RELATIONS, heads], axis=1)[apart]
    return np.unique(np.concatenate([one, other]), axis=0)


def least(action: Callable[[], Any], rounds: int) -> float:
    """Return the least elapsed seconds of `rounds` calls after a first one."""
    times = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        jax.block_until_ready(action())
        times.append(time.perf_counter() - start)
    return min(times[1:])


def measure(words: int, rounds: int) -> dict[str, Any]:
    """Return the row of one vocabulary size."""
    random = np.random.default_rng(0)
    motors, relations = random_motors(random, words), random_motors(random, 2 * RELATIONS)
    points, edges = random.normal(size=(words, 3)), random_edges(random, words)

    def build() -> Any:
        return build_tables(motors, points, relations, edges)[:2]

    tables, steps = build()
    persona = identity_motor()[None]
    operators = step_operators(steps, persona)
    policy = WalkPolicy(admissibility(), jnp.asarray(np.int32(2)), jnp.asarray(np.float64(np.inf)))
    rows = WalkRows(
        jnp.tile(identity_motor(), (ROWS, 1)),
        jnp.asarray(random.integers(words, size=ROWS).astype(np.int32)),
        jnp.zeros(ROWS, jnp.int32),
        jnp.zeros((ROWS, STEPS), jnp.int32),
    )
    # Tables are padded to powers of two, and a region has an entry for each padded row.
    regions = lower_regions([], tables.points.shape[0], steps.relations.shape[0])
    window = jnp.zeros(WINDOW, jnp.int32)
    result = walk_program(rows, operators, tables, regions, policy, window)
    assert bool(jnp.all(result.closure.ok)), "the walk did not stay closed"
    walked = least(lambda: walk_program(rows, operators, tables, regions, policy, window), rounds)
    return {
        "words": words,
        "edges": len(edges),
        "width": tables.width,
        "tables_ms": 1e3 * least(build, rounds),
        "operators_ms": 1e3 * least(lambda: step_operators(steps, persona), rounds),
        "step_us": 1e6 * walked / (ROWS * STEPS),
        "memory_mib": operators.nbytes / 2**20,
    }


def main() -> int:
    """Print the table, or one JSON object for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object a line instead of the table")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000, 10_000, 50_000])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    enable_x64()
    rows = [measure(size, arguments.rounds) for size in arguments.sizes]
    if arguments.json:
        print("\n".join(map(json.dumps, rows)))
        return 0
    print("| " + " | ".join(rows[0]) + " |\n" + "|---" * len(rows[0]) + "|")
    for row in rows:
        print("| " + " | ".join(f"{value:.4g}" for value in row.values()) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
