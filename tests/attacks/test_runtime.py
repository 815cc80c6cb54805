"""Run the attack table of a running engine; every row must end as its table says."""

from pathlib import Path

import pytest

from tests.attacks import runtime_rows
from tests.attacks.rows import try_row


@pytest.mark.slow
def test_every_row_ends_as_expected(tmp_path: Path) -> None:
    outcomes = [try_row(row, tmp_path) for row in runtime_rows.rows()]
    assert [f"{o.row}: {o.verdict} {o.detail}" for o in outcomes if o.verdict != "as expected"] == []
    assert len(outcomes) >= 30
