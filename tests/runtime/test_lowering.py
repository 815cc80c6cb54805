"""The main programs lower for CUDA without a GPU, hold nothing that only a CPU has, and force their precision.

Lowering says that the programs can be compiled there. It says nothing about their speed or last bits.
"""

import re
from collections.abc import Iterator
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import pytest

from engine.algebra import identity_motor
from engine.algebra.multivector_lanes import enter_multivector, multiply_multivectors
from engine.algebra.product import geometric_product_kernel, sandwich_kernel
from engine.field import FieldState
from engine.field.propagate import blocks_program, parallel_program, propagate_program
from engine.instruments.embed.bert import Dense, Layer, LayerNorm, pool
from engine.runtime import programs
from engine.vault import Vault
from engine.vault.recall import Query
from engine.vault.vault import donating_program, recall_program, store_program

ALLOWED = {"Sharding", "annotate_device_placement", "cu_threefry2x32_ffi", "mhlo.topk"}
"""Custom calls that CUDA has: markers, the random bits' own kernel and the selection that GPUs are good at."""


def exported(jitted: Any, *arguments: Any) -> jax.export.Exported:
    return jax.export.export(jitted, platforms=["cuda"])(*arguments)


def custom_calls(text: str) -> set[str]:
    return set(re.findall(r"custom_call @([\w.]+)", text)) | set(re.findall(r'call_target_name = "([^"]+)"', text))


def programs_of_the_field() -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    state, shared, own = FieldState(identity_motor((600,))), identity_motor((70, 1)), identity_motor((9, 600))
    yield "shared versors", blocks_program, (state, shared)
    yield "few samples", blocks_program, (FieldState(identity_motor((3,))), shared)
    yield "step by step", propagate_program, (state, own)
    yield "parallel in time", parallel_program, (state, own)
    a, b = jnp.ones((64, 32)), jnp.ones((64, 32))
    yield "product", jax.jit(geometric_product_kernel), (a, b)
    yield "sandwich", jax.jit(sandwich_kernel), (identity_motor((64,)), identity_motor((64,)))
    yield "resident product", jax.jit(multiply_multivectors), (enter_multivector(a), enter_multivector(b))
    vault, codes = Vault.empty(64), jnp.zeros(2, jnp.int64)
    stored = vault, identity_motor((2,)), jnp.zeros((2, 3)), codes, codes
    yield "store", store_program, stored
    yield "store in place", donating_program, stored


@pytest.mark.parametrize(
    ("program", "arguments"), [pytest.param(*row[1:], id=row[0]) for row in programs_of_the_field()]
)
def test_programs_of_the_field_lower_for_cuda(program: Any, arguments: tuple[Any, ...]) -> None:
    found = exported(program, *arguments)
    assert found.platforms == ("cuda",)
    assert custom_calls(found.mlir_module()) <= ALLOWED


def test_recall_lowers_for_cuda() -> None:
    vault = Vault.empty(64).store(identity_motor((3,)))

    def recall(vault: Vault, point: jax.Array) -> Any:
        return recall_program(vault, Query(point), jnp.asarray(False), 2, None)

    assert custom_calls(exported(jax.jit(recall), vault, jnp.zeros((5, 3))).mlir_module()) <= ALLOWED


def test_the_walk_that_an_evaluation_runs_lowers_for_cuda(runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, ...]] = []
    get = programs.WALKS.get

    def spy(*arguments: Any) -> Any:
        seen.append(arguments)
        return get(*arguments)

    monkeypatch.setattr(programs.WALKS, "get", spy)
    runtime.evaluate(["What is truth?"])
    assert seen
    for arguments in seen:
        assert custom_calls(exported(programs.WALKS._jitted, *arguments).mlir_module()) <= ALLOWED


def products(module: str) -> list[str]:
    return [line for line in module.splitlines() if "stablehlo.dot_general" in line]


def is_forced(line: str) -> bool:
    """Whether a product is of float64, which no device lowers, or says that it wants full precision."""
    return "xf64>" in line or "precision = [HIGHEST, HIGHEST]" in line


def test_products_of_the_field_are_found_and_forced() -> None:
    state, versors = FieldState(identity_motor((600,))), identity_motor((70, 1))
    lines = products(exported(blocks_program, state, versors).mlir_module())
    assert lines
    assert all("precision = [HIGHEST, HIGHEST]" in line and "xf64>" in line for line in lines)


def test_products_of_the_encoder_are_forced() -> None:
    def dense(into: int, out: int) -> Dense:
        return Dense(jnp.zeros((into, out), jnp.float32), jnp.zeros(out, jnp.float32))

    norm = LayerNorm(jnp.ones(8, jnp.float32), jnp.zeros(8, jnp.float32), 1e-12)
    layer = Layer(dense(8, 24), dense(8, 8), norm, dense(8, 16), dense(16, 8), norm, heads=2)
    hidden, mask = jnp.zeros((2, 3, 8), jnp.float32), jnp.ones((2, 3), bool)
    lines = products(exported(jax.jit(lambda x, kept: pool(layer(x, kept), kept)), hidden, mask).mlir_module())
    assert len(lines) >= 6
    assert all(map(is_forced, lines)), [line for line in lines if not is_forced(line)]


def test_a_product_that_is_not_forced_would_be_noticed() -> None:
    lines = products(exported(jax.jit(jnp.matmul), *jnp.zeros((2, 4, 4), jnp.float32)).mlir_module())
    assert lines
    assert not any(map(is_forced, lines))
