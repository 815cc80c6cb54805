"""Unicode rules: folding, words, refused characters, scripts."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packs.language.text import INVISIBLE_MARKS, find_forbidden_character, fold, in_word, scripts_of, tokenise, word_key

SIGNS = st.text(st.sampled_from("ab1'\"’׳״ אבגםαβς ֿ́-_\n“"), max_size=12)
WRITTEN = st.text(st.characters(exclude_categories=("Cs", "Cn", "Co")), max_size=24)


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("Truth", "truth"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("אֱמֶת", "אמת"),
        ("שָׁלוֹם", "שלומ"),
        ("ארץ", "ארצ"),
        ("ἀλήθεια", "αληθεια"),
        ("Ἀλήθειᾳ", "αληθεια"),
        ("λόγος", "λογοσ"),
        ("ΛΟΓΟΣ", "λογοσ"),
        ("it’s", "it's"),
    ],
)
def test_folding_drops_case_marks_and_final_forms(written: str, key: str) -> None:
    assert fold(written) == key


@given(WRITTEN)
def test_folding_is_idempotent(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(WRITTEN)
def test_folding_does_not_depend_on_the_normalisation_of_its_input(text: str) -> None:
    assert fold(unicodedata.normalize("NFD", text)) == fold(unicodedata.normalize("NFC", text))


@given(WRITTEN)
def test_tokens_are_slices_of_the_text_in_order_and_without_overlap(text: str) -> None:
    end = 0
    for token in tokenise(text):
        assert token.start >= end
        assert text[token.start : token.end] == token.surface
        assert token.key == fold(token.surface)
        end = token.end


def spelled_out(text: str) -> list[tuple[int, int]]:
    """Where the words of a text stand, character by character."""
    inside = [in_word(text, offset) for offset in range(len(text))]
    starts = [at for at, yes in enumerate(inside) if yes and not (at and inside[at - 1])]
    ends = [at + 1 for at, yes in enumerate(inside) if yes and not (at + 1 < len(text) and inside[at + 1])]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if fold(text[start:end])]


@given(st.one_of(WRITTEN, SIGNS))
def test_words_are_runs_of_characters_that_belong_to_words(text: str) -> None:
    assert [(token.start, token.end) for token in tokenise(text)] == spelled_out(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What is truth?", ["What", "is", "truth"]),
        ("the sailor's 'sail'", ["the", "sailor's", "sail"]),
        ("well-known", ["well", "known"]),
        ('חז"ל אמרו', ['חז"ל', "אמרו"]),
        ('the "open" sea', ["the", "open", "sea"]),
        ("בֵּית־סֵפֶר", ["בֵּית", "סֵפֶר"]),
        ("—…!", []),
    ],
)
def test_words_of_a_text(text: str, words: list[str]) -> None:
    assert [token.surface for token in tokenise(text)] == words


def test_the_key_of_several_words_has_single_spaces() -> None:
    assert word_key("Open — SEA") == "open sea"


@pytest.mark.parametrize(
    ("text", "offset", "kind"),
    [
        ("a\x00b", 1, "control character"),
        ("a\nb", 1, "control character"),
        ("ab\u202ec", 2, "bidirectional control"),
        ("\u2066a", 0, "bidirectional control"),
        ("a\u200bb", 1, "invisible format character"),
        ("a\u00adb", 1, "invisible format character"),
        ("a\ufeff", 1, "invisible format character"),
        ("a\u2028b", 1, "line separator"),
        ("a\ue000", 1, "private-use character"),
        ("a\U000e0001", 1, "invisible format character"),
        ("a\u034fb", 1, "invisible mark"),
        ("a\u3164b", 1, "invisible mark"),
        ("a\u2003b", 1, "unusual space"),
        ("a\ud800", 1, "surrogate"),
    ],
)
def test_characters_that_no_string_may_hold(text: str, offset: int, kind: str) -> None:
    assert find_forbidden_character(text) == (offset, kind)


@pytest.mark.parametrize("text", ["plain text, 12 – “quoted”", "אֱמֶת וָחֶסֶד", "ἀλήθεια· τί ἐστιν;"])
def test_ordinary_text_has_no_forbidden_character(text: str) -> None:
    assert find_forbidden_character(text) is None


@pytest.mark.parametrize(
    ("text", "scripts"),
    [
        ("truth 12!", {"Latin"}),
        ("pаypal", {"Latin", "Cyrillic"}),
        ("אמת", {"Hebrew"}),
        ("ἀλήθεια", {"Greek"}),
        ("真", {"Other"}),
        ("5 µm", {"Latin"}),
        ("12", set()),
    ],
)
def test_scripts_of_a_text(text: str, scripts: set[str]) -> None:
    assert scripts_of(text) == scripts


def test_every_character_of_unicode_is_refused_by_its_category_alone() -> None:
    refused = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
    for character in map(chr, range(sys.maxunicode + 1)):
        wanted = (character != " " and unicodedata.category(character) in refused) or ord(character) in INVISIBLE_MARKS
        assert (find_forbidden_character(f"a{character}") is not None) == wanted, hex(ord(character))
