"""The strict reader takes what `json` writes of sound values, unchanged, and refuses what `json` would let through."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packs import strict_json
from packs.errors import PackFormatError
from tests.attacks.hostile_json import hostile_bytes

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
_VALUES = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=20,
)
_OBJECTS = st.dictionaries(_TEXT, _VALUES, max_size=5)


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max((_depth(item) for item in value.values()), default=0)
    if isinstance(value, list):
        return 1 + max((_depth(item) for item in value), default=0)
    return 0


@given(_OBJECTS)
def test_sound_objects_come_back_equal_from_both_forms(value: dict[str, Any]) -> None:
    if _depth(value) > strict_json.MAX_DEPTH:
        return
    for data in (strict_json.file_bytes(value), strict_json.canonical_bytes(value)):
        read = strict_json.loads(data, source="x")
        assert read == value
        assert strict_json.canonical_bytes(read) == strict_json.canonical_bytes(value)


@given(_OBJECTS)
def test_canonical_bytes_do_not_depend_on_the_order_of_keys(value: dict[str, Any]) -> None:
    turned = dict(reversed(value.items()))
    assert strict_json.canonical_bytes(turned) == strict_json.canonical_bytes(value)
    assert strict_json.file_bytes(turned) == strict_json.file_bytes(value)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_give_an_object_or_one_clear_line(data: bytes) -> None:
    _reads_or_refuses(data)


@given(_OBJECTS, st.data())
def test_damaged_objects_give_an_object_or_one_clear_line(value: dict[str, Any], data: st.DataObject) -> None:
    good = strict_json.file_bytes(value)
    at = data.draw(st.integers(0, len(good) - 1))
    _reads_or_refuses(good[:at] + data.draw(st.binary(max_size=3)) + good[at + 1 :])


def _reads_or_refuses(data: bytes) -> None:
    refusal = None
    try:
        value = strict_json.loads(data, source="x")
    except PackFormatError as error:
        refusal = str(error)
    if refusal is None:
        # Whatever is accepted is what json.loads reads too: nothing is reinterpreted.
        assert value == json.loads(data)
    else:
        assert refusal.startswith("x: ")
        assert refusal.isprintable()


def test_must_reject_set_is_refused_for_its_syntax_or_read_as_json_reads_it() -> None:
    good = strict_json.file_bytes({"description": "x", "version": "1.0.0", "boundary_ids": ["a"]})
    refused = set()
    for name, data in hostile_bytes(good):
        try:
            value = strict_json.loads(data, source="x")
        except PackFormatError:
            refused.add(name)
        else:
            assert value == json.loads(data), name
    # json.loads alone accepts each of these.
    for name in (
        "repeated key, other value last",
        "repeated key behind an escape",
        "value NaN",
        "value 1e999",
        "value 1e-999",
        "integer of 30 digits",
        "escaped low surrogate",
        "escaped high surrogate in a key",
        "17 levels of lists",
        "root []",
        "root null",
    ):
        assert name in refused, name


def test_depth_and_integer_bounds_are_exact() -> None:
    def nested(depth: int) -> bytes:
        return b'{"x":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"

    strict_json.loads(nested(strict_json.MAX_DEPTH), source="x")
    with pytest.raises(PackFormatError, match="nested deeper"):
        strict_json.loads(nested(strict_json.MAX_DEPTH + 1), source="x")
    for number in (2**53, -(2**53)):
        assert strict_json.loads(b'{"x":%d}' % number, source="x") == {"x": number}
    for number in (2**53 + 1, -(2**53) - 1):
        with pytest.raises(PackFormatError, match=r"beyond 2\*\*53"):
            strict_json.loads(b'{"x":%d}' % number, source="x")


def test_brackets_in_strings_do_not_count_as_nesting() -> None:
    value = {"x": "[" * 100 + '"' + "{" * 100 + "\\"}
    assert strict_json.loads(strict_json.file_bytes(value), source="x") == value


@pytest.mark.parametrize("text", ["0.0", "-0.0", "0e5", "5e-324", "1.7976931348623157e308"])
def test_extreme_but_sound_numbers_are_read(text: str) -> None:
    assert strict_json.loads(b'{"x":' + text.encode() + b"}", source="x") == {"x": float(text)}


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_writers_refuse_what_the_reader_refuses(value: float) -> None:
    with pytest.raises(ValueError, match="Out of range"):
        strict_json.canonical_bytes({"x": value})
    with pytest.raises(ValueError, match="Out of range"):
        strict_json.file_bytes({"x": value})


def test_surrogate_pairs_are_one_character() -> None:
    assert strict_json.loads(rb'{"x":"\ud83d\ude00"}', source="x") == {"x": "\U0001f600"}
