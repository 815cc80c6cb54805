"""Propagation with and without the closure check: `python -m scripts.bench.propagate [--json] [--rounds N]`.

Versors shared by the batch move 1, 256 and 4,096 states by 1,000 steps: `propagate` takes them in blocks of steps.
Beside it stand the same blocks without a check, the step-by-step form with and without one, and the associative scan.

The floor is the arithmetic alone: two products of 2 x 2 quaternion matrices a step, 128 multiplications and additions
each, at the rate of a NumPy matrix product in the same run. Candidates run in turn and the least elapsed time of each
is kept; figures are multiples of the floor. Slow candidates (the readable kernels, and dense einsum as the naive form)
run fewer steps and are scaled.
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

from engine.algebra import rotor, tables
from engine.algebra.lanes import step_lanes
from engine.algebra.product import even_reverse_kernel, sandwich_kernel
from engine.algebra.resident import enter, from_resident, leave, to_resident
from engine.base.precision import enable_x64
from engine.field import FieldState, blocks
from engine.field.closure import squared_residual
from engine.field.propagate import blocks_program, parallel_program, propagate_program

STEPS = 1_000
SLOW_STEPS = 20
BATCHES = (1, 256, 4_096)
PARALLEL_ROWS = 256
"""The associative scan holds the states of all steps: larger batches are not worth its memory."""
COLUMNS = (
    "propagate",
    "blocks, unchecked",
    "step by step",
    "step by step, unchecked",
    "associative scan",
    "readable, checked",
    "naive einsum, checked",
)
OPERATIONS = 2 * 2 * 128
"""Multiplications and additions of one step: two products of 128 of each."""

Motors = Float[Array, "batch 16"]
Versors = Float[Array, "steps 16"]


def seconds_per_operation(rounds: int) -> float:
    """The rate of a NumPy matrix product, which is as near to the arithmetic peak as a library call comes."""
    a = np.random.default_rng(0).normal(size=(768, 768))
    least = min(_elapsed(lambda: a @ a) for _ in range(max(rounds, 3)))
    return least / (2 * 768**3)


def unchecked(motor: Motors, versors: Versors) -> Motors:
    """The same step as `propagate`, without looking at any state."""
    rows = to_resident(versors, lead=1, fill=None)

    def step(carry: Array, versor: Array) -> tuple[Array, None]:
        return step_lanes(jnp.broadcast_to(versor, carry.shape), carry), None

    return from_resident(lax.scan(step, to_resident(motor, fill=None), rows)[0], motor.shape[:-1])


def unchecked_blocks(motor: Motors, versors: Versors) -> Motors:
    """What `propagate` does with shared versors, without looking at any state."""
    matrices = blocks._matrices(blocks._prefixes(versors[:, None], blocks.block_for(len(versors))))

    def step(carry: Array, matrix: Array) -> tuple[Array, None]:
        return lax.dot_general(matrix, carry, (((1,), (0,)), ((), ())))[-16:], None

    return leave(lax.scan(step, enter(motor.T), matrices)[0]).T


def readable(motor: Motors, versors: Versors) -> tuple[Motors, Float[Array, "steps batch"]]:
    """The readable kernels, with the residual of every step."""

    def step(carry: Array, versor: Array) -> tuple[Array, Array]:
        moved = sandwich_kernel(jnp.broadcast_to(versor, carry.shape), carry)
        return moved, squared_residual(moved)[0]

    return lax.scan(step, motor, versors)


def naive(motor: Motors, versors: Versors) -> tuple[Motors, Float[Array, "steps batch"]]:
    """Dense structure constants and the textbook residual of the whole product."""
    table = jnp.asarray(tables.dense_table(tables.EVEN_NAMES))

    def product(a: Array, b: Array) -> Array:
        return jnp.einsum("bi,bj,ijk->bk", a, b, table)

    def step(carry: Array, versor: Array) -> tuple[Array, Array]:
        spread = jnp.broadcast_to(versor, carry.shape)
        moved = product(product(spread, carry), even_reverse_kernel(spread))
        excess = product(moved, even_reverse_kernel(moved)) - jnp.broadcast_to(jnp.eye(16)[0], moved.shape)
        return moved, jnp.sum(excess * excess, axis=-1)

    return lax.scan(step, motor, versors)


def _elapsed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - start


def random_rotors(seed: int, count: int) -> Motors:
    """Spatial rotors by random angles."""
    random = np.random.default_rng(seed)
    planes = np.zeros((count, 10))
    planes[:, [0, 1, 4]] = random.normal(size=(count, 3))
    return rotor(jnp.asarray(planes), jnp.asarray(random.uniform(-1, 1, count)))


def measure(batch: int, rounds: int) -> dict[str, float]:
    """Least seconds for `STEPS` steps of each candidate, in turn."""
    motor, versors = random_rotors(1, batch), random_rotors(2, STEPS)
    state, few = FieldState(motor), versors[:SLOW_STEPS]
    plain, slow, slowest = jax.jit(unchecked), jax.jit(readable), jax.jit(naive)
    plain_blocks, rows = jax.jit(unchecked_blocks), versors[:, None]
    calls: dict[str, tuple[Callable[[], Any], int]] = {
        "propagate": (lambda: blocks_program(state, rows), STEPS),
        "blocks, unchecked": (lambda: plain_blocks(motor, versors), STEPS),
        "step by step": (lambda: propagate_program(state, rows), STEPS),
        "step by step, unchecked": (lambda: plain(motor, versors), STEPS),
        "readable, checked": (lambda: slow(motor, few), SLOW_STEPS),
        "naive einsum, checked": (lambda: slowest(motor, few), SLOW_STEPS),
    }
    if batch <= PARALLEL_ROWS:
        calls["associative scan"] = (lambda: parallel_program(state, rows), STEPS)
    least = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds + 1):  # the first round compiles
        for name, (call, steps) in calls.items():
            least[name] = min(least[name], _elapsed(call) * STEPS / steps)
    return least


def main() -> int:
    """Print the table, or one JSON object for each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object a line instead of the table")
    parser.add_argument("--rounds", type=int, default=10, help="times every candidate runs (default 10)")
    arguments = parser.parse_args()
    enable_x64()
    rate = seconds_per_operation(arguments.rounds)
    if not arguments.json:
        print("| batch | floor, ms | " + " | ".join(COLUMNS) + " |")
        print("|---" * (len(COLUMNS) + 2) + "|")
    for batch in BATCHES:
        floor = rate * OPERATIONS * STEPS * batch
        least = measure(batch, arguments.rounds)
        ratios = {name: seconds / floor for name, seconds in least.items()}
        if arguments.json:
            print(json.dumps({"batch": batch, "steps": STEPS, "floor_s": floor, **ratios}))
        else:
            cells = " | ".join(f"{ratios[name]:.3g}" if name in ratios else "–" for name in COLUMNS)
            print(f"| {batch:,} | {1e3 * floor:.3g} | {cells} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
