"""The walk through a jaxpr and everything nested in it: calls, scans, while loops, branches, shard_map."""

import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Any

from jax.extend import source_info_util
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

from engine.safety._flow import OPERATOR, STATE, Degree, Finding, Flow, Kind, Report, broken, join
from engine.safety._rules import apply_rule, literal_flow

CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "remat": "jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "shard_map": "jaxpr",
}
"""Primitives that run one inner jaxpr on their operands, and the parameter that holds it."""


@dataclasses.dataclass
class Interpreter:
    """One analysis. `compositions`: names of jitted functions that combine two operators into one (see `_compose`)."""

    compositions: Collection[str] = ()
    visited: set[str] = dataclasses.field(default_factory=set)
    known: dict[Any, list[Flow]] = dataclasses.field(default_factory=dict)

    def run(self, jaxpr: Jaxpr | ClosedJaxpr, arguments: Sequence[Flow], path: str) -> list[Flow]:
        """Abstract outputs of `jaxpr` on abstract arguments; `path` says where it is nested."""
        key = (id(jaxpr), tuple(arguments), path)
        if key not in self.known:
            self.known[key] = self._run(jaxpr, arguments, path)
        return self.known[key]

    def _run(self, jaxpr: Jaxpr | ClosedJaxpr, arguments: Sequence[Flow], path: str) -> list[Flow]:
        flows: dict[Var, Flow] = {}
        body = jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr
        constants = jaxpr.consts if isinstance(jaxpr, ClosedJaxpr) else [1.0] * len(body.constvars)
        flows.update(zip(body.constvars, map(literal_flow, constants), strict=True))
        flows.update(zip(body.invars, arguments, strict=True))

        def read(atom: Var | Literal) -> Flow:
            return literal_flow(atom.val) if isinstance(atom, Literal) else flows[atom]

        for eqn in body.eqns:
            results = self._equation(eqn, [read(atom) for atom in eqn.invars], path)
            flows.update(zip(eqn.outvars, results, strict=True))
        return [read(atom) for atom in body.outvars]

    def _equation(self, eqn: JaxprEqn, operands: list[Flow], path: str) -> list[Flow]:
        name = eqn.primitive.name
        self.visited.add(name)

        def report(reason: str) -> Finding:
            return Finding(name, reason, source_info_util.summarize(eqn.source_info), path)

        if name in CALLS:
            label = eqn.params.get("name")
            inner = f"{path}/{name}" if label is None else f"{path}/{name}:{label}"
            if name in ("jit", "pjit") and label in self.compositions:
                return self._compose(eqn, operands, report, inner)
            return self.run(eqn.params[CALLS[name]], operands, inner)
        if name == "scan":
            return self._scan(eqn, operands, report, path)
        if name == "while":
            return self._while(eqn, operands, report, path)
        if name == "cond":
            return self._cond(eqn, operands, report, path)
        return apply_rule(eqn, operands, report)

    def _compose(self, eqn: JaxprEqn, operands: list[Flow], report: Report, path: str) -> list[Flow]:
        """A product of two operators is an operator, if the named function is linear in each and nothing else.

        An associative scan combines prefixes of different lengths, whose degrees differ along one array. The combine
        function is therefore proved on its own: one factor from each operand in every term. Called on anything else
        than two operators it is a call like any other.
        """
        terms = [index for index, flow in enumerate(operands) if not flow.fixed]
        if len(terms) != 2 or any(operands[i].broken or operands[i].degree != OPERATOR.degree for i in terms):
            return self.run(eqn.params["jaxpr"], operands, path)
        left, right = terms
        probe = [*operands]
        probe[left], probe[right] = STATE, OPERATOR.computed()
        results = self.run(eqn.params["jaxpr"], probe, path)
        bilinear = Degree(1, 1)
        if len(results) != 1 or results[0].kind is not Kind.TERM or results[0].degree != bilinear:
            finding = report("a composition must have one factor from each operator in every term")
            return [broken(*operands, *results, finding=finding, follows=True)] * len(eqn.outvars)
        return [OPERATOR.computed()]

    def _scan(self, eqn: JaxprEqn, operands: list[Flow], report: Report, path: str) -> list[Flow]:
        constants, carries = eqn.params["num_consts"], eqn.params["num_carry"]
        fixed, start, rows = (
            operands[:constants],
            operands[constants : constants + carries],
            operands[constants + carries :],
        )
        body, length = eqn.params["jaxpr"], eqn.params["length"]

        def step(carry: list[Flow]) -> list[Flow]:
            return self.run(body, [*fixed, *carry, *rows], f"{path}/scan")

        carry, after = _settle(start, lambda flows: step(flows)[:carries], report)
        first, second = step(carry), step(after)
        final = [_advance(a, b, length, report) for a, b in zip(carry, after, strict=True)]
        stacked = [
            join(a, b, report, "results of different steps, of different degree, share an array")
            for a, b in zip(first[carries:], second[carries:], strict=True)
        ]
        return final + stacked

    def _while(self, eqn: JaxprEqn, operands: list[Flow], report: Report, path: str) -> list[Flow]:
        tests, constants = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
        for_test, fixed, start = operands[:tests], operands[tests : tests + constants], operands[tests + constants :]
        body, test = eqn.params["body_jaxpr"], eqn.params["cond_jaxpr"]
        carry, after = _settle(start, lambda flows: self.run(body, [*fixed, *flows], f"{path}/while"), report)
        going = self.run(test, [*for_test, *after], f"{path}/while-test")[0]
        if going.follows:
            finding = report("the number of trips depends on the state")
            return [broken(flow, finding=finding, follows=True) for flow in after]
        loop = f"while@{source_info_util.summarize(eqn.source_info)}"
        return [_advance(a, b, loop, report) for a, b in zip(carry, after, strict=True)]

    def _cond(self, eqn: JaxprEqn, operands: list[Flow], report: Report, path: str) -> list[Flow]:
        which, arguments = operands[0], operands[1:]
        branches = [
            self.run(branch, arguments, f"{path}/branch{number}")
            for number, branch in enumerate(eqn.params["branches"])
        ]
        results = []
        for alternatives in zip(*branches, strict=True):
            joined = alternatives[0]
            for flow in alternatives[1:]:
                joined = join(joined, flow, report, "a branch chooses between values of different degree")
            if which.follows:
                joined = broken(joined, finding=report("a branch on the state chooses the value"), follows=True)
            elif not which.fixed:
                joined = broken(joined, which, finding=report("a branch on an argument chooses the value"))
            results.append(joined.computed())
        return results


