"""Run the attack tables of pack files and of the process around the loader; every row must end as its table says."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.attacks import environment_rows, identity_rows, safety_rows
from tests.attacks.rows import Row, try_row

TABLES: dict[str, tuple[Callable[[], Iterator[Row]], int]] = {
    "safety": (safety_rows.rows, 1000),
    "identity": (identity_rows.rows, 500),
    "environment": (environment_rows.rows, 50),
}
"""Each table with a lower bound on its rows, so that an emptied table fails."""


@pytest.mark.parametrize("table", TABLES)
def test_every_row_ends_as_expected(table: str, tmp_path: Path) -> None:
    make_rows, fewest = TABLES[table]
    outcomes = []
    for number, row in enumerate(make_rows()):
        folder = tmp_path / str(number)
        folder.mkdir()
        outcomes.append(try_row(row, folder))
    failed = [f"{outcome.row}: {outcome.verdict} {outcome.detail}" for outcome in outcomes]
    assert [line for line, outcome in zip(failed, outcomes, strict=True) if outcome.verdict != "as expected"] == []
    assert len(outcomes) >= fewest
    assert len({str(outcome.row) for outcome in outcomes}) == len(outcomes)
    assert sum(outcome.row.expected is not None for outcome in outcomes) >= 0.7 * len(outcomes)


def test_judge_sees_acceptance_tracebacks_hangs_and_unclear_lines(tmp_path: Path) -> None:
    """The judge of the tables can itself fail a row, in each of the ways it is there to see."""

    def raises(error: Exception) -> Callable[[Path], object]:
        def act(folder: Path) -> object:
            raise error

        return act

    assert try_row(Row("t", "accepted", ValueError, lambda f: None), tmp_path).verdict == "unexpected"
    assert try_row(Row("t", "escape", ValueError, raises(KeyError("x"))), tmp_path).verdict == "traceback"
    assert try_row(Row("t", "subtype", ValueError, raises(UnicodeError("x"))), tmp_path).verdict == "traceback"
    assert try_row(Row("t", "refused", None, raises(ValueError("x"))), tmp_path).verdict == "traceback"
    assert try_row(Row("t", "two lines", ValueError, raises(ValueError("a\nb"))), tmp_path).verdict == "unexpected"
    assert try_row(Row("t", "silent", ValueError, raises(ValueError())), tmp_path).verdict == "unexpected"
    assert try_row(Row("t", "fine", ValueError, raises(ValueError("x"))), tmp_path).verdict == "as expected"


def test_judge_sees_a_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.attacks.rows.LONGEST_SECONDS", 1)

    def spin(folder: Path) -> None:
        swallowed = 0
        while True:
            try:
                for _ in range(10**9):
                    pass
            except Exception:  # noqa: BLE001 - a handler that swallows everything must not stop the alarm
                swallowed += 1

    assert try_row(Row("t", "spin", None, spin), tmp_path).verdict == "hang"
