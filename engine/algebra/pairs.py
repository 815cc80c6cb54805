"""Double-word arithmetic: a number as the unevaluated sum of two of its format, `high` + `low`.

Two float32 hold 48 bits, two float64 106. Everything is built from sums and products that are exact, or whose rounding
error is found exactly, so that it does not matter whether a compiler contracts a product and a sum to one instruction:

* `split` multiplies by a power of two only. Veltkamp's split multiplies by 2^k + 1, and a contracted subtraction then
  returns the number itself.
* Halves have half the bits, so that products of them are exact, and adding one rounds once, contracted or not.
* `two_sum` is Knuth's: the rounding error of a sum, by sums alone.

Only sums, differences and products occur, by which the hot-path proof counts factors. Sources: Dekker, Numer. Math. 18
(1971) 224; Knuth, TAOCP 2, 4.2.2; Joldes, Muller and Popescu, ACM TOMS 44 (2017) 15.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
from jaxtyping import Array, Float

Number: TypeAlias = Float[Array, "..."]

HALF_BITS = {"float32": 12, "float64": 27}
"""Bits that the low half of a split holds, at most."""


class Pair(NamedTuple):
    """`high` + `low`, where `low` is at most half a unit in the last place of `high`."""

    high: Number
    low: Number


class Halves(NamedTuple):
    """A pair made ready to be multiplied: `high` = `upper` + `lower`, each of half the bits, exactly."""

    upper: Number
    lower: Number
    high: Number
    low: Number


def two_sum(a: Number, b: Number) -> Pair:
    """a + b: the rounded sum and its rounding error, exactly."""
    total = a + b
    taken = total - a
    return Pair(total, (a - (total - taken)) + (b - taken))


def split(a: Number) -> tuple[Number, Number]:
    """Upper and lower half of the bits of `a`, whose sum is `a`; not for numbers within 2^28 of the largest."""
    scaled = a * 2.0 ** HALF_BITS[a.dtype.name]
    upper = (a + scaled) - scaled
    return upper, a - upper


def halves(pair: Pair) -> Halves:
    """A pair as `sum_of_products` takes it."""
    return Halves(*split(pair.high), *pair)


def sum_of_products(terms: Iterable[tuple[Halves, Halves]]) -> Pair:
    """Sum of x * y over `terms`, of which there is at least one.

    With u the unit roundoff of the format, the error is a few u² times the sum of the absolute products.
    """
    total: Number | None = None
    rest: Number | None = None
    for x, y in terms:
        for part in (x.upper * y.upper, x.upper * y.lower, x.lower * y.upper):
            if total is None:
                total = part
                continue
            total, error = two_sum(total, part)
            rest = error if rest is None else rest + error
        assert rest is not None
        rest = rest + (x.lower * y.lower + (x.high * y.low + x.low * y.high))
    assert total is not None
    assert rest is not None
    return two_sum(total, rest)


def to_pair(value: Float[Array, "*shape"], dtype: str) -> Pair:
    """A float64 array as a pair of `dtype`: exact for float64, to 48 bits for float32."""
    high = value.astype(dtype)
    return Pair(high, (value - high.astype(value.dtype)).astype(dtype))


def from_pair(pair: Pair) -> Float[Array, "*shape"]:
    """The pair rounded to float64."""
    return pair.high.astype(jnp.float64) + pair.low.astype(jnp.float64)
