"""A recorded plan is continued only with the engine, packs, prompts and jobs that it was begun with."""

from pathlib import Path

import pytest

from engine.base.errors import CheckpointMismatchError
from experiments.planning import require_same_run

PLAN = {
    "engine_version": "0.1.0",
    "safety_sha256": "a" * 64,
    "pack_sha256": {"identity": {"x": "b" * 64}, "language": {"en": "c" * 64}},
    "prompts_sha256": {"en": "d" * 64},
    "jobs": [{"seed": 0}],
    "planned_at": "2026-01-01T00:00:00Z",
}


@pytest.mark.parametrize(
    "change",
    [
        {"engine_version": "0.0.9"},
        {"safety_sha256": "0" * 64},
        {"pack_sha256": {"identity": {"x": "0" * 64}, "language": {"en": "c" * 64}}},
        {"prompts_sha256": {"en": "0" * 64}},
        {"jobs": []},
        {"jobs": [{"seed": 1}]},
        {"jobs": None},
    ],
)
def test_a_changed_run_is_refused_and_both_sides_are_named(change: dict[str, object]) -> None:
    (name,) = change
    with pytest.raises(CheckpointMismatchError, match=f"another {name}: .*, now "):
        require_same_run(Path("run"), {**PLAN, **change}, PLAN)


def test_the_time_of_planning_does_not_matter() -> None:
    require_same_run(Path("run"), {**PLAN, "planned_at": "1999-01-01T00:00:00Z"}, PLAN)
