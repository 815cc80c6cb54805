"""One engine for the tests of formation: the shipped packs as candidates, run once each on the real engine."""

import pytest

from engine.formation.bench import Bench, open_bench
from engine.formation.candidate import Candidate, identity_candidate, safety_candidate
from engine.formation.course import ORDINARY_PROMPTS
from engine.formation.gates import Run
from engine.formation.ratify import run_course
from packs.language.loader import load_language_pack
from packs.language.model import LanguagePack
from tests.attacks.workspace import IDENTITY_ID, PACKS, SAFETY


@pytest.fixture(scope="session")
def language() -> LanguagePack:
    return load_language_pack("en", require_seal=False)


@pytest.fixture(scope="session")
def safety(language: LanguagePack) -> Candidate:
    return safety_candidate(
        PACKS / "safety" / SAFETY.pack_name,
        identity_path=PACKS / "identity" / "default_general_v1.json",
        language=language,
    )


@pytest.fixture(scope="session")
def identity(language: LanguagePack) -> Candidate:
    return identity_candidate(
        PACKS / "identity" / f"{IDENTITY_ID}.json",
        safety_path=PACKS / "safety" / SAFETY.pack_name,
        language=language,
    )


@pytest.fixture(scope="session")
def safety_run(safety: Candidate) -> Run:
    return run_course(safety)


@pytest.fixture(scope="session")
def safety_bench(safety: Candidate) -> Bench:
    return _bench(safety)


@pytest.fixture(scope="session")
def identity_bench(identity: Candidate) -> Bench:
    return _bench(identity)


def _bench(candidate: Candidate) -> Bench:
    course = candidate.course()
    return open_bench(candidate, course, [*ORDINARY_PROMPTS, *(counter.text for counter in course.counters)])
