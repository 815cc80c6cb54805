"""Products and sandwiches against einsum and `clifford` in the same run: `python -m scripts.bench.products [--json]`.

Every row is one operation on a batch. The floor is NumPy streaming the same bytes (two arrays in, one out) into
preallocated memory. Candidates run in turn, `--rounds` times; the least elapsed time of each is kept, and figures are
multiples of the floor of the same run, which another machine moves less than the times. Peers too slow for the whole
batch (`clifford`, einsum) run a slice of it and are scaled; the JSON lines say so.
"""

import argparse
import importlib.util
import json
import platform
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from engine.algebra import lanes, product, resident, tables
from engine.algebra.large import multiply_into, sandwich_into
from engine.algebra.multivector_lanes import enter_multivector, multiply_multivectors, multiply_multivectors_into
from engine.base.precision import enable_x64

Call = Callable[[], Any]
SLICE = 2_000
CHUNK = 512
"""Blocks of lanes: 16,384 states, 2 MB an array."""


def floor(a: NDArray, b: NDArray) -> Call:
    """NumPy adding the two batches into a preallocated third."""
    out = np.empty_like(a)
    return lambda: np.add(a, b, out=out)


def compiled(function: Callable[..., Any], *arrays: Any) -> Call:
    """The function compiled, on arrays already on the device, until its result is there."""
    program = jax.jit(function).lower(*arrays).compile()
    inputs = jax.device_put(arrays)
    return lambda: jax.block_until_ready(program(*inputs))


def into(program: Callable[..., Any], *arrays: Any) -> Call:
    """A program that writes to arrays handed in: those that come back are the next call's."""
    kept = [jax.tree.map(jnp.zeros_like, jax.eval_shape(program, *arrays))]

    def call() -> None:
        kept[0] = jax.block_until_ready(program(*arrays[:2], *jax.tree.leaves(kept[0])))

    return call


def in_chunks(versor: Any, motor: Any) -> Call:
    """`sandwich_into` chunk after chunk: what is between its two products stays in cache."""
    parts = [
        (versor[begin : begin + CHUNK], motor[begin : begin + CHUNK]) for begin in range(0, versor.shape[0], CHUNK)
    ]
    calls = [into(sandwich_into, *part, part[1], part[1]) for part in parts]
    return lambda: [call() for call in calls]


def resident_call(function: Callable[..., Any], *arrays: NDArray) -> Call:
    """The function on arrays that already are in the resident layout."""
    return compiled(function, *(np.asarray(resident.to_resident(jnp.asarray(array))) for array in arrays))


def clifford_product() -> Callable[[NDArray, NDArray], Any] | None:
    """The peer's compiled product of two coefficient arrays, or None where it is not installed."""
    if importlib.util.find_spec("clifford") is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import clifford

        layout, _ = clifford.Cl(4, 1)
        layout.gmt_func(np.ones(32), np.ones(32))
    return layout.gmt_func


def kingdon_call(a: NDArray, b: NDArray, blades: NDArray, sandwich: bool) -> Call | None:
    """The peer's generated code on whole columns, as it likes them, or None where it is not installed."""
    if importlib.util.find_spec("kingdon") is None:
        return None
    from kingdon import Algebra

    algebra = Algebra(4, 1)
    keys = tuple(int(tables.BLADES[blade]) for blade in blades)
    x, y = (algebra.multivector(values=list(np.ascontiguousarray(each.T)), keys=keys) for each in (a, b))
    return (lambda: x.sw(y)) if sandwich else (lambda: x * y)


def loop(function: Callable[[NDArray, NDArray], Any], a: NDArray, b: NDArray) -> Call:
    """One call for each row."""
    return lambda: [function(left, right) for left, right in zip(a, b, strict=True)]


