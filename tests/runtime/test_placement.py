"""An evaluation spread over devices makes the rows of one device, and says how far it is."""

import numpy as np
import pytest

import engine.runtime.evaluate as evaluate_module
from engine.field import data_mesh
from engine.runtime.settings import Placement

PROMPTS = ["What is truth?", "How does knowledge differ from opinion?", "What is zzyzx?", "What is wisdom?"]
EXACT = ("tokens", "surface", "status", "refusal", "hedge", "citations", "first_violation", "flagged")
ROUNDING = 1e-12
"""Twelve sandwiches of unit-sized motors at 64 ε a step each come to 2e-13; five times that."""


@pytest.fixture(scope="module")
def alone(runtime):
    return runtime.evaluate(PROMPTS, seeds=(0, 1, 2), perturb=0.1)


@pytest.mark.parametrize("devices", [1, 2, 4, 8])
def test_rows_do_not_depend_on_the_number_of_devices(runtime, alone, devices):
    table = runtime.evaluate(PROMPTS, seeds=(0, 1, 2), perturb=0.1, place=Placement(data_mesh(devices)))
    for name in EXACT:
        assert table.column(name) == alone.column(name)
    np.testing.assert_allclose(table.final_motors, alone.final_motors, atol=ROUNDING, rtol=0)
    np.testing.assert_allclose(table.residuals, alone.residuals, atol=ROUNDING, rtol=0)
    assert all(verdict.status.value != "violated" for row in table.verdicts for verdict in row)


def test_chunks_change_no_row_and_are_told(runtime, alone, monkeypatch):
    monkeypatch.setattr(evaluate_module, "CHUNK", 2)
    told = []
    place = Placement(data_mesh(2), lambda done, rows: told.append((done, rows)))
    table = runtime.evaluate(PROMPTS, seeds=(0, 1, 2), perturb=0.1, place=place)
    assert told == [(4, 9), (8, 9), (9, 9)], "three prompts can be answered, under three seeds, four rows a chunk"
    for name in EXACT:
        assert table.column(name) == alone.column(name)
    np.testing.assert_allclose(table.final_motors, alone.final_motors, atol=ROUNDING, rtol=0)
