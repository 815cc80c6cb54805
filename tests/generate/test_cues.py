"""Question cues: tables that hold what they must, where a cue stands, and what it asks of the concept beside it."""

import json
from functools import cache
from pathlib import Path

import pytest

from engine.generate import cues
from engine.generate.cues import AFTER, BEFORE, INSIDE, LANGUAGES, find, load_questions, questions_of
from engine.generate.intent import RELATION_CHECK, Intent
from engine.generate.readings import LONGEST_QUESTION
from engine.runtime.lexis import Lexis
from engine.runtime.runtime import Runtime
from packs.language.loader import load_language_pack
from packs.language.text import word_key
from tests.generate.small_pack import make_pack

LABELLED = Path(__file__).parents[1] / "language" / "labelled"


@cache
def lexis(language: str) -> Lexis:
    return Runtime.load("default_general_v1", language).lexis


def ask(language: str, text: str) -> Intent:
    return lexis(language).parser.parse(text, lexis(language).edges_of)


def asked(language: str, text: str) -> tuple[str | None, set[str]]:
    """The concept, and the directed relations of the first tier that the concept has an edge of."""
    intent, words = ask(language, text), lexis(language)
    if intent.unanswerable is not None or intent.unknown or intent.head is None or intent.head.lemma is None:
        return None, set()
    edges = words.edges_of(intent.head.lemma)
    region = intent.region(edges, words.lemmas)
    kinds = [kind.relation for kind in words.pack.relation_types]
    names = {
        f"{kinds[kind % len(kinds)]}{'>' if kind < len(kinds) else '<'}"
        for kind, tail in edges
        if (region.relations is None or kind in region.relations) and (region.words is None or tail in region.words)
    }
    return words.lemmas[intent.head.lemma], names


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_table_names_relations_and_kinds_that_its_pack_has(language: str) -> None:
    pack, table = load_language_pack(language), load_questions(language)
    assert questions_of(pack) is table
    relations = {kind.relation for kind in pack.relation_types}
    entries = {entry for cue in table.cues for side in cue.asks for entry in side}
    named = {entry[:-1] for entry in entries if not entry.startswith("?")}
    assert named == relations, "each relation can be asked for, and none that there is not"
    symmetric = {kind.relation for kind in pack.relation_types if kind.symmetric}
    assert {entry[:-1] for entry in entries if entry[-1] in "<>"}.isdisjoint(symmetric)
    assert all(any(cue.asks) == (cue.section != cues.REFUSE) for cue in table.cues)
    assert all(cue.items[0] is not None and cue.literals > 0 for cue in table.cues)


@pytest.mark.parametrize("language", LANGUAGES)
def test_cues_of_a_section_are_tried_from_the_longest(language: str) -> None:
    order = [
        (["refuse", "specific", "general"].index(cue.section), -cue.literals) for cue in load_questions(language).cues
    ]
    assert order == sorted(order)


def test_a_pack_of_another_language_has_no_table() -> None:
    assert questions_of(make_pack()) is None
    assert load_questions("en").markers <= {word_key(word.word) for word in load_language_pack("en").function_words}


def cue(words: str) -> cues.Cue:
    return cues._cue("specific", f"{words}\ta>\tb<\t?c", "here")


def test_a_cue_is_found_with_its_gap_and_its_sides() -> None:
    keys = ["tell", "me", "what", "a", "lamp", "is", "for", "at", "night"]
    (found, *others) = find(cue("what * is|are for"), keys)
    assert not others
    assert (found.words, found.gap) == ((2, 5, 6), range(3, 5))
    assert [found.side(0, 1), found.side(3, 5), found.side(8, 9)] == [BEFORE, INSIDE, AFTER]
    assert not list(find(cue("what * is|are for"), ["what", "is", "for"]))
    assert [found.words for found in find(cue("is"), ["is", "it", "or", "is", "it", "not"])] == [(0,), (3,)]


@pytest.mark.parametrize("line", ["no columns", "* first\t.\t.\ta>", "word\t.\t.\tcauses", "\t.\t.\ta>"])
def test_a_line_that_is_no_cue_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="here"):
        cues._cue("specific", line, "here")


QUESTIONS = [
    ("en", "Remind me once more: what exactly is a pilgrim?", "pilgrim", "is_a>"),
    ("en", "Which things bring about pain?", "pain", "causes<"),
    ("en", "So what does a fire bring about, usually?", "fire", "causes>"),
    ("en", "Whose opposite is war?", "war", "opposes>"),
    ("en", "On what is knowledge founded?", "knowledge", "grounds<"),
    ("en", "Remind me: what is a hammer used for?", "hammer", "used_for>"),
    ("en", "Whereabouts would you find a sailor, please?", "sailor", "located_in>"),
    ("en", "By whom is bread baked?", "bread", "agent_of<"),
    ("en", "What can nobody make bread without?", "bread", "requires>"),
    ("he", "תגידי לי בבקשה, מהו הפחד?", "פַּחַד", "is_a>"),
    ("he", "היכן נמצא הדייג?", "דַּיָּג", "located_in>"),
    ("grc", "Φράσον μοι τί ἐστιν ἡ ὑπομονή.", "ὑπομονή", "is_a>"),
    ("grc", "Ποῦ οἰκεῖ ὁ ἱερεύς;", "ἱερεύς", "located_in>"),
]


@pytest.mark.parametrize(("language", "text", "concept", "relation"), QUESTIONS)
def test_a_question_is_read_through_its_frame(language: str, text: str, concept: str, relation: str) -> None:
    head, relations = asked(language, text)
    assert head == concept
    assert relation in relations


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "How much is a hammer?"),
        ("en", "When was the bridge built?"),
        ("he", "כמה ספרים יש?"),
        ("grc", "Πόσοι ἵπποι;"),
    ],
)
def test_what_no_relation_can_say_is_refused_with_the_words_that_ask_it(language: str, text: str) -> None:
    intent = ask(language, text)
    assert intent.unanswerable is not None
    assert intent.unanswerable.split()[0] in text


def test_yes_or_no_is_asked_between_two_words_in_their_order() -> None:
    intent = ask("en", "Can there be justice without law?")
    assert intent.kind == RELATION_CHECK
    assert intent.head is not None
    assert intent.tail is not None
    assert (intent.head.text, intent.tail.text) == ("justice", "law")


def test_a_text_too_long_for_a_question_is_not_searched() -> None:
    short, long = (f"{'please ' * count}is there an enemy of pain" for count in (3, LONGEST_QUESTION))
    assert ask("en", short).relation == "opposes"
    assert ask("en", long).relation is None


@cache
def counts(language: str, name: str) -> tuple[float, float]:
    """Shares of a labelled set that can be answered with what was asked, and of what was refused: before the walk."""
    right, total, refused, idle = 0, 0, 0, 0
    for line in (LABELLED / name).read_text("utf-8").splitlines():
        item = json.loads(line)
        head, relations = asked(language, item["prompt"])
        if item["answerable"]:
            total += 1
            wanted = item["relation"]
            right += head is not None and any(wanted in (None, relation[:-1]) for relation in relations)
        else:
            idle += 1
            refused += head is None or not relations
    return right / total, refused / idle


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("prefix", ["", "second_", "third_", "fourth_", "fifth_"])
def test_labelled_sets_are_read_no_worse_than_they_were(language: str, prefix: str) -> None:
    answered, refused = counts(language, f"{prefix}{language}.jsonl")
    assert answered >= 0.90
    assert refused >= 0.95
