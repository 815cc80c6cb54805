"""Run the attack tables of record logs and pattern files; every row must end as its table says."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.attacks import pattern_rows, record_rows
from tests.attacks.rows import Row, try_row

TABLES: dict[str, tuple[Callable[[], Iterator[Row]], int, int]] = {
    "records": (record_rows.rows, 1500, 700),
    "patterns": (pattern_rows.rows, 500, 40),
}
"""Each table with lower bounds on its rows and on those that must be refused, so that an emptied table fails."""


@pytest.mark.parametrize("table", TABLES)
def test_every_row_ends_as_expected(table: str, tmp_path: Path) -> None:
    make_rows, fewest, fewest_refused = TABLES[table]
    outcomes = []
    for number, row in enumerate(make_rows()):
        folder = tmp_path / str(number)
        folder.mkdir()
        outcomes.append(try_row(row, folder))
    failed = [f"{o.row}: {o.verdict} {o.detail}" for o in outcomes if o.verdict != "as expected"]
    assert failed == []
    assert len(outcomes) >= fewest
    assert len({str(outcome.row) for outcome in outcomes}) == len(outcomes)
    assert sum(outcome.row.expected is not None for outcome in outcomes) >= fewest_refused
