"""How nearly exp brings a logarithm back, by kind of motor, as a Markdown table: `python -m scripts.bench.logarithm`.

Each row is a kind of bivector with random sizes, tried at the origin and moved by random motions, on both sheets (the
motor and its negative). A figure is the worst `|exp(log m) - m|` of the row in units of `eps (|m|² + |log m|² + 1)`,
the size that rounding has where planes lie far away; the second column is the same as a share of `|m|² + |log m|² + 1`.
"""

import argparse
import json
from collections.abc import Callable

import jax
import numpy as np
from numpy.typing import NDArray

from engine import algebra
from engine.algebra import tables
from engine.base.precision import enable_x64

Draw = Callable[[np.random.Generator, int], NDArray]
EPS = float(np.finfo(np.float64).eps)
PLANES = tuple(tables.EVEN_NAMES[1:11])


def bivectors(count: int, **planes: NDArray) -> NDArray:
    """Return the bivectors with these coefficients, shape (count, 10)."""
    values = np.zeros((count, len(PLANES)))
    for name, coefficients in planes.items():
        values[:, PLANES.index(name)] = coefficients
    return values


def sizes(random: np.random.Generator, count: int, low: float = -12.0, high: float = 0.5) -> NDArray:
    """Return numbers of either sign whose decimal logarithm is uniform in [low, high]."""
    return random.choice((-1.0, 1.0), count) * 10.0 ** random.uniform(low, high, count)


def rotation(random: np.random.Generator, count: int) -> NDArray:
    return bivectors(count, e12=random.uniform(-np.pi, np.pi, count))


def small_rotation(random: np.random.Generator, count: int) -> NDArray:
    return bivectors(count, e12=sizes(random, count))


def translation(random: np.random.Generator, count: int) -> NDArray:
    along = sizes(random, count, -3.0, 2.0)
    return bivectors(count, e14=along, e15=along)


def tiny_translation(random: np.random.Generator, count: int) -> NDArray:
    along = sizes(random, count, -12.0, -9.0)
    return bivectors(count, e14=along, e15=along)


def boost(random: np.random.Generator, count: int) -> NDArray:
    return bivectors(count, e15=sizes(random, count, -6.0, 0.5))


def dilation(random: np.random.Generator, count: int) -> NDArray:
    return bivectors(count, e45=sizes(random, count, -6.0, 0.3))


def two_rotations(random: np.random.Generator, count: int) -> NDArray:
    return bivectors(count, e12=random.uniform(-1.5, 1.5, count), e34=random.uniform(-1.5, 1.5, count))


def isoclinic(random: np.random.Generator, count: int) -> NDArray:
    angle = random.uniform(-1.5, 1.5, count)
    return bivectors(count, e12=angle, e34=angle + sizes(random, count, -12.0, -4.0))


def screw(random: np.random.Generator, count: int) -> NDArray:
    along = sizes(random, count, -3.0, 1.0)
    return bivectors(count, e12=random.uniform(-np.pi, np.pi, count), e34=along, e35=along)


def nearly_translation(random: np.random.Generator, count: int) -> NDArray:
    along = sizes(random, count, -1.0, 1.0)
    return bivectors(count, e12=along * 10.0 ** random.uniform(-12.0, -6.0, count), e34=along, e35=along)


def boost_and_rotation(random: np.random.Generator, count: int) -> NDArray:
    return bivectors(count, e12=sizes(random, count, -6.0, 0.4), e45=sizes(random, count, -6.0, 0.3))


KINDS: tuple[Draw, ...] = (
    rotation,
    small_rotation,
    translation,
    tiny_translation,
    boost,
    dilation,
    two_rotations,
    isoclinic,
    screw,
    nearly_translation,
    boost_and_rotation,
)


@jax.jit
def _errors(bivector: jax.Array, move: jax.Array, sheet: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the largest coefficient of `exp(log m) - m` and `|m|² + |log m|² + 1` for each motor m."""
    motor = algebra.even_product(algebra.even_product(move, algebra.exp(bivector)), algebra.even_reverse(move))
    motor = sheet[:, None] * motor
    logarithm = algebra.log(motor)
    back = algebra.exp(logarithm)
    size = (motor**2).sum(-1) + (logarithm**2).sum(-1) + 1.0
    return abs(back - motor).max(-1), size


def moves(random: np.random.Generator, count: int) -> NDArray:
    """Return motions `T R` with a displacement of up to 10 and any rotation, every second one the identity."""
    turns = random.normal(size=(3, count))
    planes = bivectors(count, e12=turns[0], e13=turns[1], e23=turns[2])
    rotors = algebra.rotor(planes, random.uniform(-np.pi, np.pi, count))
    translators = algebra.translator(random.uniform(-10.0, 10.0, (count, 3)))
    motions = np.array(algebra.even_product(translators, rotors))
    motions[::2] = np.asarray(algebra.identity_motor())
    return motions


def measure(count: int, seed: int) -> list[dict[str, object]]:
    """Return one row for each kind and sheet, of `count` motors each."""
    rows: list[dict[str, object]] = []
    for kind in KINDS:
        for sheet in (1.0, -1.0):
            random = np.random.default_rng([seed, KINDS.index(kind), int(sheet < 0)])
            error, size = _errors(kind(random, count), moves(random, count), np.full(count, sheet))
            share = float(np.max(np.asarray(error) / np.asarray(size)))
            name = kind.__name__.replace("_", " ") + ("" if sheet > 0 else ", negative")
            rows.append({"kind": name, "motors": count, "units": share / EPS, "share": share})
    return rows


def main() -> int:
    """Print the table and return 0."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.bench.logarithm", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line in place of the table")
    parser.add_argument("--count", type=int, default=2000, help="motors of each kind on each sheet")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    enable_x64()
    rows = measure(options.count, options.seed)
    if options.json:
        for row in rows:
            print(json.dumps(row))
        return 0
    print(f"{sum(options.count for _ in rows):,} motors, seed {options.seed}\n")
    print("| kind | worst, in eps (\\|m\\|² + \\|log m\\|² + 1) | as a share |\n|---|---|---|")
    for row in rows:
        print(f"| {row['kind']} | {row['units']:.3g} | {row['share']:.1e} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
