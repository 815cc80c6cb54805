"""The closure residual after 1e2 to 1e6 steps, as a Markdown table: `python -m scripts.bench.residual_table [--json]`.

Each row is a kind of versor and a pattern: the same one at every step (constant), one and its reverse in turn
(alternating), or a new random one each time (random, seed 0). Four states, the identity and three random motors, take
the steps; a figure is the worst residual of all states and steps so far. Where a state reaches the bound, the step and
the likely cause that the engine's own error gives stand instead.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from engine.algebra import even_product, even_reverse, exp, rotor, translator
from engine.base.errors import VersorClosureError
from engine.base.precision import enable_x64
from engine.field import FieldState, assert_closed, propagate

CHECKPOINTS = (100, 1_000, 10_000, 100_000, 1_000_000)
CHUNK = 90_000
"""Steps of one program; longer runs are chained, which 100 + 900 + 9,000 + 90,000 + 10 x 90,000 divide evenly."""

BOOST_ANGLE = 0.1
PATTERNS = ("constant", "alternating", "random")
Make = Callable[[np.random.Generator, int], Float[Array, "steps 16"]]


def directions(random: np.random.Generator, count: int) -> NDArray:
    """Uniform unit vectors."""
    vectors = random.normal(size=(count, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def rotors(random: np.random.Generator, count: int) -> Float[Array, "steps 16"]:
    """Spatial rotors by uniform angles in uniform planes."""
    planes = np.zeros((count, 10))
    planes[:, [0, 1, 4]] = directions(random, count)
    return rotor(jnp.asarray(planes), jnp.asarray(random.uniform(-np.pi, np.pi, count)))


def translators(length: float) -> Make:
    """Translators by vectors of one length in uniform directions."""
    return lambda random, count: translator(jnp.asarray(length * directions(random, count)))


def motors(random: np.random.Generator, count: int) -> Float[Array, "steps 16"]:
    """A rotor and then a translator by 1."""
    return even_product(translators(1.0)(random, count), rotors(random, count))


def boosts(random: np.random.Generator, count: int) -> Float[Array, "steps 16"]:
    """Boosts of e5 with uniform spatial directions, by a rapidity of 0.1."""
    bivectors = np.zeros((count, 10))
    bivectors[:, [3, 6, 8]] = -0.5 * BOOST_ANGLE * directions(random, count)
    return exp(jnp.asarray(bivectors))


KINDS: dict[str, Make] = {
    "rotors": rotors,
    "translators, 1": translators(1.0),
    "translators, 1e2": translators(1e2),
    "translators, 1e4": translators(1e4),
    "motors": motors,
    "boosts, 0.1": boosts,
}


def pieces(make: Make, pattern: str) -> Iterator[Float[Array, "steps 16"]]:
    """Versors in pieces that end at every checkpoint."""
    random = np.random.default_rng(0)
    fixed = make(random, 1)
    pair = jnp.concatenate([fixed, even_reverse(fixed)])
    done = 0
    while done < CHECKPOINTS[-1]:
        goal = next(point for point in CHECKPOINTS if point > done)
        count = min(CHUNK, goal - done)
        if pattern == "random":
            yield make(random, count)
        else:
            yield jnp.tile(
                pair if pattern == "alternating" else pair[:1], (count // (1 + (pattern == "alternating")), 1)
            )
        done += count


def measure(make: Make, pattern: str) -> list[str]:
    """One cell for each checkpoint."""
    start = even_product(translators(1.0)(np.random.default_rng(1), 3), rotors(np.random.default_rng(2), 3))
    state = FieldState(jnp.concatenate([jnp.eye(16)[:1], start]))
    cells: list[str] = []
    done, worst = 0, 0.0
    for versors in pieces(make, pattern):
        state, closure = propagate(state, versors)
        try:
            assert_closed(closure)
        except VersorClosureError as error:
            step = done + int(jnp.min(jnp.where(closure.ok, versors.shape[0] + 1, closure.first_violation)))
            broke = f"broke at {step:,}: {'too large' if 'too large' in (error.cause or '') else error.cause}"
            return cells + [broke] + ["–"] * (len(CHECKPOINTS) - len(cells) - 1)
        worst = max(worst, float(jnp.max(closure.max_residual)))
        done += versors.shape[0]
        if done in CHECKPOINTS:
            cells.append(f"{worst:.1e}")
    return cells


def main() -> int:
    """Print the table, or one JSON object for each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object a line instead of the table")
    arguments = parser.parse_args()
    enable_x64()
    if not arguments.json:
        heads = [f"1e{round(math.log10(point))}" for point in CHECKPOINTS]
        print("| versors | pattern | " + " | ".join(heads) + " |")
        print("|---|---|" + "---|" * len(heads))
    for kind, make in KINDS.items():
        for pattern in PATTERNS:
            cells = measure(make, pattern)
            row = {"versors": kind, "pattern": pattern, **dict(zip(map(str, CHECKPOINTS), cells, strict=True))}
            print(json.dumps(row) if arguments.json else f"| {kind} | {pattern} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
