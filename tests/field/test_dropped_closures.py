"""No call in the engine drops the closure it was given, and the detector sees planted ones."""

from pathlib import Path

import pytest

import engine
from tests.field.closure_usage import dropped_closures

ENGINE = Path(engine.__file__).parent


def test_no_call_in_the_engine_drops_its_closure():
    dropped = {
        str(path.relative_to(ENGINE)): found
        for path in sorted(ENGINE.rglob("*.py"))
        if (found := dropped_closures(path.read_text(encoding="utf-8")))
    }
    assert not dropped


@pytest.mark.parametrize(
    "body",
    [
        "propagate(state, versors)",
        "state = field.propagate(state, versors)[0]",
        "moved, _ = propagate(state, versors)",
        "moved, closure = propagate_parallel(state, versors)\n    return moved",
        "result = propagate(state, versors)\n    return result[0]",
        "walk(rows, operators)",
        "result = walk_program(rows, operators)\n    return rows",
        "measure_closure(motor)",
        "closure = measure_closure(motor)",
    ],
)
def test_planted_drop_is_found(body):
    assert dropped_closures(f"def planted(state, versors, rows, operators, motor):\n    {body}\n")


@pytest.mark.parametrize(
    "body",
    [
        "return propagate(state, versors)",
        "moved, closure = propagate(state, versors)\n    assert_closed(closure)\n    return moved",
        "result = propagate(state, versors)\n    check(result)\n    return result[0]",
        "return propagate(state, versors)[1]",
        "assert_closed(measure_closure(motor))",
        "ok = measure_closure(motor).ok\n    return ok",
        "return jax.vmap(lambda row: walk(row, operators))(rows)",
    ],
)
def test_looked_at_closure_is_fine(body):
    assert not dropped_closures(f"def fine(state, versors, rows, operators, motor):\n    {body}\n")
