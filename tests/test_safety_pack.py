"""What the safety pack promises at run time: it is always there, whatever identity it is composed with."""

import inspect
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.runtime import Composition, Runtime, runtime_from
from engine.runtime.compose import compose_manifold
from packs import strict_json
from packs.errors import IdentityPackError, PackFormatError, SafetyPackError
from packs.identity import loader as identity_loader
from packs.identity.loader import IdentityPack, available_packs, load_identity_manifold
from packs.language.loader import load_language_pack
from packs.language.model import LanguagePack
from packs.safety.loader import REQUIRED_BOUNDARIES, SafetyPack, load_safety_pack

IDS = st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True)
UNIT = st.floats(-1.0, 1.0, allow_subnormal=False)
SAFETY = load_safety_pack()


@st.composite
def identity_bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Return an identity pack as its author would write it, anywhere in the schema's bounds (and a little outside)."""
    names = draw(st.lists(IDS, min_size=1, max_size=5, unique=True))
    thresholds = sorted(draw(st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3)))
    boundaries = draw(st.lists(IDS | st.sampled_from(sorted(REQUIRED_BOUNDARIES)), min_size=1, max_size=6, unique=True))
    return {
        "pack_id": "generated_v1",
        "version": "1.0.0",
        "description": "A generated pack.",
        "schema_version": "1.0.0",
        "mastery_report_sha256": "",
        "alignment_threshold": draw(st.floats(0.0, 1.0)),
        "boundary_ids": boundaries,
        "value_axes": [
            {
                "axis_id": name,
                "name": name,
                "direction": draw(st.lists(UNIT, min_size=3, max_size=3)),
                "weight": draw(st.floats(0.0, 10.0)),
                "note": "",
            }
            for name in names
        ],
        "surface_preferences": {
            "hedge_threshold_strong": thresholds[0],
            "hedge_threshold_soft": thresholds[1],
            "qualified_band_high": thresholds[2],
            "preferred_hedge_strong": "a",
            "preferred_hedge_soft": "b",
            "preferred_qualifier": "c",
            "claim_strength": draw(st.sampled_from(["balanced", "qualified", "affirmative"])),
        },
    }


@pytest.fixture(scope="module")
def language() -> LanguagePack:
    return load_language_pack("en", require_seal=False)


@pytest.fixture(scope="module", params=available_packs())
def runtime(request: pytest.FixtureRequest, language: LanguagePack) -> Runtime:
    # As Runtime.load does it, with the language read once for all three.
    identity = load_identity_manifold(request.param)
    return runtime_from(Composition(identity, SAFETY, language, compose_manifold(identity, SAFETY)))


class TestRuntimeComposition:
    """Identity, then safety, then the union; nothing of the identity but its boundaries changes."""

    def test_every_shipped_identity_composes_to_the_five(self, runtime: Runtime) -> None:
        assert runtime.manifold.boundary_ids >= REQUIRED_BOUNDARIES
        assert runtime.manifold.boundary_ids == SAFETY.boundary_ids | set(runtime.composition.identity.boundary_ids)
        assert isinstance(runtime.manifold.boundary_ids, frozenset)

    def test_axes_threshold_and_preferences_are_the_identitys_own(self, runtime: Runtime) -> None:
        pack = load_identity_manifold(runtime.identity_id)
        manifold, count = runtime.manifold, len(pack.value_axes)
        assert manifold.axis_ids == tuple(axis.axis_id for axis in pack.value_axes)
        directions = np.array([axis.direction for axis in pack.value_axes])
        np.testing.assert_array_equal(np.asarray(manifold.axes.directions)[:count], directions)
        np.testing.assert_array_equal(np.asarray(manifold.axes.weights)[:count], [a.weight for a in pack.value_axes])
        assert not np.asarray(manifold.axes.mask)[count:].any()
        assert manifold.alignment_threshold == pack.alignment_threshold
        assert manifold.surface_preferences == pack.surface_preferences

    def test_no_overstatement_survives_composition(self) -> None:
        manifold = compose_manifold(load_identity_manifold("precision_first_v1"), SAFETY)
        assert "no_overstatement" in manifold.boundary_ids

    def test_default_axes_are_truthfulness_coherence_reverence(self) -> None:
        manifold = compose_manifold(load_identity_manifold("default_general_v1"), SAFETY)
        assert set(manifold.axis_ids) == {"truthfulness", "coherence", "reverence"}

    @given(identity_bodies())
    def test_whatever_the_identity_composed_contains_safety(self, body: dict[str, Any]) -> None:
        pack = _pack_or_refusal(body)
        if pack is None:
            return
        manifold = compose_manifold(pack, SAFETY)
        assert manifold.boundary_ids >= SAFETY.boundary_ids
        assert manifold.boundary_ids == SAFETY.boundary_ids | set(body["boundary_ids"])
        assert manifold.axis_ids == tuple(axis["axis_id"] for axis in body["value_axes"])
        assert manifold.alignment_threshold == body["alignment_threshold"]

    @given(st.sets(st.sampled_from(sorted(REQUIRED_BOUNDARIES)), max_size=4))
    def test_a_safety_pack_below_the_floor_is_never_composed(self, kept: set[str]) -> None:
        gutted = replace(SAFETY, boundary_ids=frozenset(kept))
        silent = replace(load_identity_manifold("default_general_v1"), boundary_ids=("no_overstatement",))
        with pytest.raises(SafetyPackError, match="composed without the boundary"):
            compose_manifold(silent, gutted)

    def test_an_imitation_of_a_stricter_packs_boundary_is_refused(self) -> None:
        stricter = replace(SAFETY, boundary_ids=SAFETY.boundary_ids | {"no_unattended_actuation"})
        hostile = replace(load_identity_manifold("default_general_v1"), boundary_ids=("allow_unattended_actuation",))
        compose_manifold(hostile, SAFETY)
        with pytest.raises(IdentityPackError, match="looks like the safety boundary no_unattended_actuation"):
            compose_manifold(hostile, stricter)

    def test_the_loader_and_the_runtime_have_no_door_for_another_pack(self) -> None:
        assert not inspect.signature(load_safety_pack).parameters
        assert not [name for name in inspect.signature(Runtime.load).parameters if "safety" in name]

    def test_nothing_starts_while_the_safety_pack_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse() -> SafetyPack:
            raise SafetyPackError("no pack")

        # The package re-exports a function of the module's name, so the module is looked up by its own.
        monkeypatch.setattr(sys.modules["engine.runtime.compose"], "load_safety_pack", refuse)
        with pytest.raises(SafetyPackError, match="no pack"):
            Runtime.load()


def _pack_or_refusal(body: dict[str, Any]) -> IdentityPack | None:
    """Return the pack as formation reads it, or None where the loader refuses what was generated."""
    try:
        return identity_loader.candidate("generated_v1", strict_json.file_bytes(body))
    except PackFormatError:
        return None
