"""One rule per primitive: the abstract value of its results from those of its operands.

What has no rule may not stand on a state path. A new primitive is added only after its mathematics was read
against DESIGN §5: movement of entries, products, sums and negation; nothing that decides, rounds or divides.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.extend.core import JaxprEqn, Literal, Var

from engine.safety._flow import CONSTANT, ZERO, Flow, Kind, Report, broken, join, multiply

OPAQUE = frozenset(
    [
        "pure_callback",
        "io_callback",
        "debug_callback",
        "ffi_call",
        "custom_call",
        "pallas_call",
        "tpu_custom_call",
        "run_state",
        "infeed",
        "outfeed",
    ]
)
"""What runs there is not in the jaxpr."""

MOVEMENT = frozenset(
    [
        "reshape",
        "transpose",
        "broadcast_in_dim",
        "squeeze",
        "expand_dims",
        "rev",
        "copy",
        "copy_p",
        "slice",
        "split",
        "stop_gradient",
        "name",
        "sharding_constraint",
        "device_put",
        "pvary",
        "pcast",
        "reshard",
        "all_gather",
        "all_gather_invariant",
        "ppermute",
        "all_to_all",
    ]
)
"""One operand in, its entries out, unchanged."""

SUMS = frozenset(["neg", "reduce_sum", "cumsum", "psum", "psum_invariant"])


def apply_rule(eqn: JaxprEqn, operands: Sequence[Flow], report: Report) -> list[Flow]:
    """Abstract results of an equation without inner jaxprs."""
    name, count = eqn.primitive.name, len(eqn.outvars)
    if name in OPAQUE or eqn.effects:
        return [broken(*operands, finding=report("opaque: what it returns cannot be analysed"))] * count
    if name == "optimization_barrier":
        return list(operands)
    return [RULES.get(name, _other)(eqn, operands, report)] * count


def literal_flow(value: Any) -> Flow:
    """A number or array known when the program is traced."""
    try:
        zero = not np.any(np.asarray(value))
    except (TypeError, ValueError):  # typed keys and other extended dtypes have no numpy form
        return CONSTANT
    return ZERO if zero else CONSTANT


def _dtype(atom: Var | Literal) -> Any:
    return getattr(atom.aval, "dtype", None)


def _move(eqn: JaxprEqn, operands: Sequence[Flow], report: Report) -> Flow:
    return operands[0]


def _sum(eqn: JaxprEqn, operands: Sequence[Flow], report: Report) -> Flow:
    return operands[0].computed()


def _add(eqn: JaxprEqn, operands: Sequence[Flow], report: Report) -> Flow:
    return join(operands[0], operands[1], report, "terms of different degree are added").computed()


def _gathered(eqn: JaxprEqn, operands: Sequence[Flow], report: Report) -> Flow:
    total = operands[0]
    for flow in operands[1:]:
        total = join(total, flow, report, "entries of different degree share an array")
    return total


def _convert(eqn: JaxprEqn, operands: Sequence[Flow], report: Report) -> Flow:
    operand = operands[0]
    if operand.kind is not Kind.TERM or _dtype(eqn.invars[0]) == _dtype(eqn.outvars[0]):
        return operand
    return broken(operand, finding=report(f"cast from {_dtype(eqn.invars[0])} to {_dtype(eqn.outvars[0])}"))


def _product(eqn: JaxprEqn, operands: Sequence[Flow], report: Report) -> Flow:
    result = multiply(operands[0], operands[1], report)
    if result.kind is Kind.TERM and _dtype(eqn.outvars[0]) != _dtype(eqn.invars[0]):
        return broken(result, finding=report(f"product accumulated in {_dtype(eqn.outvars[0])}"))
    return result


def _read(eqn: JaxprEqn, operands: Sequence[Flow], report: Report) -> Flow:
    """A read by index. An index computed from state or operator may read only an operator table handed in."""
    source, indices = operands[0], operands[1:]
    fill = eqn.params.get("fill_value")
    if fill is not None and not np.isnan(fill) and fill != 0 and not source.fixed:
        return broken(*operands, finding=report(f"entries outside are replaced by {fill}"))
    if not any(index.follows for index in indices):
        return source
    if source.kind is Kind.ZERO:
        return ZERO
    if source.table:
        return source
    if source.broken:
        return broken(*operands)
    what = "constants" if source.fixed else f"values of {source.degree}, no operator table"
    return broken(source, finding=report(f"an index computed from the state reads {what}"), follows=True)


def _write(eqn: JaxprEqn, operands: Sequence[Flow], report: Report) -> Flow:
    """A write by index, which may not depend on the state: where a value goes would decide what the state is."""
    target = operands[0]
    if eqn.primitive.name == "dynamic_update_slice":
        update, indices = operands[1], operands[2:]
    else:
        update, indices = operands[2], operands[1:2]
    result = join(target, update, report, "a value of different degree is written into the array")
    if any(index.follows for index in indices) and not result.broken:
        return broken(*operands, finding=report("an index computed from the state says where to write"))
    return result if eqn.primitive.name != "scatter-add" else result.computed()


def _other(eqn: JaxprEqn, operands: Sequence[Flow], report: Report) -> Flow:
    """Everything else: free on constants and off the state path, a finding as soon as a term goes through it."""
    if all(operand.fixed for operand in operands):
        return CONSTANT
    reached = any(operand.kind is Kind.TERM for operand in operands)
    chosen = eqn.primitive.name == "select_n" and operands[0].follows
    finding = report("not a product, a sum or a movement of entries") if reached or chosen else None
    return broken(*operands, finding=finding)


RULES: dict[str, Callable[[JaxprEqn, Sequence[Flow], Report], Flow]] = {
    **dict.fromkeys(MOVEMENT, _move),
    **dict.fromkeys(SUMS, _sum),
    **dict.fromkeys(["add", "sub", "add_any"], _add),
    **dict.fromkeys(["mul", "dot_general"], _product),
    **dict.fromkeys(["concatenate", "stack", "pad"], _gathered),
    **dict.fromkeys(["gather", "dynamic_slice"], _read),
    **dict.fromkeys(["scatter", "scatter-add", "dynamic_update_slice"], _write),
    "convert_element_type": _convert,
}
