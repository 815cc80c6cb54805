"""The search over a draft's weights, with the real Optuna: deterministic, and a stopped one goes on where it was."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.base.errors import ConfigError
from experiments import tune
from packs.errors import IdentityPackError
from tests.attacks.workspace import IDENTITY_PACK

pytest.importorskip("optuna", reason="optuna is not installed")
DRAFT_ID = "draft_pack_v1"


@pytest.fixture
def draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CORE_ALLOW_UNRATIFIED_IDENTITY", "1")
    path = tmp_path / f"{DRAFT_ID}.json"
    path.write_text(json.dumps({**json.loads(IDENTITY_PACK), "pack_id": DRAFT_ID}))
    return path


def search(draft: Path, name: str, trials: int, target: float = 0.9) -> dict[str, Any]:
    study = draft.parent / name
    arguments = ["--target", str(target), "--study", str(study), "--trials", str(trials), "--limit", "4"]
    assert tune.run([str(draft), *arguments]) == 0
    found: dict[str, Any] = json.loads((study / "best.json").read_text())
    return found


@pytest.mark.slow
def test_a_study_that_was_stopped_goes_on_with_the_values_it_would_have_had(
    draft: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = search(draft, "whole", 3)
    assert capsys.readouterr().out.startswith(f"NOT RATIFIED: {DRAFT_ID}")
    assert search(draft, "parts", 1)["values"] == whole["values"][:1]
    assert search(draft, "parts", 3) == whole
    assert whole["ratified"] is False
    assert len(set(whole["values"])) > 1, "the weights have to matter"
    assert abs(whole["alignment"] - 0.9) == min(whole["values"]) < max(whole["values"])
    with pytest.raises(ConfigError, match=r"begun with target 0\.9, now 0\.5"):
        search(draft, "parts", 3, target=0.5)


def test_a_draft_needs_the_hatch_that_its_user_opens(draft: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CORE_ALLOW_UNRATIFIED_IDENTITY")
    with pytest.raises(IdentityPackError):
        search(draft, "study", 1)


def test_a_target_out_of_range_is_refused(draft: Path) -> None:
    with pytest.raises(ConfigError, match="--target"):
        search(draft, "study", 1, target=1.5)
