"""What the documents say can be done: their Python runs, their links lead somewhere, their commands exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli.commands import build_parser

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUNNABLE = [
    ROOT / "README.md",
    *(ROOT / "docs" / name for name in ("field-closure.md", "performance.md", "tutorials/cluster.md")),
]
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\$ )?core ([a-z][a-z-]+)", re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    targets = [target for target in LINK.findall(document.read_text(encoding="utf-8")) if "://" not in target]
    missing = [target for target in targets if not (document.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("document", RUNNABLE, ids=lambda path: path.name)
def test_python_examples_run(document: Path, tmp_path: Path) -> None:
    blocks = PYTHON.findall(document.read_text(encoding="utf-8"))
    assert blocks
    code = "from engine.base.precision import enable_x64\nenable_x64()\n" + "\n".join(blocks)
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stderr


def test_commands_named_in_documents_exist() -> None:
    (commands,) = (action.choices for action in build_parser()._actions if action.choices and action.dest == "command")
    named = {name for path in DOCUMENTS for name in COMMAND.findall(path.read_text(encoding="utf-8"))}
    assert named
    assert named <= set(commands)
