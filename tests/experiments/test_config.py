"""Every YAML composes, names what exists, and agrees with the schema and the planner's defaults."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from engine.base.errors import ConfigError
from experiments import orchestrate
from experiments.config import JobSettings, register_schema, settings_from
from experiments.overrides import DEVICES
from experiments.packs_path import installed_ids, pack_sha256
from experiments.planning import DEFAULT_CHOICES, settings_of_job

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
CHOICES = [
    (path.parent.name, path.stem) for group in ("identity", "language") for path in CONFIGS.glob(f"{group}/*.yaml")
]


def composed(*overrides: str) -> JobSettings:
    register_schema({})
    with initialize_config_module("configs", version_base="1.3"):
        return settings_from(OmegaConf.to_container(compose("config", overrides=list(overrides)), resolve=True))


@pytest.mark.parametrize(("group", "name"), CHOICES)
def test_every_choice_composes_to_the_pack_of_its_name(group: str, name: str) -> None:
    assert getattr(composed(f"{group}={name}"), group) == name
    assert pack_sha256(group, name, None)


@pytest.mark.parametrize("group", ["identity", "language"])
def test_every_shipped_pack_has_its_choice_and_a_choice_names_a_pack_and_no_more(group: str) -> None:
    assert sorted(name for kind, name in CHOICES if kind == group) == list(installed_ids(group, None))
    for path in CONFIGS.glob(f"{group}/*.yaml"):
        assert yaml.safe_load(path.read_text()) == {"pack": path.stem}


def test_the_planner_and_the_yaml_have_the_same_defaults() -> None:
    assert settings_of_job({}) == composed()
    assert {"identity": composed().identity, "language": composed().language} == DEFAULT_CHOICES


def test_no_yaml_has_a_safety_node_or_a_target() -> None:
    for path in CONFIGS.rglob("*.yaml"):
        keys = str(yaml.safe_load(path.read_text())).casefold()
        assert "safety" not in keys
        assert "_target_" not in keys


@pytest.mark.parametrize(
    "change",
    [
        {"seed": -1},
        {"seed": 2**32},
        {"steps": 0},
        {"steps": 100_000},
        {"alpha": 1.5},
        {"alpha": -0.1},
        {"alpha": float("nan")},
        {"perturb": float("inf")},
        {"perturb": -1.0},
        {"limit": 0},
        {"device": "abacus"},
        {"identity": "../x"},
        {"language": ""},
    ],
)
def test_settings_out_of_range_are_refused(change: dict[str, object]) -> None:
    assert DEVICES
    with pytest.raises(ConfigError):
        replace(settings_of_job({}), **change)


def test_a_misspelt_key_in_a_composition_is_refused_by_the_schema() -> None:
    with pytest.raises(Exception, match="sed"):
        composed("sed=1")


def test_what_hydra_prints_is_what_would_run(capsys: pytest.CaptureFixture[str]) -> None:
    from experiments.overrides import check_command_line

    line = check_command_line(["--cfg", "job", "identity=precision_first_v1", "prompts=/a,b.txt"], installed_ids)
    orchestrate.show_configuration(line)
    shown = yaml.safe_load(capsys.readouterr().out)
    assert shown["identity"] == {"pack": "precision_first_v1"}
    assert shown["prompt_file"] == "/a,b.txt"
