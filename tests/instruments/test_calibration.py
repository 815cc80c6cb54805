"""Anchors, the calibration file, and the note that says when it no longer holds."""

import json

import pytest

from engine.base.errors import ConfigError
from engine.instruments.calibration import (
    measure_anchors,
    measure_references,
    read_calibration,
    read_texts,
    write_calibration,
)
from engine.instruments.constitution import read_constitution
from engine.instruments.embed import load_embedder
from engine.instruments.embed.base import Embedded
from engine.instruments.patterns import read_patterns
from engine.instruments.readings import distances
from tests.instruments.support import LIVE, TEXTS, write_live, write_patterns


@pytest.fixture
def constitution(tmp_path):
    return read_constitution(write_live(tmp_path / "live"))


@pytest.fixture
def store(tmp_path):
    return read_patterns(write_patterns(tmp_path / "patterns.json"))


def test_anchors_are_the_distances_of_their_texts(constitution, store):
    embedder = load_embedder("hashing")
    genre, unrelated = {"kin": '# Rules\n- "Say what is seen."'}, {"far": "bread and rye", "farther": "chess rook"}
    body = measure_anchors(constitution, store, embedder, unrelated=unrelated, same_genre=genre).body
    readings, _ = distances(embedder, constitution.text, [*unrelated.values(), *genre.values()])
    assert list(body["unrelated"].values()) + list(body["same_genre"].values()) == [r.value for r in readings]
    assert body["unrelated_band"] == [min(body["unrelated"].values()), max(body["unrelated"].values())]
    corpus, _ = distances(embedder, constitution.text, TEXTS)
    assert body["corpus_mean"] == pytest.approx(sum(r.value for r in corpus) / len(corpus), abs=1e-12)
    assert body["top_band"] == pytest.approx([min(r.value for r in corpus), max(r.value for r in corpus)], abs=1e-12)


def test_the_file_round_trips_and_notices_a_change(tmp_path, constitution, store):
    calibration = measure_anchors(constitution, store, load_embedder("hashing"))
    path = tmp_path / "calibration.json"
    write_calibration(calibration, path)
    assert read_calibration(path) == calibration
    body = json.loads(path.read_text())
    body["corpus_mean"] = 0.99
    path.write_text(json.dumps(body))
    with pytest.raises(ConfigError, match="altered"):
        read_calibration(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", "nope", '{"event": "calibration", "schema_version": "1.0.0"}'])
def test_another_file_is_no_calibration(tmp_path, text):
    path = tmp_path / "calibration.json"
    path.write_text(text)
    with pytest.raises(ConfigError):
        read_calibration(path)


def test_a_changed_embedder_setting_text_or_seed_raises_the_drift_note(tmp_path, constitution, store):
    embedder = load_embedder("hashing")
    calibration = measure_anchors(constitution, store, embedder)
    view = calibration.body["view_sha256"]
    assert calibration.drift(embedder, constitution.sha256, view) is None
    assert "hashing:64" in calibration.drift(load_embedder("hashing:64"), constitution.sha256, view)
    assert "live text" in calibration.drift(embedder, "0" * 64, view)
    assert "seed" in calibration.drift(embedder, constitution.sha256, "0" * 64)

    class Normalised:
        id, revision, parameters = embedder.id, embedder.revision, {**embedder.parameters, "normalisation": "l2"}
        embed = embedder.embed

    assert "normalisation" in calibration.drift(Normalised(), constitution.sha256, view)


def test_an_embedder_that_is_down_gives_null_anchors_and_reasons(constitution, store):
    class Down:
        id, revision, parameters = "down", "1", {}

        def embed(self, texts):
            return Embedded.failed("embed_unavailable", "no")

    calibration = measure_anchors(constitution, store, Down())
    assert set(calibration.body["unrelated"].values()) == {None}
    assert calibration.body["unrelated_band"] is None
    assert calibration.body["corpus_mean"] is None
    assert len(calibration.faults()) > 18


def test_references_alone_have_no_corpus(constitution):
    body = measure_references(constitution, load_embedder("hashing")).body
    assert body["corpus_mean"] is None
    assert body["top_band"] is None
    assert len(body["same_genre"]) >= 10


def test_a_users_own_folder_is_accepted_or_refused_with_one_line(tmp_path):
    folder = write_live(tmp_path / "own", LIVE)
    (folder / "b.txt").write_text("text")
    (folder / "empty.md").write_text(" ")
    assert list(read_texts(folder)) == ["b", "constitution"]
    (folder / "c.md").write_bytes(b"\xff")
    for bad in (folder, tmp_path / "absent", tmp_path):
        with pytest.raises(ConfigError):
            read_texts(bad)
