"""The extractive generator: every clause traces, equal keys give equal texts, nothing comes from anywhere else."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.base.errors import UsageError
from engine.instruments.embed.hashing import HashingEmbedder
from engine.instruments.patterns import Pattern, pattern_id
from engine.instruments.sections import parse_sections
from engine.instruments.synthesize import GenerationRequest, load_generator
from engine.instruments.synthesize.base import Revision, Section
from engine.instruments.synthesize.extractive import MAX_CLAUSES, ExtractiveGenerator, clause_text
from engine.instruments.synthesize.kmeans import cluster, unit_rows

TEXTS = [
    *(
        f"The archive of records {word} when old records are read again."
        for word in ("grows", "shifts", "bends", "thins")
    ),
    *(f"A question from a stranger {word} patience before an answer." for word in ("asks", "earns", "wants", "repays")),
    *(f"Numbers without their error bars {word} a reader." for word in ("mislead", "flatter", "tire", "fool")),
]


def request(texts: list[str], key: int = 0, revision: Revision | None = None) -> GenerationRequest:
    vectors = HashingEmbedder("256").embed(texts).vectors
    assert vectors is not None
    patterns = tuple(Pattern(pattern_id(text), text) for text in texts)
    return GenerationRequest("prompt", "system", patterns, vectors, key, revision)


def test_sections_are_the_themes_of_the_patterns() -> None:
    generated = ExtractiveGenerator("3").generate(request(TEXTS))
    sections = parse_sections(generated.text)
    assert len(sections) == 3
    groups = [{TEXTS.index(clause.text) // 4 for clause in section.clauses} for section in sections]
    assert sorted(map(tuple, groups)) == [(0,), (1,), (2,)]
    names = " ".join(section.heading for section in sections)
    assert "Records" in names
    assert "Patience" in names or "Stranger" in names


@given(st.integers(0, 2**32 - 1), st.sampled_from([3, 12]))
def test_every_clause_traces_to_a_pattern(key: int, count: int) -> None:
    asked = request(TEXTS[:count], key)
    generated = ExtractiveGenerator().generate(asked)
    assert generated.complete
    assert generated.lineage is not None
    by_id = {pattern.id: pattern.text for pattern in asked.patterns}
    sections = parse_sections(generated.text)
    clauses = [(section.heading, clause.text) for section in sections for clause in section.clauses]
    assert clauses == [(entry.section, entry.clause) for entry in generated.lineage]
    for entry in generated.lineage:
        (source,) = entry.pattern_ids
        assert clause_text(by_id[source]) == entry.clause
    assert all(1 <= len(section.clauses) <= MAX_CLAUSES for section in sections)
    assert len({section.heading for section in sections}) == len(sections)


def test_equal_keys_give_equal_texts_and_some_keys_differ() -> None:
    texts = [ExtractiveGenerator().generate(request(TEXTS, key)).text for key in (1, 1, *range(2, 12))]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


def test_prompt_and_system_are_not_read() -> None:
    asked = request(TEXTS)
    other = dataclasses.replace(asked, prompt="something else", system="and this")
    assert ExtractiveGenerator().generate(asked).text == ExtractiveGenerator().generate(other).text


@pytest.mark.parametrize("texts", [["one thing"], ["same", "same", "same"], ["", " ", "a"], ["דעת היא אור"] * 3])
def test_odd_patterns_are_still_a_text(texts: list[str]) -> None:
    generated = ExtractiveGenerator().generate(request(texts))
    assert generated.complete
    assert generated.text.startswith("# ")


def test_quotes_and_length_cannot_break_a_clause() -> None:
    texts = ['He said "stop" and “wait”.', "word " * 5000, "a\n# Heading\nb"]
    generated = ExtractiveGenerator("1").generate(request(texts))
    (section,) = parse_sections(generated.text)
    assert all(clause.quoted and len(clause.text) <= 600 for clause in section.clauses)


def test_no_patterns_and_bad_vectors_are_failures() -> None:
    empty = GenerationRequest("", "", (), np.zeros((0, 4)), 0)
    assert not ExtractiveGenerator().generate(empty).complete
    asked = request(TEXTS)
    broken = dataclasses.replace(asked, vectors=np.full_like(asked.vectors, np.nan))
    assert not ExtractiveGenerator().generate(broken).complete


@pytest.mark.parametrize("argument", ["0", "13", "x", "-1", "²"])
def test_a_wrong_number_of_themes_is_a_usage_error(argument: str) -> None:
    with pytest.raises(UsageError):
        load_generator(f"extractive:{argument}")


DOCUMENT = """# Ours

**Records:**
- "Keep the archive of records in order when old records are read."
- "Bread is baked in the morning."

**Answers:**
- "A question from a stranger deserves patience."
- "Rivers run to the sea."
"""


def revised(share_texts: list[str]) -> tuple[str, list[tuple[str, ...]]]:
    sections = tuple(
        Section(section.heading, tuple(clause.text for clause in section.clauses))
        for section in parse_sections(DOCUMENT)
        if section.clauses
    )
    clauses = [clause for section in sections for clause in section.clauses]
    vectors = HashingEmbedder("256").embed(clauses).vectors
    assert vectors is not None
    generated = ExtractiveGenerator("3").generate(request(share_texts, 0, Revision(DOCUMENT, sections, vectors)))
    assert generated.complete
    assert generated.lineage is not None
    return generated.text, [entry.pattern_ids for entry in generated.lineage]


def test_a_revision_keeps_every_section_heading_and_count() -> None:
    text, lineage = revised(TEXTS)
    before, after = parse_sections(DOCUMENT), parse_sections(text)
    assert [section.heading for section in before] == [section.heading for section in after]
    assert [len(section.clauses) for section in before] == [len(section.clauses) for section in after]
    changed = [ids for ids in lineage if ids]
    assert len(changed) == 1
    assert text != DOCUMENT
    kept = [line for line in DOCUMENT.splitlines() if line in text.splitlines()]
    assert len(kept) == len(DOCUMENT.splitlines()) - 1


def test_rows_of_every_scale_are_unit_and_zero_stays_zero() -> None:
    rows = np.array([[3.0, 4.0], [3e-320, 4e-320], [3e300, 4e300], [0.0, 0.0]])
    unit = unit_rows(rows)
    # Subnormal entries keep about three digits, hence the wide bound for their row.
    assert np.allclose(unit[[0, 2]], [[0.6, 0.8]] * 2, atol=1e-15)
    assert np.allclose(unit[1], [0.6, 0.8], atol=1e-3)
    assert not unit[3].any()


def test_clusters_are_found_and_numbered_by_size() -> None:
    random = np.random.default_rng(0)
    centres = np.eye(3)
    rows = unit_rows(
        np.concatenate([centres[[at]] + 0.05 * random.normal(size=(n, 3)) for at, n in enumerate((3, 9, 6))])
    )
    found = cluster(0, rows, (3,))
    assert found.labels.tolist() == [2] * 3 + [0] * 9 + [1] * 6
    best = cluster(4, rows, (2, 3, 4, 5))
    assert best.silhouette > 0.8
