"""The second check refuses every way in which a composition can differ from what we asked Hydra for."""

import copy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_module
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from experiments import guard
from experiments.config import register_schema
from packs.errors import CoreError, SafetyOverrideError

ROOT = Path(__file__).resolve().parents[2]
Node = dict[str, Any]


@pytest.fixture(scope="module")
def node() -> Node:
    """Hydra's own node of a job, as Hydra composes it."""
    register_schema({})
    with initialize_config_module("configs", version_base="1.3"):
        config = compose("config", overrides=["seed=3", "hydra.mode=RUN"], return_hydra_config=True)
    HydraConfig.instance().set_config(config)
    hydra: Node = OmegaConf.to_container(config.hydra)  # type: ignore[assignment]
    # `compose` fills in what a job's launcher fills in, but for these.
    hydra["job"]["config_name"] = "config"
    return hydra


def test_what_we_ask_for_passes(node: Node) -> None:
    guard.check_composed(node)


def change(*path: str, to: object) -> Callable[[Node], None]:
    def apply(node: Node) -> None:
        for name in path[:-1]:
            node = node[name]
        node[path[-1]] = to

    return apply


def add_source(provider: str, schema: str, path: str) -> Callable[[Node], None]:
    return lambda node: node["runtime"]["config_sources"].append({"provider": provider, "schema": schema, "path": path})


TAMPERED = {
    "a folder from the command line": add_source("command-line", "file", "/tmp/evil"),
    "a search path": add_source("hydra.searchpath in main", "file", "/tmp/evil"),
    "a plugin's search path": add_source("plugin", "pkg", "hydra_plugins.evil.conf"),
    "no main source": change("runtime", "config_sources", to=[]),
    "hydra.searchpath": change("searchpath", to=["file:///tmp"]),
    "env_set": change("job", "env_set", to={"CORE_ALLOW_UNRATIFIED_SAFETY": "1"}),
    "env_copy": change("job", "env_copy", to=["X"]),
    "a callback": change("callbacks", to={"x": {"_target_": "evil.Callback"}}),
    "chdir": change("job", "chdir", to=True),
    "an output folder": change("output_subdir", to=".hydra"),
    "another primary configuration": change("job", "config_name", to="evil"),
    "another launcher": change("launcher", to={"_target_": "hydra_plugins.evil.Launcher"}),
    "a launcher without a target": change("launcher", to={}),
    "another sweeper": change("sweeper", to={"_target_": "os.system"}),
    "another environment": change("runtime", "choices", "hydra/env", to="evil"),
    "other logging": change("runtime", "choices", "hydra/job_logging", to="default"),
    "an unlisted launcher choice": change("runtime", "choices", "hydra/launcher", to="evil"),
    "a safety group": change("runtime", "choices", "safety", to="evil"),
    "no identity": lambda node: node["runtime"]["choices"].pop("identity"),
    "a task override with +": change("overrides", "task", to=["+safety=x"]),
    "a task override out of the tree": change("overrides", "task", to=["identity=../../x"]),
    "a hydra override": change("overrides", "hydra", to=["hydra.job.env_set.X=1"]),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_tampering_is_refused(node: Node, name: str) -> None:
    changed = copy.deepcopy(node)
    TAMPERED[name](changed)
    with pytest.raises(CoreError) as refusal:
        guard.check_composed(changed)
    assert isinstance(refusal.value, SafetyOverrideError)


def test_installed_plugins_are_where_they_belong() -> None:
    guard.check_plugin_locations()
    guard.check_config_package(ROOT)


def test_configs_from_elsewhere_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SafetyOverrideError, match="configs would be read from"):
        guard.check_config_package(tmp_path)


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        ("hydra_plugins/evil/__init__.py", "Hydra plugins in"),
        ("hydra/__init__.py", "hydra would be imported from"),
        ("omegaconf.py", "omegaconf would be imported from"),
    ],
)
def test_packages_in_the_working_directory_are_refused_without_being_imported(
    tmp_path: Path, planted: str, words: str
) -> None:
    file = tmp_path / planted
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("raise SystemExit('planted code ran')\n")
    code = "from experiments.guard import check_plugin_locations; check_plugin_locations()"
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert "SafetyOverrideError" in result.stderr
    assert words in result.stderr
    assert "planted code ran" not in result.stderr