def _settle(
    start: list[Flow], step: Callable[[list[Flow]], list[Flow]], report: Report
) -> tuple[list[Flow], list[Flow]]:
    """Carries whose kinds a further trip leaves alone, and the carries after one trip.

    A carry may gain the same degree at every trip: degrees are sums of degrees, so that two equal gains in a row make
    all gains equal. A carry that gains differently, or gains factors of the state, is broken.
    """
    carry = list(start)
    while True:
        after = step(carry)
        later = step(after)
        moved = [_carried(now, then, last, report) for now, then, last in zip(carry, after, later, strict=True)]
        if moved == carry:
            return carry, after
        carry = moved


def _carried(now: Flow, then: Flow, last: Flow, report: Report) -> Flow:
    """The carry that covers the next trip too: `now` itself once it is settled."""
    if now.broken:
        return broken(now, then)
    if then.broken:
        return broken(now, then)
    if now.kind is Kind.ZERO:
        return then
    if now.kind is Kind.CONSTANT and then.fixed:
        return now
    if now.kind is not then.kind or last.kind is not then.kind:
        return join(now, then if now.kind is not then.kind else last, report, "the loop carry changes its degree")
    if now.table != then.table:
        return dataclasses.replace(now, table=False)
    gains = [_gain(now.degree, then.degree), _gain(then.degree, last.degree)]
    if None in gains or gains[0] != gains[1]:
        return broken(now, finding=report(f"the loop carry goes from {now.degree} to {then.degree}"), follows=True)
    return now


def _gain(before: Degree, after: Degree) -> tuple[int, tuple[str, ...]] | None:
    """What a trip adds: operator factors and loops. None where it adds factors of the state or drops a loop."""
    if before.state != after.state or after.operator < before.operator:
        return None
    added = list(after.loops)
    for loop in before.loops:
        if loop not in added:
            return None
        added.remove(loop)
    return after.operator - before.operator, tuple(added)


def _advance(before: Flow, after: Flow, trips: int | str, report: Report) -> Flow:
    """The carry after all trips, from the carries before and after one. `trips`: a number, or the name of a loop
    whose number of trips is an argument."""
    if before.kind is not Kind.TERM or after.kind is not Kind.TERM:
        return after if before.kind is Kind.ZERO else (broken(before, after) if after.broken else before)
    gain = _gain(before.degree, after.degree)
    if gain is None:
        return broken(before, after, finding=report("the loop carry gains factors of the state"), follows=True)
    factors, loops = gain
    if not factors and not loops:
        return before
    if isinstance(trips, str):
        if factors + 2 * len(loops) != 2:
            return broken(before, finding=report(f"gains {factors} operator factors a trip, not two"), follows=True)
        degree = before.degree + Degree(0, 0, (trips,))
        return dataclasses.replace(before, degree=degree, table=False)
    degree = before.degree + Degree(0, trips * factors, tuple(f"{trips} x {loop}" for loop in loops if trips))
    steps = before.steps + trips * max(1, after.steps - before.steps)
    return dataclasses.replace(before, degree=degree, steps=steps, table=False)
