"""A compensated state: versors of two numbers for each entry, for devices without fast float64, or for longer ways.

float32 alone breaks ‖F reverse(F) − 1‖ < 1e-6 within tens of steps. Two float32 hold 48 bits and keep it for a million;
two float64 go further than float64. The state stays in the resident basis (engine.algebra.resident), where similarities
keep an exact zero. The closure is measured in the same arithmetic at every step and reported as everywhere.

Nothing is repaired. Bringing a pair into its form (`two_sum` of high and low) does not change the number it stands for,
and consists of sums, so that the hot-path proof counts factors here as well. Figures: docs/field-closure.md.
"""

from dataclasses import dataclass
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int
from numpy.typing import NDArray

from engine.algebra.arguments import MotorLike, coefficients
from engine.algebra.lanes import CONJUGATE_SIGNS
from engine.algebra.pairs import Halves, Pair, from_pair, halves, sum_of_products, to_pair
from engine.algebra.resident import QUATERNION_SIGNS, enter, leave
from engine.base.errors import PrecisionError, ShapeError
from engine.field.closure import Closure, Watch, begin, finish, watch
from engine.field.state import FieldState

PRECISIONS = {"float32x2": "float32", "float64x2": "float64"}
"""Name of a precision, and the format of which it takes two."""

Columns: TypeAlias = Float[Array, "16 rows"]


class CompensatedState(eqx.Module):
    """Versors as pairs, entry by entry of the resident basis: `high` + `low`, (16, rows) of float32 or of float64."""

    high: Columns
    low: Columns

    @classmethod
    def from_state(cls, state: FieldState, precision: str) -> "CompensatedState":
        """The state (rows, 16) in `precision`, float32x2 or float64x2.

        Raises `PrecisionError` for another name and `ShapeError` for more than one batch axis.
        """
        return cls(*_columns(state.motor, precision, "state.motor"))

    def to_state(self) -> FieldState:
        """The state rounded to float64."""
        return FieldState(leave(from_pair(Pair(self.high, self.low))).T)

    @property
    def precision(self) -> str:
        """float32x2 or float64x2."""
        return f"{self.high.dtype.name}x2"


def propagate_compensated(state: CompensatedState, versors: MotorLike) -> tuple[CompensatedState, Closure]:
    """Move `state` by `versors` (steps, 16), float64, which all rows share; also the closure of every state.

    Versors become pairs of the state's format. The pair of results is that of `propagate`: whoever calls this looks at
    the closure. `versor_norm` and `versors_closed` are not measured here. Raises `PrecisionError` and `ShapeError`.
    """
    rows = coefficients(versors, 16, "versors")
    if rows.ndim != 2:
        raise ShapeError(f"versors have shape {rows.shape}; (steps, 16) is needed")
    return compensated_program(state, Pair(*_columns(rows, state.precision, "versors")))


def _columns(motors: MotorLike, precision: str, name: str) -> Pair:
    if precision not in PRECISIONS:
        raise PrecisionError(f"unknown precision {precision!r}: one of {', '.join(PRECISIONS)}")
    rows = coefficients(motors, 16, name)
    if rows.ndim != 2:
        raise ShapeError(f"{name} has shape {rows.shape}; (rows, 16) is needed")
    return to_pair(enter(rows.T), PRECISIONS[precision])


def _propagate(state: CompensatedState, versors: Pair) -> tuple[CompensatedState, Closure]:
    start = Pair(state.high, state.low)

    def step(carry: tuple[Pair, Watch], row: tuple[Int[Array, ""], Pair]) -> tuple[tuple[Pair, Watch], None]:
        motor, seen = carry
        number, versor = row
        moved = sandwich_pairs(Pair(versor.high[:, None], versor.low[:, None]), motor)
        return (moved, watch(seen, number, *squares_of_pairs(moved))), None

    steps = Pair(versors.high.T, versors.low.T)
    numbers = jnp.arange(1, steps.high.shape[0] + 1)
    (moved, seen), _ = lax.scan(step, (start, begin(*squares_of_pairs(start))), (numbers, steps))
    return CompensatedState(*moved), finish(seen, jnp.ones_like(seen.norm))


