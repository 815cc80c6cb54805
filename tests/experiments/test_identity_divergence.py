"""The divergence experiment: its targets on the shipped prompts, and an oracle of coherence that can say no."""

import dataclasses
from typing import Any

import pytest

from experiments.identity_divergence import PACKS, Divergence, expected_band, is_coherent, measure, run
from experiments.prompts import load_prompts
from packs.identity.loader import load_identity_manifold


@pytest.fixture(scope="module", params=["en", "he", "grc"])
def measured(request: pytest.FixtureRequest) -> Divergence:
    return measure(request.param, [prompt.text for prompt in load_prompts(None, request.param)])


@pytest.mark.slow
def test_packs_diverge_and_keep_their_own_preferences(measured: Divergence) -> None:
    assert measured.answered >= 50
    assert all(share is not None and share > 0.30 for share in measured.divergence.values())
    assert all(share == 1.0 for share in measured.coherence.values())
    assert all(share is not None and share > 0.0 for share in measured.causal.values())
    assert measured.stripped_vs_stripped == 0.0


@pytest.mark.slow
def test_every_band_of_every_pack_is_reached(measured: Divergence) -> None:
    for pack in PACKS:
        qualified = pack == "precision_first_v1"
        assert measured.bands[pack]["bare"] > 0
        assert measured.bands[pack]["soft"] > 0
        assert measured.bands[pack]["strong"] > 0
        assert (measured.bands[pack]["qualifier"] > 0) == qualified


def row(**changes: Any) -> dict[str, Any]:
    return {"alignment": 0.95, "hedge": "bare", "hedge_phrase": "", "surface": "Truth is light.", **changes}


def test_coherence_sees_a_hedge_of_another_band() -> None:
    pack = load_identity_manifold("precision_first_v1")
    preferences = pack.surface_preferences
    assert preferences is not None
    strong, soft = preferences.preferred_hedge_strong, preferences.preferred_hedge_soft
    assert is_coherent(pack, row(), {})
    assert not is_coherent(pack, row(surface=f"{strong} truth is light."), {})
    assert not is_coherent(pack, row(hedge="strong"), {})
    assert is_coherent(pack, row(alignment=0.1, hedge="strong", surface=f"{strong} truth is light."), {})
    assert not is_coherent(pack, row(alignment=0.1, hedge="strong", surface=f"{soft} truth is light."), {})
    assert not is_coherent(pack, row(alignment=0.1), {})


def test_coherence_sees_the_wording_of_another_claim_strength() -> None:
    pack = load_identity_manifold("precision_first_v1")
    phrases = {"hedge_strong": "ἴσως· {claim}", "hedge_strong_qualified": "ἀσθενές· {claim}"}
    low = row(alignment=0.1, hedge="strong", surface="Ἀσθενές· φῶς.")
    assert is_coherent(pack, low, phrases)
    assert not is_coherent(pack, {**low, "surface": "Ἴσως· φῶς."}, phrases)
    assert is_coherent(load_identity_manifold("default_general_v1"), {**low, "surface": "Ἴσως· φῶς."}, phrases)


def test_bands_meet_at_their_thresholds() -> None:
    preferences = load_identity_manifold("precision_first_v1").surface_preferences
    assert preferences is not None
    at = [expected_band(preferences, alignment) for alignment in (0.0, 0.55, 0.70, 0.85, 1.0)]
    assert at == ["strong", "soft", "qualifier", "bare", "bare"]
    balanced = dataclasses.replace(preferences, claim_strength="balanced")
    assert expected_band(balanced, 0.75) == "bare"


def test_a_prompt_file_needs_one_language(tmp_path: Any) -> None:
    from engine.base.errors import ConfigError

    with pytest.raises(ConfigError, match="exactly one"):
        run(["--prompts", str(tmp_path / "p.txt")])
