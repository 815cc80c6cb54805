"""Each of the five boundaries fires on a planted fault, and a boundary that cannot be checked is never upheld."""

import dataclasses

import pytest

from engine.safety.account import Account
from engine.safety.check import (
    DIGESTED_PARTS,
    PROVEN_PROGRAMS,
    ClosureEvidence,
    Evidence,
    SafetyCheck,
    Status,
    refusal,
)
from engine.safety.citations import CitationResolver, CitedClaim
from engine.safety.hotpath import HotPathReport
from packs.errors import PackFormatError, SafetyOverrideError
from packs.language.model import Relation
from packs.safety.loader import REQUIRED_BOUNDARIES
from tests.generate.small_pack import SENTENCES, SOURCE, make_pack

PACK = make_pack()
PROOF = HotPathReport(upheld=True, findings=(), degrees=("state^1 operator^2",), steps=(1,), primitives=frozenset())
DIGESTS = dict.fromkeys(DIGESTED_PARTS, "1" * 64)


def claim(number=0, **changes):
    relation = PACK.relations[number]
    return CitedClaim("said", "zoo", relation, dataclasses.replace(relation.citation, **changes))


def sound():
    return Evidence(
        closure=ClosureEvidence(1e-15, -1, True),
        claims=[claim(number) for number in range(len(PACK.relations))],
        digests_before=DIGESTS,
        digests_after=dict(DIGESTS),
        proofs=dict.fromkeys(PROVEN_PROGRAMS, PROOF),
        incidents=[],
        expected=3,
        returned=3,
    )


def make_check(*extra):
    return SafetyCheck(REQUIRED_BOUNDARIES | set(extra), CitationResolver([PACK]))


def statuses(evidence, check=None):
    return {verdict.boundary: verdict.status for verdict in (check or make_check()).judge(evidence)}


def silent_account():
    account = Account()
    account.exception("language.encode", ValueError("swallowed"), shown_in="")
    return account.incidents


def test_sound_evidence_upholds_all_five():
    assert statuses(sound()) == dict.fromkeys(REQUIRED_BOUNDARIES, Status.UPHELD)
    assert refusal(make_check().judge(sound())) is None


FAULTS = {
    "no_fabricated_source": [
        {"claims": [CitedClaim("said", "zoo", PACK.relations[0], None)]},
        {"claims": [claim(0, start=0, end=5)]},
        {"claims": [claim(0, sha256="f" * 64)]},
        {"claims": [claim(0, source="other")]},
        {"claims": [claim(0, end=len(SOURCE.encode()) + 1)]},
        # A swapped span: a real sentence, but of another relation.
        {"claims": [claim(0, start=SOURCE.index(SENTENCES[3]), end=SOURCE.index(SENTENCES[3]) + len(SENTENCES[3]))]},
        # Both ends stand in the span, but no pack states that the cat opposes the animal.
        {"claims": [CitedClaim("said", "zoo", Relation("cat", "opposes", "animal", PACK.relations[1].citation), None)]},
        {"claims": [dataclasses.replace(claim(0), language="elsewhere")]},
    ],
    "no_hot_path_repair": [
        {"proofs": {**dict.fromkeys(PROVEN_PROGRAMS, PROOF), "walk": dataclasses.replace(PROOF, upheld=False)}}
    ],
    "no_identity_override": [{"digests_after": {**DIGESTS, part: "2" * 64}} for part in DIGESTED_PARTS],
    "no_silent_correction": [{"incidents": silent_account()}, {"returned": 2}],
    "preserve_versor_closure": [
        {"closure": ClosureEvidence(2e-6, 3, False)},
        {"closure": ClosureEvidence(float("inf"), 0, False)},
        {"closure": ClosureEvidence(float("nan"), 0, False)},
    ],
}


@pytest.mark.parametrize(
    ("boundary", "fault"), [(boundary, fault) for boundary, faults in FAULTS.items() for fault in faults]
)
def test_a_planted_fault_fires_its_boundary_and_no_other(boundary, fault):
    found = statuses(dataclasses.replace(sound(), **fault))
    assert found[boundary] is Status.VIOLATED
    assert [name for name, status in found.items() if status is Status.VIOLATED] == [boundary]


def test_every_one_of_the_five_has_a_fault_that_fires_it():
    assert FAULTS.keys() == REQUIRED_BOUNDARIES


@pytest.mark.parametrize(
    "missing",
    [
        {"closure": None},
        {"claims": None},
        {"digests_before": None},
        {"digests_after": {}},
        {"proofs": None},
        {"proofs": {"walk": PROOF}},
        {"incidents": None},
    ],
)
def test_evidence_that_is_missing_upholds_nothing(missing):
    found = statuses(dataclasses.replace(sound(), **missing))
    assert list(found.values()).count(Status.NOT_CHECKABLE) == 1
    assert list(found.values()).count(Status.UPHELD) == 4


def test_a_boundary_without_a_check_is_not_checkable_until_it_has_one():
    check = make_check("no_overstatement")
    assert statuses(sound(), check)["no_overstatement"] is Status.NOT_CHECKABLE
    check.register("no_overstatement", lambda evidence: (Status.VIOLATED, "too bold"))
    assert refusal(check.judge(sound())).boundaries == ("no_overstatement",)


@pytest.mark.parametrize("boundary", sorted(REQUIRED_BOUNDARIES))
def test_the_checks_of_the_five_cannot_be_replaced(boundary):
    with pytest.raises(SafetyOverrideError, match="cannot be replaced"):
        make_check().register(boundary, lambda evidence: (Status.UPHELD, "trust me"))


def test_a_check_needs_the_id_of_a_boundary_and_the_five_are_always_judged():
    with pytest.raises(PackFormatError):
        make_check().register("No Overstatement", lambda evidence: (Status.UPHELD, ""))
    assert set(SafetyCheck([], CitationResolver([PACK])).boundaries) == REQUIRED_BOUNDARIES


def test_a_refusal_names_the_violated_boundaries_in_order_and_depends_on_nothing_else():
    evidence = dataclasses.replace(sound(), closure=ClosureEvidence(1.0, 0, False), claims=[claim(0, start=1, end=2)])
    found = refusal(make_check().judge(evidence))
    assert found.boundaries == ("no_fabricated_source", "preserve_versor_closure")
    assert found.text == "Refused: this would violate no_fabricated_source, preserve_versor_closure."


def test_an_account_keeps_what_was_entered_in_order():
    account = Account()
    account.fallback("surface", "a default phrase", shown_in="surface")
    account.exception("encode", ValueError("bad"), shown_in="row 1")
    assert [incident.detail for incident in account] == ["a default phrase", "ValueError: bad"]
    assert len(account) == 2
