"""What a prompt asks: concept, kinds of relation by tier, second word, and what stands in the way."""

import pytest

from engine.generate.intent import OPEN, RELATION_CHECK, IntentParser
from tests.generate.small_pack import (
    ANIMAL,
    CAT,
    CAUSES,
    DOG,
    FIRE,
    IS_A,
    OPPOSES,
    PANDA,
    SMOKE,
    TYPES,
    WORDS,
    make_index,
    make_pack,
)

PACK = make_pack()
PARSER = IntentParser(PACK, make_index(PACK))
EDGES = {
    DOG: [(IS_A, ANIMAL), (OPPOSES, CAT)],
    FIRE: [(CAUSES, SMOKE)],
    SMOKE: [(TYPES + CAUSES, FIRE)],
    CAT: [(TYPES + OPPOSES, DOG)],
}


def head_of(intent):
    return None if intent.head is None else intent.head.lemma


@pytest.mark.parametrize(
    ("text", "kind", "head"),
    [
        ("What is a dog?", "definition", DOG),
        ("what is the DOG", "definition", DOG),
        ("Please, what is a dog?", "definition", DOG),
        ("Could you please give me an example of a red panda", OPEN, PANDA),
        ("What is a red panda?", "definition", PANDA),
        ("What are dogs?", "what", DOG),
        ("What causes smoke?", "cause", SMOKE),
        ("What does fire cause?", "effect", FIRE),
        ("Why smoke?", "why", SMOKE),
        ("A dog.", OPEN, DOG),
    ],
)
def test_the_asked_concept_and_kind(text, kind, head):
    intent = PARSER.parse(text)
    assert (intent.kind, head_of(intent)) == (kind, head)


def test_a_question_kind_prefers_the_relations_that_name_it_first():
    tiers = PARSER.tiers_answering("definition")
    assert tiers[0] == {IS_A}
    assert tiers[1] == {OPPOSES, TYPES + OPPOSES}
    assert PARSER.tiers_answering("cause") == (frozenset({TYPES + CAUSES}),)
    assert PARSER.tiers_answering("colour") == ()


def test_the_first_tier_that_the_concept_has_an_edge_of_is_asked_for():
    definition = PARSER.parse("What is a dog?")
    assert definition.region(EDGES[DOG], WORDS).relations == {IS_A}
    only_opposes = [(OPPOSES, CAT)]
    assert definition.region(only_opposes, WORDS).relations == {OPPOSES, TYPES + OPPOSES}
    assert PARSER.parse("What causes smoke?").region(EDGES[SMOKE], WORDS).relations == {TYPES + CAUSES}


def test_a_relation_check_names_both_words_and_the_direction():
    intent = PARSER.parse("Does fire cause smoke?")
    assert (intent.kind, head_of(intent), intent.tail.lemma, intent.relation) == (
        RELATION_CHECK,
        FIRE,
        SMOKE,
        "causes",
    )
    region = intent.region(EDGES[FIRE], WORDS)
    assert region.words == {SMOKE}
    assert region.relations == {CAUSES}
    backwards = PARSER.parse("Does smoke cause fire?").region(EDGES[SMOKE], WORDS)
    assert backwards.relations == {CAUSES}, "smoke has no such edge, so that the walk will end there"


def test_a_symmetric_relation_is_asked_from_either_side():
    region = PARSER.parse("Does the cat oppose the dog?").region(EDGES[CAT], WORDS)
    assert region.relations == {OPPOSES, TYPES + OPPOSES}


def test_two_words_after_a_verb_are_a_relation_check_even_without_a_pattern():
    intent = PARSER.parse("Is a dog an animal?")
    assert (intent.kind, head_of(intent), intent.tail.lemma) == (RELATION_CHECK, DOG, ANIMAL)
    assert intent.region(EDGES[DOG], WORDS).words == {ANIMAL}


def test_unknown_words_are_named_where_they_stand_in_the_way():
    asked = PARSER.parse("What is a unicorn?")
    assert asked.head.lemma is None
    assert asked.unknown == ("unicorn",)
    aside = PARSER.parse("The dog barks")
    assert (head_of(aside), aside.unknown) == (DOG, ("barks",))


def test_a_negation_is_never_left_out():
    assert PARSER.parse("what is a dog please").kind == "definition"
    assert PARSER.parse("what is a dog not").kind != "definition"
