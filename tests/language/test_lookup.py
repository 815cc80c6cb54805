"""Look-up: exact forms, productive affixes, several words, and spellings that would mean two things."""

import pytest

from packs.errors import LanguagePackError
from packs.language.lookup import FormIndex, Reading
from packs.language.model import Form, FunctionWord, Lexeme, Operator
from packs.language.text import tokenise

ZERO = (0.0, 0.0, 0.0)


def lexeme(lemma: str) -> Lexeme:
    return Lexeme(lemma, "noun", "", "general", "")


OPERATORS = (
    Operator("plural", "inflection", "number=plural", "", False, ZERO),
    Operator("article", "affix", "definite=yes", "ה-", True, ZERO),
    Operator("conjunction", "affix", "and=yes", "ו-", True, ZERO),
)


def hebrew_index() -> FormIndex:
    return FormIndex(
        [lexeme("אֱמֶת"), lexeme("הַר"), lexeme("בֵּית סֵפֶר")],
        [Form("אמיתות", "אֱמֶת", ("plural",))],
        OPERATORS,
        [FunctionWord("של", "preposition", ZERO)],
    )


def read(index: FormIndex, word: str) -> Reading | None:
    return index.read(tokenise(word)[0].key)


def test_a_form_carries_its_operators() -> None:
    assert read(hebrew_index(), "אֲמִיתוֹת") == Reading(0, ("plural",))


def test_productive_affixes_are_stripped_and_named_in_class_order() -> None:
    assert read(hebrew_index(), "והאמיתות") == Reading(0, ("plural", "article", "conjunction"))


def test_a_known_word_is_not_stripped() -> None:
    assert read(hebrew_index(), "הר") == Reading(1, ())


def test_what_is_left_must_be_known_and_long_enough() -> None:
    assert read(hebrew_index(), "הכלב") is None
    assert read(hebrew_index(), "וה") is None


def test_three_affixes_are_too_many() -> None:
    assert read(hebrew_index(), "והואמת") is None


def test_the_longest_known_run_of_words_is_read_first() -> None:
    matches = hebrew_index().scan(tokenise("של בית ספר אמת זר"))
    assert [(m.start, m.end, m.reading.lemma if m.reading else None) for m in matches] == [
        (0, 1, None),
        (1, 3, 2),
        (3, 4, 0),
        (4, 5, None),
    ]
    assert [m.is_function_word for m in matches] == [True, False, False, False]


def test_a_function_word_under_an_affix_is_a_function_word() -> None:
    assert hebrew_index().scan(tokenise("ושל"))[0].function_word == 0


@pytest.mark.parametrize(
    ("lemmas", "forms", "functions", "message"),
    [
        (["rose", "rose"], [], [], "duplicate lemma rose"),
        (["rose", "Rosé"], [], [], "fold to rose"),
        (["rose"], [("roses", "lily", ())], [], "belongs to no lemma"),
        (["rose", "roses"], [("Roses", "rose", ())], [], "already means roses"),
        (["rose", "lily"], [("r", "rose", ()), ("R", "lily", ())], [], "already means rose"),
        (["rose"], [("roses", "rose", ("dual",))], [], "unknown operator dual"),
        (["rose"], [("roses", "rose", ("article", "plural"))], [], "not in the order"),
        (["rose"], [], ["Rose"], "function word Rose is a form of rose"),
        (["rose"], [], ["of", "OF"], "function word OF stands twice"),
    ],
)
def test_a_spelling_that_could_mean_two_things_is_refused(
    lemmas: list[str], forms: list[tuple[str, str, tuple[str, ...]]], functions: list[str], message: str
) -> None:
    with pytest.raises(LanguagePackError, match=message):
        FormIndex(
            [lexeme(lemma) for lemma in lemmas],
            [Form(*form) for form in forms],
            OPERATORS,
            [FunctionWord(word, "particle", ZERO) for word in functions],
        )


def test_two_spellings_of_one_lemma_may_coincide() -> None:
    index = FormIndex([lexeme("sheep")], [Form("sheep", "sheep", ("plural",))], OPERATORS, [])
    assert index.read("sheep") == Reading(0, ())
