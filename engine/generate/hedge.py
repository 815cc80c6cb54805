"""Hedges: how an identity's alignment is voiced (DESIGN §4). Pure choice on host numbers; nothing here feeds back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from packs.identity.loader import SurfacePreferences


class Band(StrEnum):
    """The four bands of alignment, from least to most aligned as a `qualified` pack sees them."""

    STRONG = "strong"
    SOFT = "soft"
    QUALIFIER = "qualifier"
    BARE = "bare"


@dataclass(frozen=True)
class Hedge:
    """The band, the phrase that voices it (empty when bare), and the deviating axis whose own phrase it is, if any."""

    band: Band
    phrase: str = ""
    axis: str | None = None


def hedge_band(preferences: SurfacePreferences | None, alignment: float) -> Band:
    """Return the band of an alignment: below strong, below soft, below the qualified band if the pack qualifies, bare.

    Raises `ValueError` for an alignment that is not a number: a state that cannot be read is refused, not hedged.
    """
    if alignment != alignment:
        raise ValueError("an alignment that is not a number has no band")
    if preferences is None:
        return Band.BARE
    if alignment < preferences.hedge_threshold_strong:
        return Band.STRONG
    if alignment < preferences.hedge_threshold_soft:
        return Band.SOFT
    if alignment < preferences.qualified_band_high and preferences.claim_strength == "qualified":
        return Band.QUALIFIER
    return Band.BARE


def choose_hedge(
    preferences: SurfacePreferences | None,
    alignment: float,
    deviating: Sequence[str] = (),
    phrases: Mapping[str, str] | None = None,
) -> Hedge:
    """Return the hedge of an alignment.

    `deviating` are the ids of axes below the pack's threshold: the smallest id with a phrase of its own for the band
    replaces the generic phrase. `phrases` are a language pack's own wordings, used instead of the identity pack's
    (which are English) where it has them: `hedge_strong_<axis>`, `hedge_strong_<claim strength>`, `hedge_strong`, and
    likewise for `hedge_soft` and `qualifier`.
    """
    band = hedge_band(preferences, alignment)
    if band is Band.BARE or preferences is None:
        return Hedge(band)
    spoken = dict(phrases or {})
    key = "qualifier" if band is Band.QUALIFIER else f"hedge_{band}"
    for axis in sorted(deviating):
        own = preferences.axis_hedges.get(axis)
        phrase = getattr(own, band.value) if own is not None else None
        if phrase is not None or f"{key}_{axis}" in spoken:
            worded = (f"{key}_{axis}", f"{key}_{preferences.claim_strength}", key)
            return Hedge(band, next((spoken[name] for name in worded if name in spoken), phrase or ""), axis)
    generic = {
        Band.STRONG: preferences.preferred_hedge_strong,
        Band.SOFT: preferences.preferred_hedge_soft,
        Band.QUALIFIER: preferences.preferred_qualifier,
    }[band]
    return Hedge(band, spoken.get(f"{key}_{preferences.claim_strength}", spoken.get(key, generic)))
