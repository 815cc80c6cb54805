"""`no_hot_path_repair`, proved on the program that runs (DESIGN §5, "Never repaired").

The proof is a data-flow analysis of a traced program and of every jaxpr nested in it. On every path from the incoming
state or an operator to the outgoing state it allows multiplication, addition, subtraction, negation, sums and movement
of entries, and it counts factors: each term of the outgoing state has exactly one factor from the incoming state and,
per step, exactly two from the operators. A Newton-Schulz step, which repairs by multiplication alone, has three.

What it does not see: the numbers. A motor that was not a versor when it was handed in stays none; the closure residual
(`engine.field.closure`) measures that at every step. Rules and reasons: docs/decisions/0020-hot-path-proof.md.
"""

import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr

from engine.base.errors import ConfigError
from engine.safety._flow import OPERATOR, STATE, Degree, Finding, Flow, Kind, broken
from engine.safety._interpret import Interpreter


@dataclasses.dataclass(frozen=True)
class HotPathReport:
    """Outcome of a proof.

    `upheld`: no repair can stand on a state path. `findings`: what stands there otherwise, each with primitive, reason,
    source line and nesting. `degrees`: the degree found for each outgoing state. `steps`: the loop trips behind each.
    `primitives`: every primitive of the program, on and off the state path.
    """

    upheld: bool
    findings: tuple[Finding, ...]
    degrees: tuple[str, ...]
    steps: tuple[int, ...]
    primitives: frozenset[str]

    def __bool__(self) -> bool:
        return self.upheld

    def __str__(self) -> str:
        if self.upheld:
            return f"no repair on a state path: {', '.join(self.degrees)}"
        return "; ".join(map(str, self.findings))


def prove_no_repair(
    closed_jaxpr: ClosedJaxpr,
    state_inputs: Collection[int],
    operator_inputs: Collection[int],
    state_outputs: Collection[int],
    *,
    steps: int | None = None,
    compositions: Collection[str] = (),
) -> HotPathReport:
    """Prove that a program only moves its state by operators, or say what else it does.

    `closed_jaxpr` is the program, for instance `jax.jit(f).trace(*args).jaxpr`. The next three are flat positions of
    arguments and results. `steps` is the exact number of operator pairs every outgoing state must carry; by default one
    per innermost loop trip, and at most one where no loop advances the state. `compositions` names jitted functions
    that combine two operators into one, for parallel forms; each is proved linear in both where it is called.

    Raises `ConfigError` for positions that the program does not have.
    """
    inputs, outputs = closed_jaxpr.jaxpr.invars, closed_jaxpr.jaxpr.outvars
    _require_positions(state_inputs, len(inputs), "state input")
    _require_positions(operator_inputs, len(inputs), "operator input")
    _require_positions(state_outputs, len(outputs), "state output")
    if set(state_inputs) & set(operator_inputs):
        raise ConfigError("an argument cannot be both the state and an operator")
    arguments = [_argument(index, state_inputs, operator_inputs) for index in range(len(inputs))]
    interpreter = Interpreter(compositions=frozenset(compositions))
    results = interpreter.run(closed_jaxpr, arguments, "program")
    outgoing = [results[index] for index in sorted(state_outputs)]
    findings = sorted({finding for flow in outgoing for finding in _judge(flow, steps)})
    return HotPathReport(
        upheld=not findings,
        findings=tuple(findings),
        degrees=tuple("broken" if flow.broken else str(flow.degree) for flow in outgoing),
        steps=tuple(flow.steps for flow in outgoing),
        primitives=frozenset(interpreter.visited),
    )


def prove_traced(
    traced: Any,
    *,
    state: Callable[[tuple[Any, ...]], Any],
    operators: Callable[[tuple[Any, ...]], Any],
    outputs: Callable[[Any], Any],
    steps: int | None = None,
    compositions: Collection[str] = (),
) -> HotPathReport:
    """`prove_no_repair` for `jitted.trace(*args)`, with positions picked by name.

    `state` and `operators` pick from the tuple of positional arguments, `outputs` from the result: each is given the
    argument's or result's tree with a position in every leaf, e.g. `state=lambda args: args[0].motor`.
    """
    arguments, keywords = jax.tree.unflatten(traced.in_tree, range(traced.in_tree.num_leaves))
    if keywords:
        raise ConfigError("trace the program with positional arguments")
    results = jax.tree.unflatten(traced.out_tree, range(traced.out_tree.num_leaves))
    return prove_no_repair(
        traced.jaxpr,
        jax.tree.leaves(state(arguments)),
        jax.tree.leaves(operators(arguments)),
        jax.tree.leaves(outputs(results)),
        steps=steps,
        compositions=compositions,
    )


def _require_positions(positions: Collection[int], count: int, what: str) -> None:
    if not positions and what != "operator input":
        raise ConfigError(f"a proof needs at least one {what}")
    for position in positions:
        if not 0 <= position < count:
            raise ConfigError(f"{what} {position} does not exist: the program has {count}")


def _argument(index: int, states: Collection[int], operators: Collection[int]) -> Flow:
    if index in states:
        return STATE
    if index in operators:
        return OPERATOR
    reason = "neither the state nor an operator, and reaches the outgoing state"
    return broken(finding=Finding("argument", reason, f"argument {index}", "program"), follows=False)


def _judge(flow: Flow, steps: int | None) -> Sequence[Finding]:
    """Findings against one outgoing state."""
    if flow.broken:
        return tuple(flow.findings)
    if flow.kind is not Kind.TERM:
        return (Finding("output", "does not depend on the incoming state", "result", "program"),)
    expected = _expected_degrees(flow, steps)
    if flow.degree in expected:
        return ()
    reason = f"has degree {flow.degree} instead of {' or '.join(map(str, expected))}"
    return (Finding("output", reason, "result", "program"),)


def _expected_degrees(flow: Flow, steps: int | None) -> list[Degree]:
    """One factor of the state and two of the operators per step; a loop over an argument counts its own."""
    if steps is not None:
        return [Degree(1, 2 * steps)]
    if flow.steps:
        return [Degree(1, 2 * flow.steps, flow.degree.loops)]
    return [Degree(1, 0, flow.degree.loops), Degree(1, 2, flow.degree.loops)]
