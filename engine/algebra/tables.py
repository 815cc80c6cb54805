"""Blades, signs and products of Cl(4,1), derived from its signature with NumPy at import; nothing is typed in.

A basis blade is a bit mask (bit i stands for e_{i+1}), so that the product of two blades is the exclusive or of their
masks times a sign: the parity of the swaps that sort the generators, times the squares of those that meet (Dorst,
Fontijne, Mann, "Geometric Algebra for Computer Science", 2007, chapter 19). Public arrays order blades by grade, then
lexicographically.
"""

from collections.abc import Callable
from itertools import combinations
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Keep: TypeAlias = Callable[[int, int, int], bool]

SIGNATURE: Final = (1, 1, 1, 1, -1)
"""Squares of e1..e5."""

DIMENSION: Final = len(SIGNATURE)


def blade_sign(left: int, right: int) -> int:
    """Sign of the geometric product of two basis blades given as masks."""
    swaps = sum((left >> shift & right).bit_count() for shift in range(1, DIMENSION))
    metric = 1
    for axis, square in enumerate(SIGNATURE):
        if left & right & 1 << axis:
            metric *= square
    return (-1) ** swaps * metric


def _ordered_blades() -> tuple[int, ...]:
    """All masks by grade, then lexicographically by their generators."""
    generators = range(DIMENSION)
    return tuple(
        sum(1 << axis for axis in axes) for grade in range(DIMENSION + 1) for axes in combinations(generators, grade)
    )


def _frozen(values: object, dtype: type) -> NDArray:
    array: NDArray = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


BLADES: Final = _ordered_blades()
"""Mask of each of the 32 coefficients, in public order."""

BLADE_NAMES: Final = tuple(
    "1" if not mask else "e" + "".join(str(axis + 1) for axis in range(DIMENSION) if mask >> axis & 1)
    for mask in BLADES
)
BLADE_INDEX: Final = {name: position for position, name in enumerate(BLADE_NAMES)}
"""Position of a blade name such as "e12" among the 32 coefficients."""

GRADES: Final = _frozen([mask.bit_count() for mask in BLADES], np.int64)
PSEUDOSCALAR: Final = (1 << DIMENSION) - 1


class ProductTable(NamedTuple):
    """A product as c[k] = sum over j of signs[j, k] a[j] b[partner[j, k]], in public order."""

    partner: NDArray
    signs: NDArray


def product_table(blades: tuple[int, ...], keep: Keep = lambda r, s, t: True) -> ProductTable:
    """The product on a closed set of blades; `keep(r, s, t)` says whether grades r times s may give grade t."""
    partner = [[blades.index(j ^ k) for k in blades] for j in blades]
    signs = [
        [blade_sign(j, j ^ k) * keep(j.bit_count(), (j ^ k).bit_count(), k.bit_count()) for k in blades] for j in blades
    ]
    return ProductTable(_frozen(partner, np.int32), _frozen(signs, np.float64))


GEOMETRIC: Final = product_table(BLADES)
OUTER: Final = product_table(BLADES, lambda r, s, t: t == r + s)
LEFT_CONTRACTION: Final = product_table(BLADES, lambda r, s, t: t == s - r)
RIGHT_CONTRACTION: Final = product_table(BLADES, lambda r, s, t: t == r - s)

REVERSE_SIGNS: Final = _frozen([(-1.0) ** (grade * (grade - 1) // 2) for grade in GRADES], np.float64)
INVOLUTION_SIGNS: Final = _frozen([(-1.0) ** grade for grade in GRADES], np.float64)
CONJUGATE_SIGNS: Final = _frozen(REVERSE_SIGNS * INVOLUTION_SIGNS, np.float64)

# --- the even subalgebra: 16 coefficients ---

EVEN: Final = _frozen([i for i, mask in enumerate(BLADES) if mask.bit_count() % 2 == 0], np.int64)
"""Positions of the 16 even coefficients among the 32, in public order."""

ODD: Final = _frozen([i for i, mask in enumerate(BLADES) if mask.bit_count() % 2 == 1], np.int64)

EVEN_BLADES: Final = tuple(BLADES[i] for i in EVEN)
EVEN_GRADES: Final = _frozen(GRADES[EVEN], np.int64)
EVEN_NAMES: Final = tuple(BLADE_NAMES[i] for i in EVEN)
EVEN_INDEX: Final = {name: position for position, name in enumerate(EVEN_NAMES)}
EVEN_REVERSE_SIGNS: Final = _frozen(REVERSE_SIGNS[EVEN], np.float64)

EVEN_GEOMETRIC: Final = product_table(EVEN_BLADES)

EVEN_TIMES_REVERSE: Final = ProductTable(
    EVEN_GEOMETRIC.partner,
    _frozen(EVEN_GEOMETRIC.signs * EVEN_REVERSE_SIGNS[EVEN_GEOMETRIC.partner], np.float64),
)
"""The product a reverse(b) of even elements."""

CLOSURE: Final = _frozen(np.flatnonzero((EVEN_GRADES == 0) | (EVEN_GRADES == 4)), np.int64)
"""Positions of the six blades (grades 0 and 4) on which f reverse(f) of an even f can be non-zero."""

BIVECTORS: Final = _frozen(np.flatnonzero(EVEN_GRADES == 2), np.int64)
"""Positions of e12, e13, ..., e45 among the 16 even coefficients."""

# --- the pseudoscalar I = e12345 is central and squares to -1: odd = I times even ---

PSEUDOSCALAR_PARTNER: Final = _frozen([EVEN_BLADES.index(BLADES[i] ^ PSEUDOSCALAR) for i in ODD], np.int64)
"""For each odd coefficient, the position (of 16) of the even blade that I turns into it."""

PSEUDOSCALAR_SIGNS: Final = _frozen([blade_sign(PSEUDOSCALAR, BLADES[i] ^ PSEUDOSCALAR) for i in ODD], np.float64)
"""Sign s in I * even_blade = s * odd_blade, for each odd coefficient."""


def dense_table(names: tuple[str, ...] = BLADE_NAMES) -> NDArray:
    """Structure constants `t[i, j, k]` with c_k = sum t[i, j, k] a_i b_j over the blades named (a closed set)."""
    masks = [BLADES[BLADE_INDEX[name]] for name in names]
    table = np.zeros((len(masks),) * 3)
    for i, left in enumerate(masks):
        for j, right in enumerate(masks):
            table[i, j, masks.index(left ^ right)] = blade_sign(left, right)
    return table
