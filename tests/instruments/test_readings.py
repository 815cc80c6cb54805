"""A reading is a number or a reason: nothing that fails becomes 0.0."""

import math

import numpy as np
import pytest

from engine.instruments.cache import EmbeddingCache
from engine.instruments.embed import load_embedder
from engine.instruments.embed.base import Embedded, Embedder, embedder_digest
from engine.instruments.readings import Reading, checked, cosine, distances
from packs.errors import CoreError


class FixedEmbedder:
    """Answers with what it was given; for readings of answers that no well-behaved embedder gives."""

    id, revision, parameters = "fixed", "1", {}

    def __init__(self, answer):
        self.answer, self.calls = answer, []

    def embed(self, texts):
        self.calls.append(list(texts))
        return self.answer


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1.0, 1e200, 1e308])
def test_tiny_and_huge_vectors_keep_their_direction(scale):
    a, b = np.array([1.0, 0.0, 1.0]) * scale, np.array([1.0, 1.0, 0.0])
    # Denormals near 1e-320 have about three digits left.
    tolerance = 1e-3 if scale < 1e-300 else 4 * np.finfo(float).eps
    assert cosine(a, b).value == pytest.approx(0.5, abs=tolerance)


def test_a_vector_has_cosine_one_with_itself_and_no_more():
    vectors = np.random.default_rng(5).normal(size=(50, 7))
    values = [cosine(v, v).value for v in vectors]
    assert all(value is not None and 1.0 - 1e-15 <= value <= 1.0 for value in values)


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ([0.0, 0.0], [1.0, 0.0], "degenerate_vector"),
        ([1.0, 0.0], [math.nan, 0.0], "non_finite"),
        ([math.inf, 0.0], [1.0, 0.0], "non_finite"),
        ([1.0, 0.0], [1.0, 0.0, 0.0], "dimension_mismatch"),
    ],
)
def test_no_direction_gives_a_reason_and_no_number(a, b, reason):
    reading = cosine(np.array(a), np.array(b))
    assert reading.value is None
    assert reading.reason == reason


def test_a_reading_cannot_hold_both_a_number_and_a_fault():
    with pytest.raises(ValueError, match="exactly"):
        Reading(0.0, "embed_unavailable")
    with pytest.raises(ValueError, match="exactly"):
        Embedded(np.zeros((1, 2)), "embed_unavailable")


@pytest.mark.parametrize("shape", [(1, 3), (3, 3), (2, 0)])
def test_wrong_rows_are_malformed(shape):
    assert checked(Embedded(np.ones(shape), "ok"), 2).reason == "embed_malformed"


@pytest.mark.parametrize("reason", ["embed_unavailable", "embed_malformed", "truncated"])
def test_a_failed_embedding_gives_its_reason_for_every_text(reason):
    embedder = FixedEmbedder(Embedded.failed(reason, "why"))
    readings, _ = distances(embedder, "live", ["a", "b"])
    assert [(r.value, r.reason) for r in readings] == [(None, reason)] * 2
    assert embedder.calls == [["live", "a", "b"]], "both texts belong into one call"


def test_the_hashing_embedder_is_deterministic_and_knows_shared_words():
    embedder = load_embedder("hashing")
    assert isinstance(embedder, Embedder)
    readings, _ = distances(embedder, "one two three", ["one two three", "one two four", "five six", "..."])
    values = [reading.value for reading in readings]
    assert values[0] == pytest.approx(1.0, abs=1e-15)
    assert values[0] > values[1] > values[2]
    assert readings[3].reason == "degenerate_vector"


@pytest.mark.parametrize("spec", ["nothing", "", "hashing:x", "hashing:0"])
def test_an_unknown_or_malformed_embedder_is_refused(spec):
    with pytest.raises(CoreError):
        load_embedder(spec)


class Counting:
    """The hashing embedder, counting how many texts it was asked for."""

    def __init__(self):
        self.inner, self.asked = load_embedder("hashing:64"), 0
        self.id, self.revision, self.parameters = self.inner.id, self.inner.revision, self.inner.parameters

    def embed(self, texts):
        self.asked += len(texts)
        return self.inner.embed(texts)


def test_the_cache_embeds_each_text_once_on_disk_too(tmp_path):
    embedder, texts = Counting(), ["a b", "c d", "a b"]
    first = EmbeddingCache(tmp_path).embed(embedder, texts).vectors
    assert embedder.asked == 2
    again = EmbeddingCache(tmp_path).embed(embedder, texts).vectors
    assert embedder.asked == 2
    np.testing.assert_array_equal(first, again)
    assert embedder_digest(embedder) == embedder_digest(embedder.inner)


def test_a_damaged_cache_entry_is_embedded_again(tmp_path):
    embedder = Counting()
    good = EmbeddingCache(tmp_path).embed(embedder, ["a b"]).vectors
    (entry,) = tmp_path.rglob("*.npy")
    for damage in (b"", entry.read_bytes()[:-1], entry.read_bytes()[:-1] + b"\x01", b"\x80\x04."):
        entry.write_bytes(damage)
        np.testing.assert_array_equal(EmbeddingCache(tmp_path).embed(embedder, ["a b"]).vectors, good)
    assert embedder.asked == 5


def test_a_cache_of_another_embedder_is_not_used(tmp_path):
    EmbeddingCache(tmp_path).embed(load_embedder("hashing:64"), ["a b"])
    assert EmbeddingCache(tmp_path).embed(load_embedder("hashing:32"), ["a b"]).vectors.shape == (1, 32)
