"""The terminal session and the turn's text, on a real runtime; and `core chat` as a command."""

import argparse
import json

import pytest

from engine.cli import chat as chat_command
from engine.cli import repl
from engine.cli.turn import in_display_order
from engine.runtime import ChatRuntime
from packs.errors import SafetyPackError
from tests.runtime.conftest import with_identity


def options(**changes):
    given = {"verdicts": False, "cite": False, "visual": False, "log": None, "packs_path": None}
    return argparse.Namespace(**{**given, "identity": None, "language": "en", "once": None, "json": False, **changes})


@pytest.fixture
def session(runtime, monkeypatch):
    """A session whose loader makes real runtimes without reading the language pack again."""
    monkeypatch.setattr(
        repl, "load_chat", lambda identity, language, path: ChatRuntime(with_identity(runtime, identity))
    )
    return repl.Session(ChatRuntime(runtime), options())


def test_questions_are_answered_and_commands_show_more(session, capsys):
    assert session.handle("Does truth require coherence?")
    assert "requires coherence." in capsys.readouterr().out
    session.handle("/cite")
    assert "[1] No account can have the whole truth" in capsys.readouterr().out
    session.handle("/verdicts")
    shown = capsys.readouterr().out
    assert "alignment" in shown
    assert "preserve_versor_closure: upheld" in shown
    session.handle("What is wisdom?")
    assert "no_identity_override: upheld" in capsys.readouterr().out
    assert not session.handle("/quit")


def test_switching_identity_makes_another_runtime_and_leaves_the_old_one(session, capsys):
    before = session.chat.runtime
    digests = before.current_digests()
    session.handle("/identity precision_first_v1")
    assert "precision_first_v1 in en" in capsys.readouterr().out
    assert session.chat.runtime is not before
    assert before.current_digests() == digests


def test_mistakes_are_told_and_survived(session, capsys):
    for line, told in (
        ("/identity precision_fist_v1", "nearest: precision_first_v1"),
        ("/identity", "needs the id"),
        ("/frobnicate", "unknown command"),
        ("/save", "needs a file name"),
        ("/cite", "nothing was cited"),
        ("What is zzyzx?", ""),
        ("", ""),
    ):
        assert session.handle(line)
        assert told in capsys.readouterr().out
    assert session.chat.runtime.identity_id == "default_general_v1"


def test_a_conversation_is_saved_to_a_new_file_only(session, tmp_path, capsys):
    session.handle("What is truth?")
    file = tmp_path / "talk.jsonl"
    session.handle(f"/save {file}")
    (line,) = file.read_text("utf-8").splitlines()
    assert json.loads(line)["text"] == "What is truth?"
    assert file.stat().st_mode & 0o777 == 0o600
    session.handle(f"/save {file}")
    assert "not saved" in capsys.readouterr().out


def test_a_safety_pack_that_is_no_longer_trusted_ends_the_session(session, monkeypatch):
    def refuse(text):
        raise SafetyPackError("the safety pack changed while the engine ran")

    monkeypatch.setattr(session.chat, "chat", refuse)
    with pytest.raises(SafetyPackError):
        session.handle("What is truth?")


def test_once_prints_an_answer_or_a_refusal_with_its_exit_code(runtime, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(chat_command, "load_chat", lambda *_: ChatRuntime(runtime))
    log = tmp_path / "audit.jsonl"
    defaults = {"list_identity_packs": False, "show_safety_pack": False, "log": str(log)}
    assert chat_command.run(options(once="What is truth?", json=True, **defaults)) == 0
    assert json.loads(capsys.readouterr().out)["refusal"] is None
    assert chat_command.run(options(once="What is zzyzx?", **defaults)) == 1
    captured = capsys.readouterr()
    assert captured.err == "core chat: refused: no_known_word\n"
    records = [json.loads(line) for line in log.read_text("ascii").splitlines()]
    assert [record["verdict"] for record in records] == ["ok", "refused"]
    assert records[0]["safety_sha256"] == runtime.composition.safety.sha256
    assert chat_command.run(options(json=True, **defaults)) == 2


def test_listings_need_no_engine(capsys):
    base = {"list_identity_packs": True, "show_safety_pack": False}
    assert chat_command.run(options(json=True, **base)) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [pack["pack_id"] for pack in listed] == ["default_general_v1", "generosity_first_v1", "precision_first_v1"]
    assert chat_command.run(options(json=True, list_identity_packs=False, show_safety_pack=True)) == 0
    assert json.loads(capsys.readouterr().out)["pack_id"] == "core_safety_axes_v1"


def test_right_to_left_text_is_reordered_only_where_asked():
    assert in_display_order("שלום", "rtl", visual=True) == "םולש"
    assert in_display_order("שלום", "rtl", visual=False) == "שלום"
    assert in_display_order("peace", "ltr", visual=True) == "peace"
