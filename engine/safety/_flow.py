"""What the hot-path analysis knows about one array: an abstract value, and how two of them combine.

The analysis is an abstract interpretation over homogeneous degrees. An array that may become the outgoing state is a
`TERM`: every one of its entries is a sum of products with the same number of factors from the incoming state and from
the operators. Whatever else has touched it makes it `BROKEN`, with the finding that says where.
"""

import dataclasses
import enum
from collections.abc import Callable


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    """One operation that may not stand on a state path: primitive, reason, source line and nesting of jaxprs."""

    primitive: str
    reason: str
    source: str
    path: str

    def __str__(self) -> str:
        return f"{self.primitive} at {self.source} (in {self.path}): {self.reason}"


class Kind(enum.Enum):
    """Zero is neutral in sums; a constant depends on no argument; a term is homogeneous; broken is neither."""

    ZERO = "zero"
    CONSTANT = "constant"
    TERM = "term"
    BROKEN = "broken"


@dataclasses.dataclass(frozen=True)
class Degree:
    """Factors from the incoming state and from operators; `loops` names loops whose trip count is an argument."""

    state: int
    operator: int
    loops: tuple[str, ...] = ()

    def __add__(self, other: "Degree") -> "Degree":
        loops = tuple(sorted(self.loops + other.loops))
        return Degree(self.state + other.state, self.operator + other.operator, loops)

    def __str__(self) -> str:
        loops = "".join(f" + 2 per trip of {name}" for name in self.loops)
        return f"state^{self.state} operator^{self.operator}{loops}"


@dataclasses.dataclass(frozen=True)
class Flow:
    """The abstract value of one variable.

    `table`: operator entries exactly as they were handed in, data movement aside. `follows`: the value depends on the
    state or an operator, by data or by control. `steps`: loop iterations that advanced it. `findings`: why it broke.
    """

    kind: Kind
    degree: Degree = Degree(0, 0)
    table: bool = False
    follows: bool = False
    steps: int = 0
    findings: frozenset[Finding] = frozenset()

    @property
    def broken(self) -> bool:
        return self.kind is Kind.BROKEN

    @property
    def fixed(self) -> bool:
        """Known when the program is traced: depends on no argument."""
        return self.kind in (Kind.ZERO, Kind.CONSTANT)

    def computed(self) -> "Flow":
        """The same degree after arithmetic: no longer a table as it was handed in."""
        return dataclasses.replace(self, table=False)


ZERO = Flow(Kind.ZERO)
CONSTANT = Flow(Kind.CONSTANT)
STATE = Flow(Kind.TERM, Degree(1, 0), follows=True)
OPERATOR = Flow(Kind.TERM, Degree(0, 1), table=True, follows=True)

MAX_FINDINGS = 16
"""A broken value remembers at most this many findings, the smallest in order, so that reports stay readable."""


def broken(*sources: Flow, finding: Finding | None = None, follows: bool | None = None) -> Flow:
    """A broken value that inherits the findings of `sources` and adds `finding`."""
    findings = frozenset().union(*(source.findings for source in sources))
    if finding is not None:
        findings |= {finding}
    if len(findings) > MAX_FINDINGS:
        findings = frozenset(sorted(findings)[:MAX_FINDINGS])
    depends = any(source.follows for source in sources) if follows is None else follows
    return Flow(Kind.BROKEN, follows=depends, findings=findings)


Report = Callable[[str], Finding]
"""Makes the finding of the equation at hand from a reason, where there is something to find."""


def join(left: Flow, right: Flow, report: Report, reason: str) -> Flow:
    """Two values that share an array, or are added: zero is neutral, degrees must agree, else broken for `reason`."""
    if left.kind is Kind.ZERO:
        return right
    if right.kind is Kind.ZERO:
        return left
    if left.broken or right.broken:
        return broken(left, right, finding=None if left.broken and right.broken else report(reason))
    if left.kind is Kind.CONSTANT and right.kind is Kind.CONSTANT:
        return CONSTANT
    if left.kind is right.kind and left.degree == right.degree:
        return dataclasses.replace(left, table=left.table and right.table, steps=max(left.steps, right.steps))
    return broken(left, right, finding=report(f"{reason}: {_name(left)} with {_name(right)}"))


def multiply(left: Flow, right: Flow, report: Report) -> Flow:
    """A product: degrees add; a zero factor gives zero; a broken factor breaks the product."""
    if left.kind is Kind.ZERO or right.kind is Kind.ZERO:
        return ZERO
    if left.broken or right.broken:
        if (left.broken and right.broken) or left.fixed or right.fixed:
            return broken(left, right)
        return broken(left, right, finding=report("a factor is no product of state, operator and constants"))
    if left.kind is Kind.CONSTANT:
        return right.computed()
    if right.kind is Kind.CONSTANT:
        return left.computed()
    return Flow(Kind.TERM, left.degree + right.degree, follows=True, steps=max(left.steps, right.steps))


def _name(flow: Flow) -> str:
    return str(flow.degree) if flow.kind is Kind.TERM else flow.kind.value
