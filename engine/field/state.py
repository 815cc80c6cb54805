"""The state of the field: a batch of unit motors, even by storage."""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from engine.algebra.arguments import MotorLike, MultivectorLike, coefficients, first_failure
from engine.algebra.product import to_even
from engine.base.errors import NotAVersorError
from engine.field.closure import TOLERANCE, measure_closure


def _motor_coefficients(value: object) -> Array:
    return coefficients(value, 16, "motor")


class FieldState(eqx.Module):
    """A batch of field states, `motor` of shape (..., 16), float64.

    A state is a versor if and only if it is even and its closure residual vanishes: an even F of Cl(4,1) with
    F reverse(F) = 1 carries vectors to vectors (docs/field-closure.md). Evenness is the storage's; the residual is
    measured by whatever moves the state. Raises `PrecisionError` for another dtype and `ShapeError` for another width.
    """

    motor: Float[Array, "*batch 16"] = eqx.field(converter=_motor_coefficients)

    def __init__(self, motor: MotorLike) -> None:
        self.motor = motor

    @classmethod
    def from_multivector(cls, x: MultivectorLike) -> "FieldState":
        """The state with the even coefficients of `x`, (..., 32), if it is even and grade-preserving.

        cosθ + sinθ·e123 has residual 0 and is no versor: odd content is refused, however small. Raises
        `NotAVersorError` with the batch index. While tracing nothing can be raised: there odd content gives NaN, which
        the closure of the next propagation reports.
        """
        state = cls(to_even(x))
        if isinstance(state.motor, jax.core.Tracer):
            return state
        closure = measure_closure(state.motor)
        if (place := first_failure(~closure.ok)) is not None:
            residual = float(closure.max_residual[place])
            raise NotAVersorError(
                f"the multivector at batch index {place} is no unit versor: "
                f"residual {residual:.3g}, at most {TOLERANCE:g} is accepted"
            )
        return state
