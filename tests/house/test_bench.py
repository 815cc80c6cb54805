"""The benchmarks' runner: figures by case, a table, a file, and the comparison of two files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.bench.__main__ import ORDER, figures, markdown, run
from scripts.bench.compare import compared, read


def test_a_row_is_split_into_its_case_and_its_measurements() -> None:
    lines = figures("products", {"work": "sandwich", "size": 10, "seconds": 0.5, "floors": 2.0})
    assert lines == [
        {"bench": "products", "case": "work=sandwich size=10", "metric": "seconds", "value": 0.5},
        {"bench": "products", "case": "work=sandwich size=10", "metric": "floors", "value": 2.0},
    ]
    assert markdown(lines).splitlines() == [
        "| case | seconds | floors |",
        "|---|---|---|",
        "| work=sandwich size=10 | 0.5 | 2 |",
    ]


def test_every_benchmark_is_there() -> None:
    folder = Path(__file__).parents[2] / "scripts" / "bench"
    assert all((folder / f"{name}.py").is_file() for name in ORDER)


def test_a_real_benchmark_is_run_and_its_memory_counted(tmp_path: Path) -> None:
    # In a process of its own, as users run it: a child's memory counts from that of the process that forked it.
    out = tmp_path / "figures"
    command = [sys.executable, "-m", "scripts.bench", "startup", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    assert "## startup" in done.stdout
    found = {metric: value for (_, _, metric), value in read(out).items()}
    assert found["interpreter"] > 0
    assert 1 < found["memory_mib"] < 4_096
    assert found["elapsed_s"] > 0


def test_a_benchmark_that_fails_gives_no_figures() -> None:
    assert run("startup", ("--no-such-flag",)) is None


def written(path: Path, floors: float, seconds: float) -> Path:
    lines = [{"machine": {}}, *figures("b", {"size": 1, "floors": floors, "seconds": seconds})]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(("floors", "code"), [(2.0, 0), (2.9, 0), (3.1, 1), (0.5, 0)])
def test_only_a_multiple_that_grew_fails_the_comparison(tmp_path: Path, floors: float, code: int) -> None:
    old, new = written(tmp_path / "old", 2.0, 1.0), written(tmp_path / "new", floors, 100.0)
    command = [sys.executable, "-m", "scripts.bench.compare", str(old), str(new)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert f"| b | size=1 | floors | 2 | {floors:.4g} | {floors / 2:.2f} |" in done.stdout
    assert ("worse" in done.stderr) == bool(code)


def test_what_is_only_in_one_file_is_shown(tmp_path: Path) -> None:
    rows, worse = compared({}, read(written(tmp_path / "new", 1.0, 1.0)), 1.5)
    assert not worse
    assert "| b | size=1 | floors | – | 1 | – |" in rows


@pytest.mark.parametrize("content", ["{", "[1]", '{"bench": 1}', "\xff"])
def test_what_is_no_file_of_figures_is_said_in_a_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "figures"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(SystemExit, match="no file of figures"):
        read(path)