compensated_program = jax.jit(_propagate)
"""The compiled program behind `propagate_compensated`."""


def sandwich_pairs(versor: Pair, motor: Pair) -> Pair:
    """V F reverse(V), (16, rows) each; V may be one column."""
    v = halves(Pair(*(jnp.broadcast_to(part, motor.high.shape) for part in versor)))
    half = _HALF.of(v, halves(motor))
    return _BACK.of(halves(half), v)


def squares_of_pairs(motor: Pair) -> tuple[Float[Array, " rows"], Float[Array, " rows"]]:
    """Squared residual, infinity where not finite, and squared coefficient norm of each row; no gradient flows."""
    still = Pair(*map(lax.stop_gradient, motor))
    f = halves(still)
    # Of F reverse(F) the diagonal entry is a quaternion that should be 1, and two real numbers should be 0.
    diagonal, real = _DIAGONAL.of(f, f), _REAL.of(f, f)
    one = jnp.asarray(np.eye(4)[0][:, None], still.high.dtype)
    numbers = (diagonal.high - one) + diagonal.low
    zeros = real.high + real.low
    square = jnp.sum(jnp.square(numbers), axis=0) + 2.0 * jnp.sum(jnp.square(zeros), axis=0)
    norm = 0.5 * jnp.sum(jnp.square(still.high), axis=0)
    return jnp.where(square < jnp.inf, square, jnp.inf), norm


@dataclass(frozen=True)
class Bilinear:
    """Sums of products of entries: number n is the sum over t of signs[t, n] * x[left[t, n]] * y[right[t, n]]."""

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    signs: NDArray[np.float64]

    def of(self, x: Halves, y: Halves) -> Pair:
        """The numbers (n, rows) of entries (16, rows)."""
        terms = []
        for left, right, signs in zip(self.left, self.right, self.signs, strict=True):
            signed = jnp.asarray(signs[:, None], x.high.dtype)
            terms.append((Halves(*(part[left] * signed for part in x)), Halves(*(part[right] for part in y))))
        return sum_of_products(terms)


def _at(quaternion: int, row: int, column: int) -> int:
    """Place of a component of a matrix entry among the 16."""
    return 4 * quaternion + 2 * row + column


def _bilinear(numbers: list[list[tuple[int, int, float]]]) -> Bilinear:
    left, right, signs = (
        np.array(part) for part in zip(*(zip(*number, strict=True) for number in numbers), strict=True)
    )
    return Bilinear(left.T.astype(np.int32), right.T.astype(np.int32), signs.T.astype(np.float64))


def _matrix_product(signs: NDArray, flipped: bool) -> Bilinear:
    """2 x 2 matrices of quaternions whose product `signs` stand for; `flipped`: by [[d, b], [c, a]] of the second."""

    def second(quaternion: int, row: int, column: int) -> int:
        return _at(quaternion, 1 - column, 1 - row) if flipped else _at(quaternion, row, column)

    places = [(k, row, column) for k in range(4) for row in (0, 1) for column in (0, 1)]
    return _bilinear(
        [
            [(_at(q, row, m), second(q ^ k, m, column), float(signs[q, k])) for m in (0, 1) for q in range(4)]
            for k, row, column in places
        ]
    )


_HALF = _matrix_product(QUATERNION_SIGNS, flipped=False)
_BACK = _matrix_product(CONJUGATE_SIGNS, flipped=True)
"""By the reverse of [[a, b], [c, d]], which is [[d', b'], [c', a']] with conjugate quaternions."""

_DIAGONAL = _bilinear(
    [
        [(_at(q, 0, m), _at(q ^ k, 1, 1 - m), float(CONJUGATE_SIGNS[q, k])) for m in (0, 1) for q in range(4)]
        for k in range(4)
    ]
)
_REAL = _bilinear([[(_at(q, row, 0), _at(q, row, 1), 1.0) for q in range(4)] for row in (0, 1)])
