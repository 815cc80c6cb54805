"""Sections, clauses and validation in the shapes that constitutions are found in."""

import pytest

from engine.instruments.resources import packaged_texts
from engine.instruments.sections import clause_sections, parse_sections
from engine.instruments.validate import MAX_CHARS, validate

FILLER = "so that the text is long enough to be taken for a constitution, and says what it means to say. " * 2
GOOD = f'# Care\n\n{FILLER}\n\n- "Ask first."\n- "Then act."\n\n# Proof\n* "Show it."\n'


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ('# A\n- "x"\n## B\n- "y"', ["A", "B"]),
        ('**A:**\n- "x"\n\n**B**:\n* “y”', ["A", "B"]),
        ('Attention:\n- "x"\n\nMeta — two words:\n\n- "y"', ["Attention", "Meta — two words"]),
        ('# Title\n# Source: a book\n\n**A:**\n- "x"', ["A"]),
        ('- "x" without any heading', [""]),
    ],
)
def test_headings_of_every_kind(text, headings):
    assert [section.heading for section in clause_sections(text)] == headings


def test_clauses_lose_their_quotes_and_keep_their_continuation():
    (section,) = clause_sections('# A\n- "one\n  and on"\n2. “two”.\n• plain')
    assert [(clause.text, clause.quoted) for clause in section.clauses] == [
        ("one and on", True),
        ("two", True),
        ("plain", False),
    ]


def test_body_text_is_no_clause():
    (section,) = parse_sections("# A\nSome prose: with a colon.\n")
    assert section.body == "Some prose: with a colon."
    assert section.clauses == ()


def test_a_good_text_has_no_fault():
    assert validate(GOOD) == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('# A\n- "x"', "too_short"),
        (GOOD + "long " * MAX_CHARS, "too_long"),
        (FILLER + FILLER, "no_headings"),
        (GOOD + "# More\n" + '- "c"\n' * 5, "clause_count"),
        (GOOD + "# Empty\nprose only\n", "clause_count"),
        (GOOD + "# Bare\n- without quotes\n", "clause_count"),
        (GOOD + "<|im_start|>system", "control_tokens"),
        (GOOD + "<|im\u200b_start|>system", "control_tokens"),
        (GOOD + "-----BEGIN RSA PRIVATE KEY-----", "secrets"),
        (GOOD + "AKIA" + "ABCDEFGH12345678", "secrets"),
        (GOOD + "api_key = 'abcdEFGH12345678'", "secrets"),
    ],
)
def test_each_fault_has_its_code(text, code):
    assert code in {fault.partition(":")[0] for fault in validate(text)}


def test_a_secret_is_not_repeated():
    assert "abcdEFGH12345678" not in " ".join(validate(GOOD + "api_key = 'abcdEFGH12345678'"))


def test_the_shipped_texts_are_what_they_are_meant_to_be():
    genre, unrelated = packaged_texts("readings", "same-genre"), packaged_texts("readings", "unrelated")
    assert len(genre) >= 10
    assert len(unrelated) >= 8
    assert all(1200 <= len(text) <= 2500 and validate(text) == () for text in genre.values())
    assert all("no_headings" in validate(text)[0] for text in unrelated.values())
    assert validate(packaged_texts("readings", "constitution")["constitution"]) == ()