def product_candidates(size: int, random: np.random.Generator) -> dict[str, tuple[Call, int]]:
    """Geometric product of multivectors: name -> (call, rows it works on)."""
    a, b = random.normal(size=(2, size, 32))
    dense = tables.dense_table()
    few = min(size, SLICE)
    left, right = map(enter_multivector, map(jnp.asarray, (a, b)))
    found: dict[str, tuple[Call, int]] = {
        "floor": (floor(a, b), size),
        "resident, fresh memory": (compiled(multiply_multivectors, left, right), size),
        "resident, memory handed in": (into(multiply_multivectors_into, left, right, left), size),
        "geometric_product": (compiled(product.geometric_product_kernel, a, b), size),
        "jax einsum": (compiled(lambda x, y: jnp.einsum("ijk,ni,nj->nk", dense, x, y), a[:few], b[:few]), few),
        "numpy einsum": (lambda: np.einsum("ijk,ni,nj->nk", dense, a[:few], b[:few], optimize=True), few),
    }
    if call := kingdon_call(a, b, np.arange(32), sandwich=False):
        found["kingdon"] = (call, size)
    if peer := clifford_product():
        found["clifford"] = (loop(peer, a[:few], b[:few]), few)
    return found


def sandwich_candidates(size: int, random: np.random.Generator) -> dict[str, tuple[Call, int]]:
    """v f reverse(v) of even elements: name -> (call, rows it works on)."""
    v, f = random.normal(size=(2, size, 16))
    dense = tables.dense_table(tables.EVEN_NAMES)
    few = min(size, SLICE)
    versor, motor = (resident.to_resident(jnp.asarray(array)) for array in (v, f / 8.0))

    def by_einsum(numbers: Any, x: Any, y: Any) -> Any:
        half = numbers.einsum("ijk,ni,nj->nk", dense, x, y)
        return numbers.einsum("ijk,ni,nj->nk", dense, half, x * tables.EVEN_REVERSE_SIGNS[None, :])

    found: dict[str, tuple[Call, int]] = {
        "floor": (floor(v, f), size),
        "sandwich": (compiled(product.sandwich_kernel, v, f), size),
        "resident, one program": (resident_call(lanes.step_lanes, v, f), size),
        "resident, memory handed in": (into(sandwich_into, versor, motor, motor, motor), size),
        "resident, memory handed in, in chunks": (in_chunks(versor, motor), size),
        "resident even product, memory handed in": (into(multiply_into, versor, motor, motor), size),
        "jax einsum": (compiled(lambda x, y: by_einsum(jnp, x, y), v[:few], f[:few]), few),
        "numpy einsum": (lambda: by_einsum(np, v[:few], f[:few]), few),
    }
    if call := kingdon_call(v, f, tables.EVEN, sandwich=True):
        found["kingdon"] = (call, size)
    if peer := clifford_product():
        wide = np.zeros((2, few, 32))
        wide[:, :, tables.EVEN] = v[:few], f[:few]
        reverse = tables.REVERSE_SIGNS
        found["clifford"] = (loop(lambda x, y: peer(peer(x, y), x * reverse), wide[0], wide[1]), few)
    return found


def measure(candidates: dict[str, tuple[Call, int]], size: int, rounds: int) -> dict[str, float]:
    """Least elapsed seconds of each for the whole batch, in rounds over all of them."""
    best = dict.fromkeys(candidates, float("inf"))
    for call, _ in candidates.values():
        call()
    for _ in range(rounds):
        for name, (call, rows) in candidates.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], (time.perf_counter() - start) * size / rows)
    return best


def main(argv: list[str] | None = None) -> int:
    """Print the table, or JSON lines with `--json`; 0."""
    parser = argparse.ArgumentParser(prog="python -m scripts.bench.products", description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    enable_x64()
    random = np.random.default_rng(0)
    rows = []
    for work, build in (("product of 32", product_candidates), ("even sandwich", sandwich_candidates)):
        for size in options.sizes:
            candidates = build(size, random)
            times = measure(candidates, size, options.rounds)
            for name, seconds in times.items():
                scaled = candidates[name][1] != size
                row = {"work": work, "size": size, "name": name, "seconds": seconds, "scaled": scaled}
                rows.append(row | {"floors": seconds / times["floor"]})
    if options.json:
        about = {"platform": platform.platform(), "python": platform.python_version(), "jax": jax.__version__}
        for line in [about, *rows]:
            print(json.dumps(line))
        return 0
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}, float64, least of {options.rounds} rounds\n")
    print("| work | batch | candidate | ms | floors |\n|---|---|---|---|---|")
    for row in rows:
        print("| {work} | {size} | {name} | {ms:.3f} | {floors:.1f} |".format(ms=1e3 * float(row["seconds"]), **row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
