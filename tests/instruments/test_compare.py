"""Sections by optimal assignment, and the clauses that diverge."""

import itertools

import numpy as np
import pytest

from engine.instruments.compare import assign, compare
from engine.instruments.embed import load_embedder
from engine.instruments.embed.base import Embedded

LIVE = """# Honesty
- "Name the source of every claim."
- "Admit gaps in the evidence."

# Gardens
- "Water the beans at dusk."
"""
SHADOW = """# Beans and water
- "Water the beans at dusk."

# Claims and sources
- "Name the source of every claim."
- "Paint the fence in spring colours."

# Trains
- "Leave on the hour."
"""


def test_assignment_is_the_best_of_all_permutations():
    similarity = np.random.default_rng(11).normal(size=(4, 5))
    best = max(
        sum(similarity[row, column] for row, column in enumerate(columns))
        for columns in itertools.permutations(range(5), 4)
    )
    assert sum(similarity[pair] for pair in assign(similarity)) == pytest.approx(best)


def test_sections_find_their_counterparts_whatever_their_order():
    result = compare(LIVE, [SHADOW], load_embedder("hashing:4096"))
    (sections,) = result["sections"]
    matched = {pair["live"]: pair["shadow"] for pair in sections["matched"]}
    assert matched == {"Honesty": "Claims and sources", "Gardens": "Beans and water"}
    assert sections["live_only"] == []
    assert sections["shadow_only"] == ["Trains"]
    assert result["inventory"] == [
        [
            {"heading": "Beans and water", "clauses": 1},
            {"heading": "Claims and sources", "clauses": 2},
            {"heading": "Trains", "clauses": 1},
        ]
    ]


def test_a_pair_below_the_floor_is_no_counterpart():
    result = compare(LIVE, [SHADOW], load_embedder("hashing:4096"), floor=0.999)
    (sections,) = result["sections"]
    assert sections["matched"] == []
    assert sections["live_only"] == ["Honesty", "Gardens"]
    assert len(sections["shadow_only"]) == 3


def test_divergent_clauses_come_first_and_shared_ones_last():
    result = compare(LIVE, [SHADOW], load_embedder("hashing:4096"))
    live, shadow = result["divergent_clauses"]["live"], result["divergent_clauses"]["shadow"]
    assert live[0]["clause"] == "Admit gaps in the evidence."
    assert live[-1]["cosine"] == pytest.approx(1.0)
    assert shadow[0]["clause"] in ("Leave on the hour.", "Paint the fence in spring colours.")
    assert all(a["cosine"] <= b["cosine"] for a, b in itertools.pairwise(shadow))


def test_themes_are_matched_across_runs():
    result = compare(LIVE, [SHADOW, LIVE, SHADOW], load_embedder("hashing:4096"))
    themes = {theme["heading"]: theme for theme in result["themes"]}
    assert themes["Claims and sources"]["runs"] == 3
    assert {match["heading"] for match in themes["Claims and sources"]["matches"]} == {"Honesty", "Claims and sources"}
    assert themes["Trains"]["runs"] == 2
    assert result["similarity"]["max"] == pytest.approx(1.0)
    assert result["similarity"]["min"] < 1.0


def test_one_run_has_no_similarity_and_a_text_without_sections_no_match():
    result = compare(LIVE, ["plain prose only"], load_embedder("hashing"))
    assert result["similarity"] is None
    assert result["sections"][0]["live_only"] == ["Honesty", "Gardens"]


def test_an_embedder_that_is_down_gives_its_reason():
    class Down:
        id, revision, parameters = "down", "1", {}

        def embed(self, texts):
            return Embedded.failed("embed_unavailable", "no")

    assert compare(LIVE, [SHADOW], Down())["reason"] == "embed_unavailable"
