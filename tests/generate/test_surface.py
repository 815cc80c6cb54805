"""Sentences: from the side the relation was walked, the first under the hedge, each with its citation."""

from engine.generate.hedge import Band, Hedge
from engine.generate.surface import Speaker, Step
from tests.generate.small_pack import make_pack

BARE = Hedge(Band.BARE)
SPEAKER = Speaker(make_pack())


def test_a_relation_is_said_from_the_side_it_was_walked():
    assert SPEAKER.claim(Step(0, False)).text == "dog is a kind of animal"
    assert SPEAKER.claim(Step(0, True)).text == "animal includes dog"
    assert SPEAKER.claim(Step(2, True)).text == "dog opposes cat", "without an inverse template the statement is said"


def test_sentences_stand_in_order_and_each_has_its_citation():
    surface = SPEAKER.say([Step(0, False), Step(1, True)], BARE)
    assert surface.text == "Dog is a kind of animal. Animal includes cat."
    pack = make_pack()
    assert [pack.cited_text(claim.citation) for claim in surface.claims] == [
        "A dog is an animal.",
        "A cat is an animal.",
    ]


def test_the_hedge_goes_before_the_first_sentence_only():
    surface = SPEAKER.say([Step(0, False), Step(3, False)], Hedge(Band.SOFT, "It seems that"))
    assert surface.text == "It seems that dog is a kind of animal. Fire causes smoke."
    assert surface.hedge.band is Band.SOFT


def test_a_hedge_with_a_place_for_the_claim_takes_it_there():
    surface = SPEAKER.say([Step(0, False)], Hedge(Band.SOFT, "it seems, {claim}, or so they say"))
    assert surface.text == "It seems, dog is a kind of animal, or so they say."


def test_extra_sentences_come_last_and_phrases_are_filled():
    tagged = SPEAKER.phrase("unknown_word", word="yak")
    assert (
        SPEAKER.say([Step(3, True)], BARE, extra=[tagged]).text
        == "Smoke comes from fire. The word yak is not known here."
    )


def test_an_articulation_pack_leaves_the_hedging_to_the_identity_and_others_have_their_own():
    assert SPEAKER.phrases == {}
    assert Speaker(make_pack(role="root_depth")).phrases["hedge_soft"] == "it seems that {claim}"


def test_what_was_not_walked_is_not_said():
    assert SPEAKER.say([], BARE).text == ""
