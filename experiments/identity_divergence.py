"""What does an identity pack change? Three packs and an identity-stripped baseline over the same prompts.

`python -m experiments.identity_divergence [--language en ...] [--prompts FILE] [--json]` prints, for each language:

* divergence: the share of answered prompts whose surface differs between two packs;
* causal: the share whose surface differs from the identity-stripped baseline's, and the null pair, the baseline
  against itself, which must be 0;
* coherence: the share of answered rows whose surface carries the hedge that the pack's own bands ask for at the row's
  alignment and claim strength. The rule is written out here once more, apart from the engine's, as the check of it.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from engine.base.command import run_command
from engine.base.errors import ConfigError
from engine.base.origin import verify_one_root
from packs.identity.loader import IdentityPack, SurfacePreferences

PACKS = ("default_general_v1", "precision_first_v1", "generosity_first_v1")
LANGUAGES = ("en", "he", "grc")


@dataclass(frozen=True)
class Divergence:
    """The readings of one language. Shares are of prompts that every side answered; None where there was none."""

    language: str
    prompts: int
    answered: int
    divergence: Mapping[str, float | None]
    causal: Mapping[str, float | None]
    stripped_vs_stripped: float | None
    coherence: Mapping[str, float | None]
    bands: Mapping[str, Mapping[str, int]]


def expected_band(preferences: SurfacePreferences, alignment: float) -> str:
    """Return the band that DESIGN's rule gives an alignment: strong, soft, qualifier or bare."""
    ladder = [("strong", preferences.hedge_threshold_strong), ("soft", preferences.hedge_threshold_soft)]
    if preferences.claim_strength == "qualified":
        ladder.append(("qualifier", preferences.qualified_band_high))
    return next((band for band, bound in ladder if alignment < bound), "bare")


def is_coherent(pack: IdentityPack, row: Mapping[str, Any], phrases: Mapping[str, str]) -> bool:
    """Whether an answered row says what its pack asks for: the band of its alignment, in a phrase of that band.

    A phrase is the pack's generic one, one of a deviating axis, or the language pack's wording of the band; a bare
    surface begins with none of them.
    """
    preferences = pack.surface_preferences
    if preferences is None:
        return row["hedge"] == "bare" and not row["hedge_phrase"]
    band = expected_band(preferences, row["alignment"])
    surface = row["surface"].casefold()
    spoken = {name: _phrases_of(pack, name, phrases) for name in ("strong", "soft", "qualifier")}
    if band == "bare":
        said = {phrase for known in spoken.values() for phrase in known}
        return row["hedge"] == "bare" and not any(surface.startswith(phrase) for phrase in said)
    return row["hedge"] == band and any(surface.startswith(phrase) for phrase in spoken[band])


def _phrases_of(pack: IdentityPack, band: str, phrases: Mapping[str, str]) -> set[str]:
    """Return what a surface of a band may begin with: words of the pack's claim strength or of an axis, no others."""
    preferences = pack.surface_preferences
    assert preferences is not None
    key = "qualifier" if band == "qualifier" else f"hedge_{band}"
    generic = {
        "strong": preferences.preferred_hedge_strong,
        "soft": preferences.preferred_hedge_soft,
        "qualifier": preferences.preferred_qualifier,
    }[band]
    general = phrases.get(f"{key}_{preferences.claim_strength}", phrases.get(key, generic))
    own = {getattr(hedge, band) for axis, hedge in preferences.axis_hedges.items() if not phrases}
    own |= {phrases[f"{key}_{axis.axis_id}"] for axis in pack.value_axes if f"{key}_{axis.axis_id}" in phrases}
    return {phrase.partition("{claim}")[0].strip().casefold() for phrase in {general, *own} if phrase}


def measure(language: str, prompts: Sequence[str]) -> Divergence:
    """Evaluate `prompts` under every pack and the baseline and compare surfaces."""
    from engine.runtime import Runtime, evaluate_many
    from engine.runtime.baseline import identity_stripped

    runtimes = {pack: Runtime.load(pack, language) for pack in PACKS}
    stripped = identity_stripped(runtimes[PACKS[0]])
    table = evaluate_many([*runtimes.values(), stripped, stripped], prompts)
    sides = (*PACKS, "stripped", "stripped again")
    rows = {side: table.rows[at :: len(sides)] for at, side in enumerate(sides)}
    answered = [at for at in range(len(prompts)) if all(rows[side][at]["status"] == "ok" for side in sides)]

    def differing(left: str, right: str) -> float | None:
        changed = [rows[left][at]["surface"] != rows[right][at]["surface"] for at in answered]
        return sum(changed) / len(changed) if changed else None

    def coherent(pack: str) -> float | None:
        runtime = runtimes[pack]
        phrases = runtime.lexis.speaker.phrases
        said = [is_coherent(runtime.composition.identity, rows[pack][at], phrases) for at in answered]
        return sum(said) / len(said) if said else None

    return Divergence(
        language=language,
        prompts=len(prompts),
        answered=len(answered),
        divergence={f"{a} / {b}": differing(a, b) for a, b in combinations(PACKS, 2)},
        causal={pack: differing(pack, "stripped") for pack in PACKS},
        stripped_vs_stripped=differing("stripped", "stripped again"),
        coherence={pack: coherent(pack) for pack in PACKS},
        bands={pack: _bands(rows[pack][at] for at in answered) for pack in PACKS},
    )


def _bands(rows: Any) -> dict[str, int]:
    counted = dict.fromkeys(("bare", "qualifier", "soft", "strong"), 0)
    for row in rows:
        counted[str(row["hedge"])] += 1
    return counted


def _print(reading: Divergence) -> None:
    print(f"{reading.language}: {reading.answered} of {reading.prompts} prompts answered by every side")
    for title, values in (
        ("surfaces that differ between packs", reading.divergence),
        ("surfaces that differ from the stripped baseline", reading.causal),
        ("coherence with the pack's own preferences", reading.coherence),
    ):
        print(f"  {title}")
        for name, value in values.items():
            print(f"    {name:45} {'-' if value is None else format(value, '.3f')}")
    print(f"  stripped against stripped: {reading.stripped_vs_stripped}")
    for name, counted in reading.bands.items():
        print(f"  bands of {name:25} " + ", ".join(f"{band} {count}" for band, count in counted.items()))


def run(argv: Sequence[str]) -> int:
    """Run the experiment and print it; return 0. Raises the typed errors of packs and prompt files."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.identity_divergence", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--language", nargs="+", default=list(LANGUAGES), choices=LANGUAGES)
    parser.add_argument("--prompts", help="a prompt file (text or JSONL); default: the shipped questions")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    verify_one_root()
    if arguments.prompts is not None and len(arguments.language) != 1:
        raise ConfigError("--prompts FILE needs exactly one --language")
    from engine.base.precision import enable_x64
    from experiments.prompts import load_prompts

    enable_x64()
    readings = []
    for language in arguments.language:
        prompts = [prompt.text for prompt in load_prompts(arguments.prompts, language)]
        readings.append(measure(language, prompts))
        if not arguments.json:
            _print(readings[-1])
    if arguments.json:
        print(json.dumps([asdict(reading) for reading in readings], ensure_ascii=True, allow_nan=False))
    return 0


if __name__ == "__main__":
    sys.exit(run_command("identity_divergence", lambda: run(sys.argv[1:])))
