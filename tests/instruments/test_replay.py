"""Replay derives what a record says, and names what it cannot derive."""

import json

import pytest

from engine.base.errors import RecordError
from engine.instruments import synthesize_shadow_constitution
from engine.instruments.records import append_record, read_log
from engine.instruments.replay import COSINE_TOLERANCE, verify_log
from tests.instruments.support import PlainGenerator, write_live, write_patterns


@pytest.fixture(scope="module")
def good_record(tmp_path_factory):
    root = tmp_path_factory.mktemp("replay")
    result = synthesize_shadow_constitution(
        write_live(root / "live"),
        write_patterns(root / "patterns.json"),
        log_path=root / "log.jsonl",
        embedder="hashing",
        generator=PlainGenerator(),
    )
    assert result.ok
    return dict(next(read_log(root / "log.jsonl")).record)


def verify(tmp_path, *records):
    path = tmp_path / "log.jsonl"
    for record in records:
        assert append_record(path, record)
    return verify_log(path)


def test_a_run_replays_whole(tmp_path, good_record):
    report = verify(tmp_path, good_record)
    (check,) = report.records
    assert set(check.checks.values()) == {"ok"}
    assert set(check.checks) == {"chain", "digests", "patterns", "lineage", "validation", "cosine"}
    assert report.ok
    json.dumps(report.as_dict())


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({"cosine_vs_current": 0.9}, "cosine"),
        ({"cosine_vs_current": None}, "cosine"),
        ({"output_sha256": "0" * 64}, "output"),
        ({"current_chars": 5}, "current"),
        ({"shadow_chars": 5}, "digests"),
        ({"pattern_ids": ["0" * 32] * 8}, "patterns"),
        ({"pattern_count": 9}, "patterns"),
        ({"validation": ["too_short: 3 characters"]}, "validation"),
        ({"verdict": "validation_failed"}, "validation"),
        ({"lineage": []}, "lineage"),
        ({"lineage": "nonsense"}, "lineage"),
        ({"pattern_ids": 5}, "lineage"),
    ],
)
def test_each_altered_field_fails_its_check(tmp_path, good_record, change, failing):
    report = verify(tmp_path, {**good_record, **change})
    (check,) = report.records
    assert check.checks[failing].startswith("failed")
    assert not report.ok


def test_a_lineage_to_a_pattern_outside_the_run_fails(tmp_path, good_record):
    lineage = [{**entry, "pattern_ids": ["0" * 32]} for entry in good_record["lineage"]]
    assert not verify(tmp_path, {**good_record, "lineage": lineage}).ok


def test_cosines_are_compared_within_the_tolerance(tmp_path, good_record):
    near = {**good_record, "cosine_vs_current": good_record["cosine_vs_current"] + COSINE_TOLERANCE / 2}
    far = {**good_record, "cosine_vs_current": good_record["cosine_vs_current"] + COSINE_TOLERANCE * 2}
    assert [check.ok for check in verify(tmp_path, near, far).records] == [True, False]


@pytest.mark.parametrize("model", ["ollama:nomic-embed-text", "openai:some-model", "no-such-embedder"])
def test_a_record_without_its_model_says_so_and_is_no_failure(tmp_path, good_record, model):
    report = verify(tmp_path, {**good_record, "embedding_model": model})
    assert report.records[0].checks["cosine"].startswith("not derivable")
    assert report.ok


def test_another_revision_of_the_model_is_not_compared(tmp_path, good_record):
    report = verify(tmp_path, {**good_record, "embedding_sha256": "0" * 64, "cosine_vs_current": 0.9})
    assert "another revision" in report.records[0].checks["cosine"]


def test_an_abstain_replays_with_nothing_to_derive(tmp_path):
    synthesize_shadow_constitution(
        None,
        write_patterns(tmp_path / "patterns.json"),
        log_path=tmp_path / "log.jsonl",
        embedder="hashing",
        generator=PlainGenerator(),
    )
    report = verify_log(tmp_path / "log.jsonl")
    assert report.ok
    assert report.records[0].verdict == "no_constitution_dir"
    assert all("not derivable" in value for name, value in report.records[0].checks.items() if name != "chain")


def test_a_torn_line_is_reported_and_a_broken_chain_raises(tmp_path, good_record):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"ts":"2026')
    report = verify(tmp_path, good_record)
    assert [check.verdict for check in report.records] == [None, "ok"]
    path.write_bytes(path.read_bytes().replace(b'{"ts":"2026\n', b""))
    with pytest.raises(RecordError, match="does not follow"):
        verify_log(path)


@pytest.mark.parametrize("name", ["absent", ""])
def test_a_log_that_is_not_there_is_a_record_error(tmp_path, name):
    with pytest.raises(RecordError):
        verify_log(tmp_path / name)
