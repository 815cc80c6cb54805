"""Bands and phrases: chosen by thresholds and claim strength, an axis's own phrase before the generic one."""

import pytest

from engine.generate.hedge import Band, choose_hedge, hedge_band
from packs.identity.loader import AxisHedge, SurfacePreferences


def preferences(strength="qualified", **axis_hedges):
    return SurfacePreferences(
        hedge_threshold_strong=0.4,
        hedge_threshold_soft=0.5,
        qualified_band_high=0.75,
        preferred_hedge_strong="strong",
        preferred_hedge_soft="soft",
        preferred_qualifier="qualifier",
        claim_strength=strength,
        axis_hedges=axis_hedges,
    )


@pytest.mark.parametrize(
    ("alignment", "band"),
    [
        (0.0, Band.STRONG),
        (0.39999, Band.STRONG),
        (0.4, Band.SOFT),
        (0.49999, Band.SOFT),
        (0.5, Band.QUALIFIER),
        (0.74999, Band.QUALIFIER),
        (0.75, Band.BARE),
        (1.0, Band.BARE),
    ],
)
def test_the_four_bands_of_a_qualified_pack(alignment, band):
    assert hedge_band(preferences(), alignment) is band
    assert choose_hedge(preferences(), alignment).phrase == ("" if band is Band.BARE else band.value)


@pytest.mark.parametrize("strength", ["balanced", "affirmative"])
def test_only_a_qualified_pack_qualifies(strength):
    assert hedge_band(preferences(strength), 0.6) is Band.BARE
    assert hedge_band(preferences(strength), 0.45) is Band.SOFT


def test_no_preferences_say_everything_bare():
    assert choose_hedge(None, 0.1).band is Band.BARE


def test_an_alignment_that_is_not_a_number_has_no_band():
    with pytest.raises(ValueError, match="not a number"):
        hedge_band(preferences(), float("nan"))


def test_the_smallest_deviating_axis_with_a_phrase_of_its_own_speaks():
    own = preferences(b=AxisHedge(strong="b strong"), c=AxisHedge(strong="c strong", qualifier="c qualifies"))
    assert choose_hedge(own, 0.1, ["c", "b", "a"]).phrase == "b strong"
    assert choose_hedge(own, 0.1, ["c", "b", "a"]).axis == "b"
    assert choose_hedge(own, 0.6, ["c", "b"]).phrase == "c qualifies"
    assert choose_hedge(own, 0.45, ["c", "b"]).phrase == "soft"
    assert choose_hedge(own, 0.1, ["a"]).axis is None
    assert choose_hedge(own, 0.9, ["c"]).phrase == ""


def test_a_language_with_phrases_of_its_own_says_those():
    spoken = {"hedge_strong": "אולי", "hedge_strong_b": "ב", "qualifier_qualified": "לפי המקורות"}
    assert choose_hedge(preferences(), 0.1, phrases=spoken).phrase == "אולי"
    assert choose_hedge(preferences(), 0.1, ["b"], spoken).phrase == "ב"
    assert choose_hedge(preferences(), 0.6, phrases=spoken).phrase == "לפי המקורות"
    assert choose_hedge(preferences(), 0.45, phrases=spoken).phrase == "soft"
