"""The three packs that ship: sizes, seals, sources, Unicode, and the geometry's targets on one cross-validation."""

import functools
import re
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from engine.language import evaluation
from engine.language.graph import pair_array
from packs.language.authoring import build_files, geometry_digest, read_tables
from packs.language.consistency import check_alignment_with
from packs.language.loader import available_language_packs, load_language_pack, shipped_folder
from packs.language.model import LanguagePack

ROOT = Path(__file__).resolve().parents[2]
SIZES = {"en": (400, 1000), "he": (150, 300), "grc": (150, 300)}
DIRECTIONS = {"en": "ltr", "he": "rtl", "grc": "ltr"}


@functools.cache
def shipped(lang: str) -> LanguagePack:
    """Return a shipped pack, loaded once."""
    return load_language_pack(lang)


@pytest.fixture(scope="module", params=sorted(SIZES))
def pack(request: pytest.FixtureRequest) -> LanguagePack:
    """Each shipped pack, sealed."""
    return shipped(request.param)


def test_three_languages_ship() -> None:
    assert set(SIZES) <= set(available_language_packs())


def test_packs_are_ratified_and_of_size(pack: LanguagePack) -> None:
    lexemes, relations = SIZES[pack.pack_id]
    assert pack.ratified
    assert len(pack.lexicon) >= lexemes
    assert len(pack.relations) >= relations
    assert pack.manifest.direction == DIRECTIONS[pack.pack_id]
    assert {entry.feature.split("=")[0] for entry in pack.operators}


@pytest.mark.parametrize("lang", ["he", "grc"])
def test_a_hundred_concepts_are_aligned_to_english_with_grades(lang: str) -> None:
    pack, english = shipped(lang), shipped("en")
    check_alignment_with(pack, english)
    edges = [edge for edge in pack.alignment if edge.language == "en"]
    assert len({edge.other for edge in edges}) >= 100
    assert len({edge.strength for edge in edges}) >= 3
    assert pack.manifest.anchors["en"] == geometry_digest(english.manifest)


def test_display_keeps_its_marks() -> None:
    for lang in ("he", "grc"):
        lemmas = shipped(lang).lemmas
        marked = [
            lemma for lemma in lemmas if any(unicodedata.combining(c) for c in unicodedata.normalize("NFD", lemma))
        ]
        assert len(marked) > 0.9 * len(lemmas)


def test_english_rebuilds_from_its_tables() -> None:
    files = build_files(read_tables(ROOT / "scripts" / "authoring" / "en"), "en", {})
    for name, body in files.items():
        if name != "manifest.json":
            assert (shipped_folder("en") / name).read_bytes() == body, name


def test_the_geometry_meets_its_targets(pack: LanguagePack) -> None:
    """One run of five folds, with a margin of one interval below the published means."""
    names = sorted({lexeme.domain for lexeme in pack.lexicon})
    domains = np.array([names.index(lexeme.domain) for lexeme in pack.lexicon])
    pairs = evaluation.distinct_pairs(pair_array(pack))
    scores = evaluation.cross_validate(pairs, domains, np.random.default_rng(2), repeats=1)
    point, motor, oracle = (np.mean([getattr(s, which) for s in scores]) for which in ("point", "motor", "oracle"))
    assert point >= 0.80
    assert motor >= 0.85
    assert motor >= oracle - 0.05
    assert evaluation.cross_domain_share(pairs, domains) >= 0.05


def test_the_published_figures_are_of_these_packs() -> None:
    page = (ROOT / "docs" / "language-geometry.md").read_text("utf-8")
    published = dict(re.findall(r"^\| (\w+) \|.*\| `([0-9a-f]{12})` \|$", page, flags=re.MULTILINE))
    current = {lang: geometry_digest(shipped(lang).manifest)[:12] for lang in SIZES}
    assert published == current
