"""The pattern store reads both forms as found, keeps live rows only, and counts what it leaves out."""

import json
from collections import Counter

import pytest

from engine.base.errors import PatternFileError
from engine.instruments.patterns import TEXT_LIMIT, epistemic_counts, pattern_id, read_patterns
from engine.instruments.resources import packaged_path
from tests.instruments.support import TEXTS, write_patterns

ROWS = [
    {"pattern": "kept", "provenance": {"source_type": "self_reflection"}, "valid_until": None},
    {"pattern": "mixed", "provenance": {"source_type": "mixed", "extra": [1, 2]}},
    {"pattern": "other", "provenance": {"source_type": "external"}, "gated": False},
    {"pattern": "bare", "provenance": "not an object"},
    {"pattern": "gone", "valid_until": "2026-01-01T00:00+00:00"},
    {"pattern": "shut", "gated": True},
    {"pattern": " \u200b "},
    {"pattern": "kept"},
    {"pattern": "x" * (TEXT_LIMIT + 1)},
]


@pytest.mark.parametrize("form", ["list", "lines", "lines with a byte order mark"])
def test_both_forms_give_the_same_live_rows(tmp_path, form):
    path = tmp_path / "patterns.json"
    text = json.dumps(ROWS) if form == "list" else "\n\n".join(json.dumps(row) for row in ROWS) + "\n"
    path.write_text(text, encoding="utf-8-sig" if "mark" in form else "utf-8")
    store = read_patterns(path)
    assert [pattern.text for pattern in store.patterns] == ["kept", "mixed", "other", "bare"]
    assert store.left_out == {"blank": 1, "expired": 1, "gated": 1, "oversized": 1, "repeated": 1}
    assert store.rows == len(ROWS)
    assert epistemic_counts(store.patterns) == {"generated": 2, "unknown": 2}


def test_ids_are_content_hashes(tmp_path):
    first = read_patterns(write_patterns(tmp_path / "a.json"))
    again = read_patterns(write_patterns(tmp_path / "b.json", TEXTS[::-1]))
    assert {pattern.id for pattern in first.patterns} == {pattern.id for pattern in again.patterns}
    assert all(pattern.id == pattern_id(pattern.text) for pattern in first.patterns)
    assert first.sha256 != again.sha256


def test_thousands_of_rows_and_megabyte_rows(tmp_path):
    texts = [f"observation number {number} of many" for number in range(6000)] + ["<|" * 500_000, "y" * 2**20]
    store = read_patterns(write_patterns(tmp_path / "many.json", texts))
    assert len(store.patterns) == 6000
    assert store.left_out["oversized"] == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1 is not JSON"),
        ('[{"pattern": "a"}', "the list is not JSON"),
        ('{"pattern": "a"}\nnot json', "line 2 is not JSON"),
        ('[{"pattern": 5}]', "row 1 has no text 'pattern'"),
        ('[{"pattern": "a"}, []]', "row 2 has no text 'pattern'"),
        ('{"pattern": "a", "pattern": "b"}', "repeated"),
        ('{"pattern": "a", "weight": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_a_file_of_another_form_names_its_row(tmp_path, text, message):
    path = tmp_path / "patterns.json"
    path.write_text(text)
    with pytest.raises(PatternFileError, match=message):
        read_patterns(path)


def test_the_shipped_example_is_rich_enough():
    with packaged_path("readings", "patterns.jsonl") as path:
        store = read_patterns(path)
    assert len(store.patterns) >= 300
    assert set(store.left_out) == {"expired", "gated"}
    assert set(Counter(pattern.source_type for pattern in store.patterns)) == {"self_reflection", "mixed", "unknown"}
    assert all(count > 50 for count in epistemic_counts(store.patterns).values())
    openings = Counter(" ".join(pattern.text.split()[:3]) for pattern in store.patterns)
    assert max(openings.values()) < 12, "the rows are variations of one template"
