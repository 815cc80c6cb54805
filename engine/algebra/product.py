"""Products, involutions and sandwiches of Cl(4,1).

Every product is one formula, `c[k] = sum_j signs[j, k] a[j] b[partner[j, k]]`, evaluated in blocks of lanes
(layout.py). The `*_kernel` functions are the private door for hot loops: they check nothing and their traces hold only
multiplication, addition, subtraction, sums and data movement, so that a data-flow proof sees through them. A loop that
keeps a state for many steps is faster in the resident layout (resident.py).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float
from numpy.typing import NDArray

from engine.algebra import tables
from engine.algebra.arguments import (
    MotorLike,
    MultivectorLike,
    broadcast_batch,
    coefficients,
    first_failure,
    is_concrete,
)
from engine.algebra.layout import from_blocks, in_full_blocks, to_blocks
from engine.algebra.resident import from_resident, resident_sandwich, to_resident
from engine.base.errors import NotAVersorError, ShapeError

# --- kernels: no checks, no casts, float64 in and out ---


def take_constant(x: Float[Array, "*batch n"], index: NDArray) -> Float[Array, "*batch m"]:
    """`x[..., index]` for a constant index inside the bounds, as one plain gather."""
    dimensions = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(x.ndim - 1)), collapsed_slice_dims=(x.ndim - 1,), start_index_map=(x.ndim - 1,)
    )
    return lax.gather(
        x,
        np.asarray(index, np.int32)[:, None],
        dimensions,
        slice_sizes=(*x.shape[:-1], 1),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )


def scale_constant(x: Float[Array, "*batch n"], factors: NDArray) -> Float[Array, "*batch n"]:
    """`x * factors` for constant factors of the last axis, without rank promotion."""
    return x * np.asarray(factors).reshape((1,) * (x.ndim - 1) + (-1,))


def blocked_product(
    a: Float[Array, "blocks n lanes"], b: Float[Array, "blocks n lanes"], table: tables.ProductTable
) -> Float[Array, "blocks n lanes"]:
    """A product in blocks of lanes: one constant gather of b and one multiplication by a for each coefficient of a."""
    total = None
    for j in range(a.shape[1]):
        if not table.signs[j].any():
            continue
        partners = jnp.swapaxes(take_constant(jnp.swapaxes(b, 1, 2), table.partner[j]), 1, 2)
        term = lax.slice_in_dim(a, j, j + 1, axis=1) * (partners * table.signs[j].reshape(1, -1, 1))
        total = term if total is None else total + term
    assert total is not None
    return total


def product_kernel(
    a: Float[Array, "*batch n"], b: Float[Array, "*batch n"], table: tables.ProductTable
) -> Float[Array, "*batch n"]:
    """The product of the table; factors and result in public order."""
    return from_blocks(blocked_product(to_blocks(a), to_blocks(b), table), a.shape[:-1])


def even_product_kernel(a: Float[Array, "*batch 16"], b: Float[Array, "*batch 16"]) -> Float[Array, "*batch 16"]:
    """Geometric product of even elements."""
    return product_kernel(a, b, tables.EVEN_GEOMETRIC)


def even_reverse_kernel(m: Float[Array, "*batch 16"]) -> Float[Array, "*batch 16"]:
    """Reverse of an even element: grade 2 changes sign."""
    return scale_constant(m, tables.EVEN_REVERSE_SIGNS)


def sandwich_kernel(v: Float[Array, "*batch 16"], f: Float[Array, "*batch 16"]) -> Float[Array, "*batch 16"]:
    """v f reverse(v) for even v and f."""
    blocks = to_blocks(v)
    half = blocked_product(blocks, to_blocks(f), tables.EVEN_GEOMETRIC)
    return from_blocks(blocked_product(half, blocks, tables.EVEN_TIMES_REVERSE), v.shape[:-1])


def turn_kernel(b: Float[Array, "*batch 10"], q: Float[Array, "*batch 5"]) -> Float[Array, "*batch 10"]:
    """The bivector part of b q, equally of q b, for a bivector and a 4-vector."""
    total = jnp.zeros_like(b)
    for j, position in enumerate(tables.CLOSURE[1:]):
        partner = tables.EVEN_GEOMETRIC.partner[position, tables.BIVECTORS] - 1
        signs = tables.EVEN_GEOMETRIC.signs[position, tables.BIVECTORS] * (partner >= 0) * (partner < 10)
        total = total + q[..., j : j + 1] * scale_constant(take_constant(b, partner.clip(0, 9)), signs)
    return total


def closure_kernel(f: Float[Array, "*batch 16"]) -> Float[Array, "*batch 6"]:
    """f reverse(f) - 1 on the six blades where it can be non-zero: 1, e1234, e1235, e1245, e1345, e2345."""
    table = tables.EVEN_TIMES_REVERSE
    numbers = [
        jnp.sum(scale_constant(f * take_constant(f, table.partner[:, k]), table.signs[:, k]), axis=-1, keepdims=True)
        for k in tables.CLOSURE
    ]
    return jnp.concatenate([numbers[0] - 1.0, *numbers[1:]], axis=-1)


def residual_kernel(f: Float[Array, "*batch 16"]) -> Float[Array, "*batch"]:
    """Closure residual; its gradient is undefined where it vanishes, so take it of `stop_gradient(f)`."""
    numbers = closure_kernel(f)
    return jnp.sqrt(jnp.sum(numbers * numbers, axis=-1))


def multiply_pseudoscalar_kernel(m: Float[Array, "*batch 16"]) -> Float[Array, "*batch 16"]:
    """The 16 odd coefficients of I m."""
    return scale_constant(take_constant(m, tables.PSEUDOSCALAR_PARTNER), tables.PSEUDOSCALAR_SIGNS)


def divide_pseudoscalar_kernel(odd: Float[Array, "*batch 16"]) -> Float[Array, "*batch 16"]:
    """The even m with I m = odd."""
    inverse = np.argsort(tables.PSEUDOSCALAR_PARTNER)
    return take_constant(scale_constant(odd, tables.PSEUDOSCALAR_SIGNS), inverse)


_INTERLEAVE = np.argsort(np.concatenate([tables.EVEN, tables.ODD]))


def join_parity_kernel(even: Float[Array, "*batch 16"], odd: Float[Array, "*batch 16"]) -> Float[Array, "*batch 32"]:
    """The multivector with these even and odd coefficients."""
    return take_constant(jnp.concatenate([even, odd], axis=-1), _INTERLEAVE)


def geometric_product_kernel(a: Float[Array, "*batch 32"], b: Float[Array, "*batch 32"]) -> Float[Array, "*batch 32"]:
    """Geometric product of multivectors."""
    return product_kernel(a, b, tables.GEOMETRIC)


def apply_kernel(v: Float[Array, "*batch 16"], x: Float[Array, "*batch 32"]) -> Float[Array, "*batch 32"]:
    """v x reverse(v): I is central, so that an odd x = I m turns as m does.

    In the resident matrices a translation of a far point is a sum; in the blade basis it would be a difference of
    terms of size |t|², rounded.
    """
    even = take_constant(x, tables.EVEN)
    odd = divide_pseudoscalar_kernel(take_constant(x, tables.ODD))
    both = jnp.concatenate([even[None], odd[None]])
    motors = to_resident(jnp.broadcast_to(v, both.shape))
    turned = from_resident(resident_sandwich(motors, to_resident(both)), both.shape[:-1])
    return join_parity_kernel(turned[0], multiply_pseudoscalar_kernel(turned[1]))


_even_product = jax.jit(even_product_kernel)
_sandwich = jax.jit(sandwich_kernel)
_apply = jax.jit(apply_kernel)
_geometric_product = jax.jit(geometric_product_kernel)
_outer_product = jax.jit(lambda a, b: product_kernel(a, b, tables.OUTER))
_left_contraction = jax.jit(lambda a, b: product_kernel(a, b, tables.LEFT_CONTRACTION))
_right_contraction = jax.jit(lambda a, b: product_kernel(a, b, tables.RIGHT_CONTRACTION))

_WITHOUT_E45 = np.array([i for i, name in enumerate(tables.BLADE_NAMES) if ("4" in name) == ("5" in name)])
_WITH_E4 = np.array([i for i, name in enumerate(tables.BLADE_NAMES) if "4" in name and "5" not in name])
_WITH_E5 = np.array([tables.BLADE_INDEX[tables.BLADE_NAMES[i].replace("4", "5")] for i in _WITH_E4])
_SQUARES = np.array([tables.blade_sign(mask, mask) for mask in tables.BLADES], np.float64)

# --- the public door: float64 and shapes are checked, batches broadcast ---


def _of_two(
    program: Callable[..., Array], a: object, b: object, width: int, names: tuple[str, str] = ("a", "b")
) -> Array:
    """The program on two checked and broadcast arrays of this width."""
    arrays = broadcast_batch((coefficients(a, width, names[0]), names[0]), (coefficients(b, width, names[1]), names[1]))
    return in_full_blocks(program, arrays, arrays[0].shape[:-1])


def geometric_product(a: MultivectorLike, b: MultivectorLike) -> Float[Array, "*batch 32"]:
    """Geometric product `a b`, (..., 32) and (..., 32) to (..., 32).

    Batches broadcast. Raises `PrecisionError` for another dtype than float64 and `ShapeError` for another width.
    """
    return _of_two(_geometric_product, a, b, 32)


def outer_product(a: MultivectorLike, b: MultivectorLike) -> Float[Array, "*batch 32"]:
    """Outer product: of parts of grades r and s it keeps grade r + s. Shapes and errors as the geometric product."""
    return _of_two(_outer_product, a, b, 32)


def left_contraction(a: MultivectorLike, b: MultivectorLike) -> Float[Array, "*batch 32"]:
    """Left contraction `a ⌋ b`: of grades r and s it keeps grade s - r (Dorst, "The inner products of GA", 2002)."""
    return _of_two(_left_contraction, a, b, 32)


def right_contraction(a: MultivectorLike, b: MultivectorLike) -> Float[Array, "*batch 32"]:
    """Right contraction `a ⌊ b`: of grades r and s it keeps grade r - s."""
    return _of_two(_right_contraction, a, b, 32)


def inner(x: MultivectorLike, y: MultivectorLike) -> Float[Array, "*batch"]:
    """Scalar part of `x y`, symmetric in x and y; (..., 32) and (..., 32) to (...).

    For two points it is minus half their squared distance, to rounding of |x|²: the pairs of blades that differ in e4
    and e5 alone, whose products nearly cancel for far points, enter by their sums and differences.
    `engine.algebra.squared_distance` is more accurate still.
    """
    left, right = broadcast_batch((coefficients(x, 32, "x"), "x"), (coefficients(y, 32, "y"), "y"))
    plain = scale_constant(take_constant(left * right, _WITHOUT_E45), _SQUARES[_WITHOUT_E45])
    a4, a5, b4, b5 = (take_constant(z, index) for z in (left, right) for index in (_WITH_E4, _WITH_E5))
    pairs = (a4 - a5) * (b4 + b5) + (a4 + a5) * (b4 - b5)
    return jnp.sum(plain, axis=-1) + jnp.sum(scale_constant(pairs, 0.5 * _SQUARES[_WITH_E4]), axis=-1)


def reverse(a: MultivectorLike) -> Float[Array, "*batch 32"]:
    """Reverse: the generators of every blade in the opposite order; (..., 32) to (..., 32)."""
    return scale_constant(coefficients(a, 32, "a"), tables.REVERSE_SIGNS)


def grade_involution(a: MultivectorLike) -> Float[Array, "*batch 32"]:
    """Grade involution: odd grades change sign."""
    return scale_constant(coefficients(a, 32, "a"), tables.INVOLUTION_SIGNS)


def clifford_conjugate(a: MultivectorLike) -> Float[Array, "*batch 32"]:
    """Clifford conjugate: reverse and grade involution together."""
    return scale_constant(coefficients(a, 32, "a"), tables.CONJUGATE_SIGNS)


def grade_projection(a: MultivectorLike, grade: int) -> Float[Array, "*batch 32"]:
    """The part of grade `grade` (0 to 5); other coefficients are zero."""
    if not 0 <= grade <= tables.DIMENSION:
        raise ShapeError(f"grade {grade} does not exist in Cl(4,1): 0 to {tables.DIMENSION}")
    return scale_constant(coefficients(a, 32, "a"), np.equal(tables.GRADES, grade).astype(np.float64))


def even_product(a: MotorLike, b: MotorLike) -> Float[Array, "*batch 16"]:
    """Geometric product of even elements, (..., 16) and (..., 16) to (..., 16); a product by 1 is exact."""
    return _of_two(_even_product, a, b, 16)


def even_reverse(m: MotorLike) -> Float[Array, "*batch 16"]:
    """Reverse of an even element, (..., 16) to (..., 16): the inverse of a motor."""
    return even_reverse_kernel(coefficients(m, 16, "m"))


def sandwich(v: MotorLike, f: MotorLike) -> Float[Array, "*batch 16"]:
    """`v f reverse(v)` for even elements, (..., 16) and (..., 16) to (..., 16)."""
    return _of_two(_sandwich, v, f, 16, names=("v", "f"))


def apply(v: MotorLike, x: MultivectorLike) -> Float[Array, "*batch 32"]:
    """`v x reverse(v)`: motors (..., 16) move multivectors (..., 32) of any grades."""
    arrays = broadcast_batch((coefficients(v, 16, "v"), "v"), (coefficients(x, 32, "x"), "x"))
    return in_full_blocks(_apply, arrays, arrays[0].shape[:-1])


def closure_residual(f: MotorLike) -> Float[Array, "*batch"]:
    """`‖f reverse(f) − 1‖`, (..., 16) to (...), from the six numbers that can be non-zero for an even element.

    NaN and infinity give NaN or infinity. The gradient at residual 0 is defined as 0.
    """
    numbers = closure_kernel(coefficients(f, 16, "f"))
    squared = jnp.sum(numbers * numbers, axis=-1)
    vanishes = squared == 0.0
    return jnp.where(vanishes, 0.0, jnp.sqrt(jnp.where(vanishes, 1.0, squared)))


def to_multivector(m: MotorLike) -> Float[Array, "*batch 32"]:
    """The even element as a multivector with zero odd coefficients, (..., 16) to (..., 32)."""
    even = coefficients(m, 16, "m")
    return join_parity_kernel(even, jnp.zeros_like(even))


def to_even(x: MultivectorLike) -> Float[Array, "*batch 16"]:
    """The even coefficients of a multivector, (..., 32) to (..., 16).

    Raises `NotAVersorError` if an odd coefficient is not zero (NaN included). While tracing that cannot be raised:
    there the result is NaN wherever odd content would have been dropped.
    """
    full = coefficients(x, 32, "x")
    has_odd = jnp.any(~(take_constant(full, tables.ODD) == 0.0), axis=-1)
    if is_concrete(has_odd) and (place := first_failure(has_odd)) is not None:
        raise NotAVersorError(
            f"the multivector at batch index {place} has odd coefficients; only even ones fit a motor"
        )
    even = take_constant(full, tables.EVEN)
    return jnp.where(has_odd[..., None], jnp.nan, even)
