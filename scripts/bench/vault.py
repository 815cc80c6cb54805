"""Exact recall and storing: `python -m scripts.bench.vault [--json] [--sizes N ...] [--rounds N]`.

The ten nearest of N entries for 1 and for 64 queries, by the distance of points. Two floors, measured in the same run:
`floor, streamed` is NumPy reading the coordinates that recall has to read (24 bytes an entry) for each block of
queries, and `floor, 32 numbers` reading a table of 32 numbers an entry, as a store of whole multivectors would have to.
Peers: NumPy (all distances, argpartition), plain JAX (all distances, `lax.top_k`), and, where it is installed, FAISS
(exact, float32: it says so). Candidates run in turn and the least time of each is kept.

Storing is timed too: one entry more as a new vault, which copies, and in the arrays of a vault that is donated, both
against copying the vault.
"""

import argparse
import importlib.util
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
from numpy.typing import NDArray

from engine.algebra import identity_motor
from engine.base.precision import enable_x64
from engine.vault import Vault
from scripts.bench.propagate import random_rotors

NEAREST = 10
QUERIES = (1, 64)
COLUMNS = ("recall", "numpy", "jax top_k", "faiss float32")

Call = Callable[[], Any]


def filled(size: int, points: NDArray[np.float64]) -> Vault:
    """Return a vault of `size` entries at `points`: what `store` would have made, without its checks of each entry."""
    import equinox as eqx

    vault = Vault.empty(size)
    motors = jnp.tile(random_rotors(1, 1_000), (-(-size // 1_000), 1))[:size]
    spare = vault.capacity - size
    return eqx.tree_at(
        lambda v: (v.motors, v.coordinates, v.count),
        vault,
        (
            jnp.pad(motors, ((0, spare), (0, 0))),
            jnp.pad(jnp.asarray(points.T), ((0, 0), (0, spare))),
            jnp.asarray(size),
        ),
    )


def by_top_k(points: Float[Array, "n 3"], queries: Float[Array, "q 3"]) -> Any:
    """All distances, and the library's own selection."""
    squares = jnp.sum(jnp.square(queries[:, None] - points[None]), axis=-1)
    return lax.top_k(-squares, NEAREST)


def by_argpartition(points: NDArray[np.float64], norms: NDArray[np.float64], queries: NDArray[np.float64]) -> NDArray:
    """All distances by one matrix product, and a partition; exact order within the ten."""
    squares = norms - 2.0 * (queries @ points.T)
    found = np.argpartition(squares, NEAREST, axis=1)[:, :NEAREST]
    return np.take_along_axis(found, np.argsort(np.take_along_axis(squares, found, 1), axis=1), 1)


def candidates(size: int, count: int) -> dict[str, Call]:
    """Return name -> call for one size and number of queries; the floors are among them."""
    random = np.random.default_rng(0)
    points, queries = random.normal(size=(size, 3)), random.normal(size=(count, 3))
    vault, wide, norms = filled(size, points), random.normal(size=(size, 32)), np.sum(points * points, axis=1)
    asked, table = jnp.asarray(queries), jnp.asarray(points)
    top = jax.jit(by_top_k)
    columns = np.ascontiguousarray(points.T)
    calls: dict[str, Call] = {
        "floor, streamed": lambda: columns.sum(),
        "floor, 32 numbers": lambda: wide.sum(),
        "recall": lambda: jax.block_until_ready(vault.recall(asked, NEAREST)),
        "numpy": lambda: by_argpartition(points, norms, queries),
    }
    if size * count <= 10_000_000:
        calls["jax top_k"] = lambda: jax.block_until_ready(top(table, asked))
    if importlib.util.find_spec("faiss") is not None:
        import faiss

        index = faiss.IndexFlatL2(3)
        index.add(points.astype(np.float32))
        calls["faiss float32"] = lambda: index.search(queries.astype(np.float32), NEAREST)
    return calls


def storing(size: int) -> dict[str, Call]:
    """Return name -> call for one entry more."""
    vault = filled(size, np.random.default_rng(0).normal(size=(size, 3)))
    one, spare = identity_motor(), 1 << 16
    growing = [filled(size, np.random.default_rng(1).normal(size=(size, 3))).store(jnp.tile(one, (spare, 1)))]

    def in_place() -> None:
        growing[0] = jax.block_until_ready(growing[0].store(one, donate=True))

    return {
        "store, donated": in_place,
        "copy": lambda: jax.block_until_ready(jax.tree.map(jnp.copy, vault)),
        "store": lambda: jax.block_until_ready(vault.store(one)),
    }


def least_seconds(calls: dict[str, Call], rounds: int) -> dict[str, float]:
    """Least elapsed seconds of each, in rounds over all of them; the first round compiles."""
    least = dict.fromkeys(calls, float("inf"))
    for number in range(rounds + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if number:
                least[name] = min(least[name], time.perf_counter() - start)
    return least


def main() -> int:
    """Print the table, or one JSON object for each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object a line instead of the table")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=10, help="times every candidate runs (default 10)")
    arguments = parser.parse_args()
    enable_x64()
    rows: list[dict[str, Any]] = []
    for size in arguments.sizes:
        for count in QUERIES:
            found = least_seconds(candidates(size, count), arguments.rounds)
            rows.append(
                {"entries": size, "queries": count, **found, "floors": found["recall"] / found["floor, 32 numbers"]}
            )
        found = least_seconds(storing(size), arguments.rounds)
        rows.append({"entries": size, "queries": 0, **found})
    if arguments.json:
        print("\n".join(map(json.dumps, rows)))
        return 0
    names = list(dict.fromkeys(name for row in rows for name in row))
    print(f"| {' | '.join(names)} |\n" + "|---" * len(names) + "|")
    for row in rows:
        print("| " + " | ".join(f"{row[name]:.4g}" if name in row else "–" for name in names) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
