"""The summary's numbers against values worked out by hand, and the tables against what went into them."""

import csv
import io
import math
from pathlib import Path
from typing import Any

import pytest

from engine.base.errors import RecordError
from experiments.figures import figures, rendered
from experiments.results import csv_bytes, read_rows, to_table, write_table
from experiments.summary import divergence, motor_distance, summarise
from tests.experiments.rows import IDENTITY_MOTOR, refused, row

OTHER = "precision_first_v1"


def turned(angle: float) -> list[float]:
    return [math.cos(angle / 2), *[0.0] * 3, -math.sin(angle / 2), *[0.0] * 11]


def rows_of_two_packs() -> list[dict[str, Any]]:
    return [
        row("0001", alignment=0.2, hedge="strong"),
        row("0002", alignment=0.6, max_residual=3e-12),
        refused("0003"),
        row("0001", OTHER, alignment=0.9, tokens=["truth", "doubt"], final_motor=turned(math.pi)),
        row("0002", OTHER, alignment=0.7, flagged=True, final_motor=[-x for x in IDENTITY_MOTOR]),
        refused("0003", identity=OTHER),
    ]


def test_the_summary_of_two_packs() -> None:
    summary = summarise(rows_of_two_packs())
    default, other = summary["identities"]
    assert default["alignment_mean"] == pytest.approx(0.4)
    assert default["alignment_spread"] == pytest.approx(0.2)
    assert default["hedges"] == {"none": 1, "strong": 1}
    assert default["refusals"] == {"no_known_word": 1}
    assert default["worst_residual"] == 3e-12
    assert default["divergence_from_default"]["changed_paths"] == 0.0
    assert other["flagged"] == 1
    # Of the two prompts that anyone answered, one path changed; the motors are sqrt(2) and (up to sign) 0 apart.
    assert other["divergence_from_default"]["pairs"] == 2
    assert other["divergence_from_default"]["changed_paths"] == 0.5
    # truth, doubt against truth, known: one of three words in common; the other pair is the same.
    assert other["divergence_from_default"]["shared_words"] == pytest.approx((1 / 3 + 1) / 2)
    assert other["divergence_from_default"]["motor_distance"] == pytest.approx(math.sqrt(2) / 2)
    assert summary["divergence"]["en"]["changed_paths"] == [[0.0, 0.5], [0.5, 0.0]]


def test_a_refusal_on_one_side_is_a_changed_path() -> None:
    found = divergence([refused("0001")], [row("0001")])
    assert found == {"pairs": 1, "changed_paths": 1.0, "shared_words": 0.0, "motor_distance": None}


def test_rows_of_other_seeds_or_settings_are_not_paired() -> None:
    assert divergence([row("0001", seed=1)], [row("0001")])["pairs"] == 0
    assert divergence([row("0001", alpha=0.25)], [row("0001")])["changed_paths"] is None


def test_seeds_are_compared_with_the_lowest() -> None:
    rows = [row("0001", seed=seed, final_motor=turned(seed * 0.1)) for seed in (3, 1, 2)]
    (entry,) = summarise(rows)["identities"]
    near, far = (motor_distance(turned(0.1), turned(angle)) for angle in (0.2, 0.3))
    assert entry["seeds"] == 3
    assert entry["divergence_between_seeds"]["motor_distance"] == pytest.approx((near + far) / 2)
    assert summarise([row("0001")])["identities"][0]["divergence_between_seeds"] is None


def test_a_swept_setting_splits_the_summary() -> None:
    summary = summarise([row("0001", alpha=alpha) for alpha in (0.0, 1.0)])
    assert summary["swept_settings"] == ["alpha"]
    assert [entry["settings"] for entry in summary["identities"]] == [{"alpha": 0.0}, {"alpha": 1.0}]


def test_a_residual_that_is_not_finite_is_never_averaged_away() -> None:
    for bad in (math.nan, math.inf):
        (entry,) = summarise([row("0001"), row("0002", max_residual=bad, first_violation=3)])["identities"]
        assert entry["worst_residual"] == "not finite"
        assert entry["violations"] == 1


def test_nothing_answered_is_defined() -> None:
    (entry,) = summarise([refused("0001")])["identities"]
    assert (entry["alignment_mean"], entry["worst_residual"], entry["flagged"]) == (None, None, 0)
    assert summarise([])["identities"] == []


def test_the_table_reads_back_and_the_csv_says_the_same(tmp_path: Path) -> None:
    rows = rows_of_two_packs()
    write_table(tmp_path, rows)
    assert read_rows(tmp_path / "results.parquet") == [
        {name: values.get(name) for name in read_rows(tmp_path / "results.parquet")[0]} for values in rows
    ]
    lines = list(csv.DictReader(io.StringIO(csv_bytes(rows).decode("utf-8"))))
    assert [line["tokens"] for line in lines] == [values["tokens"] for values in rows]
    assert float(lines[1]["max_residual"]) == 3e-12


def test_column_types_do_not_depend_on_the_values() -> None:
    assert to_table([row()]).schema == to_table([refused("0001")]).schema


def test_a_row_without_a_column_is_refused() -> None:
    values = row()
    del values["safety_sha256"]
    with pytest.raises(RecordError, match="safety_sha256"):
        to_table([values])


@pytest.mark.parametrize("damage", ["missing", "truncated", "text"])
def test_a_damaged_table_is_a_record_error(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "results.parquet"
    write_table(tmp_path, [row()])
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:200] if damage == "truncated" else b"no table")
    with pytest.raises(RecordError):
        read_rows(path)


def test_figures_are_drawn_and_reproducible() -> None:
    rows = rows_of_two_packs()
    drawn = figures(rows, summarise(rows))
    assert set(drawn) == {"alignment", "residual", "divergence_en"}
    again = figures(rows, summarise(rows))
    for name, figure in drawn.items():
        assert rendered(figure, "png") == rendered(again[name], "png")
        assert rendered(figure, "svg") == rendered(again[name], "svg")
    assert figures([refused("0001")], summarise([refused("0001")])) == {}
