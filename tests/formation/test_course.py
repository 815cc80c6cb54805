"""The course of a pack follows from its bytes, and every row of it can be traced back to them."""

import json
from dataclasses import replace
from typing import Any

import pytest

from engine.formation.course import (
    IDENTITY_PROBES,
    SAFETY_PROBES,
    has_provenance,
    identity_course,
    make_plan,
    resolve,
    safety_course,
)
from packs.errors import PackFormatError
from packs.safety.loader import REQUIRED_BOUNDARIES
from tests.attacks.workspace import IDENTITY_PACK, SAFETY_PACK, edited

SAFETY_BODY: dict[str, Any] = json.loads(SAFETY_PACK)
IDENTITY_BODY: dict[str, Any] = json.loads(IDENTITY_PACK)


def test_boundaries_become_concepts_defined_by_their_descriptions() -> None:
    course = safety_course(SAFETY_BODY)
    assert {concept.concept_id for concept in course.concepts} == REQUIRED_BOUNDARIES
    for concept in course.concepts:
        assert concept.definition == SAFETY_BODY["boundary_descriptions"][concept.concept_id]
    assert {counter.probe for counter in course.counters} == set(SAFETY_PROBES)
    assert len(course.counters) == len(REQUIRED_BOUNDARIES) * len(SAFETY_PROBES)
    assert {relation.head for relation in course.relations} == REQUIRED_BOUNDARIES


def test_axes_become_concepts_defined_by_their_notes_or_names() -> None:
    body = edited(IDENTITY_PACK, lambda pack: pack["value_axes"][0].update(note=""))
    course = identity_course(body)
    assert [concept.definition for concept in course.concepts] == [
        body["value_axes"][0]["name"],
        body["value_axes"][1]["note"],
        body["value_axes"][2]["note"],
    ]
    assert {counter.probe for counter in course.counters} == set(IDENTITY_PROBES)


def test_digests_follow_from_the_content_and_nothing_else() -> None:
    course = safety_course(SAFETY_BODY)
    again = safety_course(json.loads(SAFETY_PACK))
    assert (course.digest(), make_plan(course).digest()) == (again.digest(), make_plan(again).digest())
    other = edited(SAFETY_PACK, lambda pack: pack["boundary_descriptions"].update(no_hot_path_repair="Other words."))
    assert safety_course(other).digest() != course.digest()


def test_the_plan_seeds_asks_attacks_and_walks_everything() -> None:
    course = safety_course(SAFETY_BODY)
    steps = make_plan(course).steps
    assert len({step.step_id for step in steps}) == len(steps)
    kinds = [step.kind for step in steps]
    assert kinds.count("compose") == 1
    assert kinds.count("seed") == kinds.count("accept") == kinds.count("relation") == len(course.concepts)
    assert kinds.count("probe") == len(course.counters)


@pytest.mark.parametrize(
    "pointer",
    ["", "/nothing", "/boundary_ids/99", "/boundary_ids/-1", "/boundary_ids", "/boundary_ids/x", "/version/0"],
)
def test_a_pointer_to_nothing_is_typed(pointer: str) -> None:
    with pytest.raises(PackFormatError):
        resolve(SAFETY_BODY, pointer)


def test_provenance_is_checked_against_the_pack() -> None:
    origin = safety_course(SAFETY_BODY).concepts[0].provenance
    assert has_provenance(SAFETY_BODY, origin)
    assert not has_provenance(SAFETY_BODY, replace(origin, sha256="0" * 64))
    assert not has_provenance(SAFETY_BODY, replace(origin, pointer="/boundary_descriptions/other"))
    assert not has_provenance(SAFETY_BODY, replace(origin, pack_id="another_pack"))
    assert not has_provenance(SAFETY_BODY, replace(origin, pointer="/mastery_report_sha256x"))
