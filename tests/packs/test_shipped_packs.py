"""The packs that ship: their content is pinned here, number by number, against the decision record."""

import re

import pytest

from packs import seal
from packs.identity.loader import AxisHedge, IdentityPack, available_packs, load_identity_manifold
from packs.ids import is_id
from packs.safety import pinned
from packs.safety.loader import REQUIRED_BOUNDARIES, load_safety_pack
from tests.attacks.workspace import PACKS

IDENTITIES = ("default_general_v1", "generosity_first_v1", "precision_first_v1")
AXES = ("truthfulness", "coherence", "reverence")


@pytest.fixture(params=IDENTITIES)
def pack(request: pytest.FixtureRequest) -> IdentityPack:
    return load_identity_manifold(request.param)


def test_safety_pack_is_the_five_boundaries_and_ratified() -> None:
    pack = load_safety_pack()
    assert pack.pack_id == "core_safety_axes_v1"
    assert pack.boundary_ids == REQUIRED_BOUNDARIES
    assert set(pack.boundary_descriptions) == REQUIRED_BOUNDARIES
    assert pack.ratified is True
    assert pack.sha256 == pinned.PACK_SHA256


def test_safety_descriptions_state_what_each_boundary_forbids() -> None:
    texts = load_safety_pack().boundary_descriptions
    for boundary, words in (
        ("no_fabricated_source", ("real span", "provenance is never invented")),
        ("no_hot_path_repair", ("normalisation", "drift repair", "propagate, walk or vault store")),
        ("no_identity_override", ("identity axes", "runtime policy", "operators")),
        ("no_silent_correction", ("typed and visible", "silent fallback", "forbidden")),
        ("preserve_versor_closure", ("below 1e-6", "every runtime field state")),
    ):
        assert all(word in texts[boundary] for word in words), boundary


def test_safety_pack_is_immutable() -> None:
    pack = load_safety_pack()
    with pytest.raises(AttributeError):
        pack.boundary_ids = frozenset()  # type: ignore[misc]
    with pytest.raises(TypeError):
        pack.boundary_descriptions["no_x"] = "x"  # type: ignore[index]
    assert isinstance(pack.boundary_ids, frozenset)


@pytest.mark.parametrize(
    ("pack_id", "threshold", "directions", "weights", "hedges", "strength", "extra"),
    [
        (
            "default_general_v1",
            0.45,
            ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
            (1.0, 1.0, 1.0),
            (0.40, 0.50, 0.75),
            "balanced",
            set(),
        ),
        (
            "precision_first_v1",
            0.55,
            ((1.0, 0.0, 0.0), (0.0, 0.7, 0.0), (0.0, 0.0, 0.7)),
            (2.0, 0.7, 0.7),
            (0.55, 0.70, 0.85),
            "qualified",
            {"no_overstatement"},
        ),
        (
            "generosity_first_v1",
            0.40,
            ((0.7, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
            (0.8, 2.0, 1.2),
            (0.20, 0.30, 0.50),
            "affirmative",
            set(),
        ),
    ],
)
def test_identity_packs_have_the_numbers_of_the_decision_record(
    pack_id: str,
    threshold: float,
    directions: tuple[tuple[float, float, float], ...],
    weights: tuple[float, ...],
    hedges: tuple[float, float, float],
    strength: str,
    extra: set[str],
) -> None:
    pack = load_identity_manifold(pack_id)
    assert pack.alignment_threshold == threshold
    assert tuple(axis.axis_id for axis in pack.value_axes) == AXES
    assert tuple(axis.direction for axis in pack.value_axes) == directions
    assert tuple(axis.weight for axis in pack.value_axes) == weights
    preferences = pack.surface_preferences
    assert preferences is not None
    bands = (
        preferences.hedge_threshold_strong,
        preferences.hedge_threshold_soft,
        preferences.qualified_band_high,
    )
    assert bands == hedges
    assert preferences.claim_strength == strength
    assert set(pack.boundary_ids) == {"no_fabricated_source", "no_hot_path_repair"} | extra


def test_phrases_of_an_axis_are_read_as_written() -> None:
    preferences = load_identity_manifold("precision_first_v1").surface_preferences
    assert preferences is not None
    hedge = preferences.axis_hedges["truthfulness"]
    assert isinstance(hedge, AxisHedge)
    assert hedge.strong == "I cannot vouch for this:"


def test_every_shipped_pack_is_ratified_and_known(pack: IdentityPack) -> None:
    assert pack.ratified is True
    assert is_id(pack.pack_id)
    assert available_packs() == IDENTITIES


def test_pack_files_carry_the_digest_that_is_reported(pack: IdentityPack) -> None:
    data = (PACKS / "identity" / f"{pack.pack_id}.json").read_bytes()
    assert pack.sha256 == seal.sha256_hex(data)


def test_docs_quote_the_shipped_digests() -> None:
    text = (PACKS.parent / "docs" / "packs.md").read_text(encoding="utf-8")
    quoted = set(re.findall(r"\b[0-9a-f]{64}\b", text))
    shipped = {load_safety_pack().sha256, *(load_identity_manifold(name).sha256 for name in IDENTITIES)}
    assert quoted == shipped
