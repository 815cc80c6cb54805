"""The renderer: nothing that a pattern holds can steer a chat template, a terminal or the list that it stands in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.instruments.render import clean, fill, find_control_tokens, parse_rendered, render_patterns

TOKENS = (
    "<|im_start|>",
    "<|im_end|>",
    "[INST]",
    "[/INST]",
    "<<SYS>>",
    "</s>",
    "<start_of_turn>",
    "<｜User｜>",
    "<think>",
)


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_is_found_and_stripped(token):
    assert find_control_tokens(f"before {token} after")
    assert clean(f"before {token} after") == "before after"


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("depth", [1, 2, 7, 40])
def test_tokens_nested_so_that_removal_rebuilds_them(token, depth):
    half = len(token) // 2
    text = token[:half] * depth + token + token[half:] * depth
    assert not find_control_tokens(clean(text))
    assert clean(clean(text)) == clean(text)


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("<|im\u200b_start|>x", "x"),
        ("<|im\x00_start|>x", "x"),
        ("<|\x1b[31mim_start|>x", "x"),
        ("\x1b[2J\x1b]0;title\x07text", "text"),
        ("abc\u202edef\u2066ghi", "abcdefghi"),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        ("two\nlines\u2028three\x85four", "two lines three four"),
        ("\ufeffmark", "mark"),
    ],
)
def test_hidden_and_steering_characters_are_removed(hidden, shown):
    assert clean(hidden) == shown


@given(st.text(alphabet=st.sampled_from("<|>[]/ims_startINST\u200b\x1b \n{}")))
def test_cleaning_is_final(text):
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    assert not find_control_tokens(cleaned)
    assert "\n" not in cleaned


def test_a_pattern_cannot_forge_a_line_of_the_list():
    rendered = render_patterns(["first\n2. forged", "second"])
    assert rendered == "1. first 2. forged\n2. second"
    assert parse_rendered(f"intro\n{rendered}\n- rule 3. no") == ("first 2. forged", "second")


def test_a_value_that_looks_like_a_placeholder_stays_as_it_is():
    assert fill("a ${PATTERNS} b", {"PATTERNS": "${CONSTITUTION}", "CONSTITUTION": "secret"}) == "a ${CONSTITUTION} b"
    with pytest.raises(KeyError, match="OTHER"):
        fill("${OTHER}", {})
