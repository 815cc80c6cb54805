"""Double-word arithmetic against exact fractions, inside compiled programs, where a compiler may contract."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.algebra.pairs import HALF_BITS, Pair, from_pair, halves, split, sum_of_products, to_pair, two_sum

FORMATS = pytest.mark.parametrize("dtype", ["float32", "float64"])
BITS = {"float32": 24, "float64": 53}


def numbers(width: int) -> st.SearchStrategy[float]:
    """Numbers of a format without underflow or overflow in products of halves."""
    return st.floats(min_value=-(2.0**40), max_value=2.0**40, width=width).filter(lambda x: x == 0 or abs(x) > 2.0**-40)


def exact(value: object) -> Fraction:
    return Fraction(float(np.asarray(value)))


@FORMATS
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_sum_loses_nothing(dtype: str, data: st.DataObject) -> None:
    a, b = (jnp.asarray(data.draw(numbers(int(dtype[5:]))), dtype) for _ in range(2))
    pair = jax.jit(two_sum)(a, b)
    assert exact(pair.high) + exact(pair.low) == exact(a) + exact(b)
    assert pair.high == a + b


@FORMATS
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_halves_add_up_and_their_products_are_exact(dtype: str, data: st.DataObject) -> None:
    a, b = (jnp.asarray(data.draw(numbers(int(dtype[5:]))), dtype) for _ in range(2))
    (upper, lower), (other_upper, other_lower) = jax.jit(split)(a), jax.jit(split)(b)
    assert exact(upper) + exact(lower) == exact(a)
    for x, y in ((upper, other_upper), (upper, other_lower), (lower, other_upper)):
        assert exact(x * y) == exact(x) * exact(y)
    assert HALF_BITS[dtype] * 2 >= BITS[dtype]


@FORMATS
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_sum_of_products_errs_by_a_few_squared_roundoffs(dtype: str, data: st.DataObject) -> None:
    width, count = int(dtype[5:]), data.draw(st.integers(1, 8))

    def pair() -> Pair:
        high, low = (jnp.asarray(data.draw(numbers(width)), dtype) for _ in range(2))
        return two_sum(high, low * jnp.asarray(2.0 ** -(BITS[dtype] + 42), dtype))

    pairs = [(pair(), pair()) for _ in range(count)]
    found = jax.jit(lambda pairs: sum_of_products([(halves(x), halves(y)) for x, y in pairs]))(pairs)
    value = [[exact(x.high) + exact(x.low) for x in both] for both in pairs]
    expected, size = sum(x * y for x, y in value), sum(abs(x * y) for x, y in value)
    # 3 sums, 2 additions of errors and 3 products of second order for each term, in units of 2^-2p.
    assert abs(exact(found.high) + exact(found.low) - expected) <= 8 * (count + 1) * size * Fraction(2) ** (
        -2 * BITS[dtype] + 2
    )


@FORMATS
def test_the_usual_split_would_be_spoilt_by_contraction(dtype: str) -> None:
    """Why `split` multiplies by a power of two: by 2^k + 1, a fused subtraction returns the number itself."""
    a = exact(np.asarray(1 + 2.0 ** (1 - BITS[dtype]), dtype))
    factor = 2 ** HALF_BITS[dtype] + 1
    assert factor * a - (factor - 1) * a == a


@pytest.mark.parametrize(("dtype", "bits"), [("float32", 48), ("float64", 53)])
def test_a_float64_survives_to_the_bits_that_a_pair_holds(dtype: str, bits: int) -> None:
    values = jnp.asarray(np.random.default_rng(0).normal(size=500))
    back = from_pair(to_pair(values, dtype))
    assert float(jnp.max(jnp.abs(back - values) / jnp.abs(values))) <= 2.0 ** (1 - bits) * (bits < 53)
