"""Precisions side by side: `python -m scripts.bench.precision [--json] [--steps N]`.

Four states are moved by random chains: rotors, and rigid motors that shift by 100. For each precision: the first step
at which a residual reached 1e-6 (0: none did), the worst residual after the last step, and the time of a step as a
multiple of float64, step by step, in the same run and for the same 256 states.

float32 is the same step in plain float32, with its residual taken in float64.
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
from jax import lax
from jaxtyping import Array, Float

from engine.algebra import even_product, translator
from engine.algebra.lanes import squares_of_lanes, step_lanes
from engine.algebra.resident import enter
from engine.base.precision import enable_x64
from engine.field import Closure, FieldState, propagate
from engine.field.closure import begin, finish, watch
from engine.field.compensated import CompensatedState, propagate_compensated
from engine.field.propagate import propagate_program
from scripts.bench.propagate import random_rotors

ROWS = 4
TIMED_ROWS, TIMED_STEPS = 256, 200
SHIFT = 100.0

Run = Callable[[FieldState, Float[Array, "steps 16"]], Closure]


@jax.jit
def single(state: FieldState, versors: Float[Array, "steps 16"]) -> Closure:
    """Plain float32."""
    shape = (4, 2, 2, state.motor.shape[0])
    motor = enter(state.motor.T).astype(jnp.float32).reshape(shape)
    rows = enter(versors.T).T.astype(jnp.float32).reshape(-1, 4, 2, 2, 1)

    def step(carry: Any, row: Any) -> Any:
        (motor, seen), (number, versor) = carry, row
        moved = step_lanes(jnp.broadcast_to(versor, shape), motor)
        return (moved, watch(seen, number, *squares_of_lanes(moved.astype(jnp.float64)))), None

    start = motor, begin(*squares_of_lanes(motor.astype(jnp.float64)))
    (_, seen), _ = lax.scan(step, start, (jnp.arange(1, len(rows) + 1), rows))
    return finish(seen, jnp.ones_like(seen.norm))


def compensated(precision: str) -> Run:
    """Two numbers for each entry."""
    return lambda state, versors: propagate_compensated(CompensatedState.from_state(state, precision), versors)[1]


PRECISIONS: dict[str, Run] = {
    "float32": single,
    "float32x2": compensated("float32x2"),
    "float64": lambda state, versors: propagate(state, versors)[1],
    "float64x2": compensated("float64x2"),
}


def chains(steps: int) -> dict[str, Float[Array, "steps 16"]]:
    """Return random chains of `steps` versors by kind."""
    rotors = random_rotors(2, steps)
    shifts = np.random.default_rng(3).normal(size=(steps, 3))
    shifts *= SHIFT / np.linalg.norm(shifts, axis=1, keepdims=True)
    return {"rotors": rotors, "motors, shift 100": even_product(translator(jnp.asarray(shifts)), rotors)}


def cost(run: Run) -> float:
    """Return the least seconds of a step of the timed batch."""
    state, versors = FieldState(random_rotors(4, TIMED_ROWS)), random_rotors(5, TIMED_STEPS)
    least = float("inf")
    for _ in range(6):
        start = time.perf_counter()
        jax.block_until_ready(run(state, versors))
        least = min(least, time.perf_counter() - start)
    return least / TIMED_STEPS


def main() -> int:
    """Print the table, or one JSON object for each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object a line instead of the table")
    parser.add_argument("--steps", type=int, default=20_000, help="steps of each chain (20,000)")
    arguments = parser.parse_args()
    enable_x64()
    state = FieldState(random_rotors(1, ROWS))
    unit = cost(lambda state, versors: propagate_program(state, versors[:, None])[1])
    costs = {name: cost(run) / unit for name, run in PRECISIONS.items()}
    if not arguments.json:
        print("| chain | precision | first step at 1e-6 | worst residual | time of a step |\n|---|---|---|---|---|")
    for kind, versors in chains(arguments.steps).items():
        for name, run in PRECISIONS.items():
            closure = run(state, versors)
            broke = [int(step) for step in closure.first_violation if step >= 0]
            worst = float(jnp.max(closure.max_residual))
            if arguments.json:
                row = {
                    "chain": kind,
                    "precision": name,
                    "steps": arguments.steps,
                    "broke_at": float(min(broke, default=0)),
                }
                print(json.dumps({**row, "worst": worst, "times_float64": costs[name]}))
            else:
                first = f"{min(broke):,}" if broke else "none"
                print(f"| {kind} | {name} | {first} | {worst:.1e} | {costs[name]:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
