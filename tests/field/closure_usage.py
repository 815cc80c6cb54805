"""A detector of dropped closures: calls whose result holds a `Closure` that nobody looks at.

It reads source text, because what a program never looks at leaves no trace in what it computes. A call is fine if its
closure is bound to a name that is read afterwards, or if the whole result is handed on (returned, passed, bound and
read). It is dropped if the result is an expression statement, is subscripted away, or binds the closure to a name that
is never read.
"""

import ast
import dataclasses

PAIRS = frozenset(["propagate", "propagate_parallel", "propagate_program", "blocks_program", "parallel_program"])
"""Calls that return (state, closure)."""

WHOLES = frozenset(["walk", "walk_program", "measure_closure"])
"""Calls whose result is, or holds as a field, the closure."""


@dataclasses.dataclass(frozen=True)
class Dropped:
    call: str
    line: int
    reason: str


def dropped_closures(source: str) -> list[Dropped]:
    """Calls in `source` whose closure is dropped."""
    tree = ast.parse(source)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := _called(node)) in PAIRS | WHOLES:
            reason = _why_dropped(node, name, parents)
            if reason:
                found.append(Dropped(name, node.lineno, reason))
    return sorted(found, key=lambda item: item.line)


def _called(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _why_dropped(call: ast.Call, name: str, parents: dict) -> str | None:
    parent = parents[call]
    if isinstance(parent, ast.Expr):
        return "the result is thrown away"
    if name in PAIRS and isinstance(parent, ast.Subscript) and parent.value is call:
        return None if _selects_closure(parent) else "only the state is taken"
    if name in WHOLES and isinstance(parent, ast.Attribute):
        return None
    if isinstance(parent, ast.Assign) and parent.value is call:
        return _why_binding_dropped(parent, name, parents)
    return None


def _selects_closure(subscript: ast.Subscript) -> bool:
    return isinstance(subscript.slice, ast.Constant) and subscript.slice.value in (1, -1)


def _why_binding_dropped(assignment: ast.Assign, name: str, parents: dict) -> str | None:
    target = assignment.targets[0]
    if name in PAIRS and isinstance(target, ast.Tuple):
        target = target.elts[-1]
    if not isinstance(target, ast.Name):
        return None
    scope = assignment
    while not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module):
        scope = parents[scope]
    reads = [
        node
        for node in ast.walk(scope)
        if isinstance(node, ast.Name) and node.id == target.id and isinstance(node.ctx, ast.Load)
    ]
    if not reads:
        return f"{target.id!r} is never read"
    only_state = all(
        isinstance(parents[node], ast.Subscript) and parents[node].value is node and not _selects_closure(parents[node])
        for node in reads
    )
    return f"only the state of {target.id!r} is read" if name in PAIRS and only_state else None
