"""Which boundary ids an identity pack may add, and which are taken for an imitation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packs.identity.lookalike import edit_distance, refuse_lookalikes, resembles
from packs.safety.loader import REQUIRED_BOUNDARIES

# Boundaries that deployments would really add; taking one of them for an imitation would be a false alarm.
HONEST = (
    "no_overstatement",
    "no_medical_dosage",
    "no_unattended_actuation",
    "no_personal_data",
    "no_speculation_on_outcomes",
    "cite_every_number",
    "no_source_code_execution",
    "no_identity_documents",
    "no_hot_takes",
    "no_path_traversal",
    "no_repair_advice",
    "no_silent_recording",
    "preserve_privacy",
    "keep_closure_reports",
    "no_manual_override_of_brakes",
    "no_fabricated_quotes",
)


@pytest.mark.parametrize("boundary", HONEST)
def test_honest_additions_are_accepted(boundary: str) -> None:
    refuse_lookalikes([boundary], REQUIRED_BOUNDARIES, pack_id="x")


@pytest.mark.parametrize("boundary", sorted(REQUIRED_BOUNDARIES))
def test_the_boundaries_themselves_are_accepted(boundary: str) -> None:
    refuse_lookalikes([boundary], REQUIRED_BOUNDARIES, pack_id="x")


def test_short_ids_of_a_stricter_pack_do_not_swallow_others() -> None:
    assert not resembles("no_charm_offensive", "no_harm")
    assert not resembles("no_farm", "no_harm")
    assert resembles("n0_harm", "no_harm")
    assert resembles("allow_harm", "no_harm")


@given(st.text("abc", max_size=6), st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_edit_distance_is_symmetric_zero_on_equals_and_bounded(a: str, b: str, c: str) -> None:
    assert edit_distance(a, a) == 0
    assert edit_distance(a, b) == edit_distance(b, a)
    assert abs(len(a) - len(b)) <= edit_distance(a, b) <= max(len(a), len(b))
    assert edit_distance(a + c, b + c) <= edit_distance(a, b)


@pytest.mark.parametrize(
    ("left", "right", "distance"),
    [
        ("", "abc", 3),
        ("abc", "acb", 1),
        ("abc", "abd", 1),
        ("abc", "ab", 1),
        ("ca", "abc", 3),
        ("kitten", "sitting", 3),
    ],
)
def test_edit_distance_of_known_pairs(left: str, right: str, distance: int) -> None:
    assert edit_distance(left, right) == distance


@given(st.sampled_from(sorted(REQUIRED_BOUNDARIES)), st.data())
def test_one_edit_of_a_safety_id_is_always_an_imitation(boundary: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(boundary) - 1))
    letter = data.draw(st.sampled_from("abcdefghijklmnopqrstuvwxyz0123456789_"))
    for edited in (boundary[:at] + letter + boundary[at + 1 :], boundary[:at] + boundary[at + 1 :]):
        assert resembles(edited, boundary)
