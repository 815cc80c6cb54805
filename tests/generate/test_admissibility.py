"""Regions compose associatively with a neutral element; modes are named, never guessed."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from engine.base.errors import ConfigError
from engine.generate.admissibility import UNCONSTRAINED, Region, admissibility, lower_regions, padded_size

SETS = st.none() | st.frozensets(st.integers(0, 9), max_size=5)
TURN = tuple(float(i == 0) + 0.1 * (i == 5) for i in range(16))
SHIFT = tuple(float(i == 0) - 0.5 * (i in (3, 4)) for i in range(16))
FRAMES = st.lists(st.sampled_from([TURN, SHIFT]), max_size=2).map(tuple)
# Plain parts: type-checked constructors use `random`, which Hypothesis does not want inside a strategy.
PARTS = st.tuples(st.sampled_from(["", "a", "b"]), SETS, SETS, FRAMES)


@given(PARTS, PARTS, PARTS)
def test_composition_is_associative(a, b, c):
    x, y, z = Region(*a), Region(*b), Region(*c)
    assert (x & y) & z == x & (y & z)


@given(PARTS)
def test_the_unconstrained_region_is_neutral(parts):
    region = Region(*parts)
    assert region & UNCONSTRAINED == region
    assert UNCONSTRAINED & region == region


@given(PARTS, PARTS)
def test_a_composed_region_allows_what_both_allow(a, b):
    x, y = Region(*a), Region(*b)
    both = lower_regions([x, y, x & y], 10, 10)
    words, relations = np.asarray(both.words), np.asarray(both.relations)
    assert np.array_equal(words[2], words[0] & words[1])
    assert np.array_equal(relations[2], relations[0] & relations[1])


def test_lowering_pads_with_neutral_regions_and_refuses_what_is_not_there():
    table = lower_regions([Region(words=frozenset({1}))], 4, 3)
    assert table.words.shape == (8, 4)
    assert np.asarray(table.words)[0].tolist() == [False, True, False, False]
    assert np.asarray(table.words)[1:].all()
    with pytest.raises(ConfigError, match="word 4"):
        lower_regions([Region("r", words=frozenset({4}))], 4, 3)
    with pytest.raises(ConfigError, match="16 finite numbers"):
        lower_regions([Region("r", frame=((1.0, np.nan, *[0.0] * 14),))], 4, 3)


@pytest.mark.parametrize("mode", ["", "Destination", "nearest", "none"])
def test_an_unknown_mode_is_refused(mode):
    with pytest.raises(ConfigError, match="unknown admissibility mode"):
        admissibility(mode)


@pytest.mark.parametrize("values", [{"margin": np.nan}, {"margin": -1.0}, {"frame_angle": 0.0}, {"frame_angle": 4.0}])
def test_numbers_that_make_no_check_are_refused(values):
    with pytest.raises(ConfigError):
        admissibility("frame", **values)


@given(st.integers(0, 10**6), st.sampled_from([1, 8, 256]))
def test_padded_sizes_hold_and_waste_less_than_half(count, least):
    size = padded_size(count, least=least)
    assert size >= count
    assert size == least or size < 2 * count
