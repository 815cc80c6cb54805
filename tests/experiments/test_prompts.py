"""Prompt files: what is read, and one typed error for each way a file can be wrong."""

from pathlib import Path

import pytest

from engine.base.errors import ConfigError
from experiments import prompts
from experiments.packs_path import installed_ids
from experiments.prompts import Prompt, load_prompts


def test_the_shipped_questions_are_many_and_distinct() -> None:
    shipped = load_prompts(None, "en")
    assert len(shipped) >= 60
    assert len({prompt.text for prompt in shipped}) == len(shipped)
    assert len(load_prompts(None, "en", limit=5)) == 5


def test_every_shipped_language_has_shipped_questions() -> None:
    for language in installed_ids("language", None):
        assert load_prompts(None, language)


def test_text_has_a_prompt_a_line(tmp_path: Path) -> None:
    file = tmp_path / "p.txt"
    file.write_bytes("\ufeff# heading\r\nWhat is truth?\r\n\r\n  Wo\u2028rd  \nמה אמת\n".encode())
    assert load_prompts(str(file), "en") == (
        Prompt("0001", "What is truth?"),
        Prompt("0002", "Wo\u2028rd"),
        Prompt("0003", "מה אמת"),
    )


def test_jsonl_keeps_its_ids(tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text('{"id": "q-1", "text": "What is truth?"}\n\n{"id": "q-2", "text": " # no comment "}\n')
    assert load_prompts(str(file), "en") == (Prompt("q-1", "What is truth?"), Prompt("q-2", "# no comment"))


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("p.txt", b"", "no prompt"),
        ("p.txt", b"\n \n# only a comment\n", "no prompt"),
        ("p.txt", b"caf\xe9\n", "not UTF-8"),
        ("p.txt", "What?".encode("utf-16"), "not UTF-8"),
        ("p.txt", b"x" * 5000, "longer than"),
        ("p.jsonl", b"", "no prompt"),
        ("p.jsonl", b"What is truth?", "line 1"),
        ("p.jsonl", b'{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}', "twice"),
        ("p.jsonl", b'{"id": "a", "id": "b", "text": "x"}', "line 1"),
        ("p.jsonl", b'{"id": "a"}', "expected"),
        ("p.jsonl", b'{"id": "a", "text": "x", "safety": 1}', "expected"),
        ("p.jsonl", b'{"id": 1, "text": "x"}', "expected"),
        ("p.jsonl", b'{"id": "a", "text": ["x"]}', "expected"),
        ("p.jsonl", b'{"id": "../a", "text": "x"}', "an id is"),
        ("p.jsonl", b'{"id": "a", "text": "  "}', "empty"),
        ("p.jsonl", b'["a", "x"]', "line 1"),
        ("p.jsonl", b'{"id": "a", "text": "\\ud800"}', "line 1"),
    ],
)
def test_a_bad_file_is_a_config_error(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ConfigError, match=words):
        load_prompts(str(tmp_path / name), "en")


def test_a_missing_file_a_folder_and_a_large_file_are_config_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        load_prompts(str(tmp_path / "none.txt"), "en")
    with pytest.raises(ConfigError, match="no regular file"):
        load_prompts(str(tmp_path), "en")
    (tmp_path / "p.txt").write_text("What is truth?")
    monkeypatch.setattr(prompts, "MAX_FILE_BYTES", 3)
    with pytest.raises(ConfigError, match="larger than"):
        load_prompts(str(tmp_path / "p.txt"), "en")


def test_a_language_without_shipped_questions_says_so() -> None:
    with pytest.raises(ConfigError, match="prompts=FILE"):
        load_prompts(None, "tlh")
