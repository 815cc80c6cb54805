"""Plan a sweep before anything is written: every job's settings, with packs, prompts and device accepted."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.base.errors import CheckpointMismatchError, RecordError
from experiments.config import JobSettings, SweepConf
from experiments.job import prompts_sha256
from experiments.overrides import INTEGER_KEYS, CommandLine, check_command_line
from experiments.packs_path import GROUPS, installed_ids, new_ids, pack_sha256
from experiments.prompts import load_prompts
from experiments.rundir import PLAN, SCHEMA_VERSION, read_json
from packs.safety.loader import SafetyPack


@dataclass(frozen=True)
class Plan:
    """A checked sweep: the command line, each job's settings, and the digests of all it will read."""

    line: CommandLine
    jobs: tuple[JobSettings, ...]
    safety_sha256: str
    pack_sha256: Mapping[str, Mapping[str, str]]
    prompts_sha256: Mapping[str, str]

    def document(self, *, resumed: bool) -> dict[str, Any]:
        """Return what `plan.json` says."""
        from engine import __version__

        return {
            "schema_version": SCHEMA_VERSION,
            "engine_version": __version__,
            "planned_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "overrides": self.line.recorded(),
            "multirun": self.line.multirun,
            "resumed": resumed,
            "jobs": [job.as_dict() for job in self.jobs],
            "safety_sha256": self.safety_sha256,
            "pack_sha256": self.pack_sha256,
            "prompts_sha256": self.prompts_sha256,
        }


def make_plan(line: CommandLine, safety: SafetyPack) -> Plan:
    """Return the plan of a command line.

    Raises the typed error of whatever is refused: a setting out of range, a pack that does not load, prompts that
    cannot be read, a device that is not there.
    """
    jobs = tuple(settings_of_job(values) for values in line.jobs())
    packs_path = line.single("packs_path")
    for group in GROUPS:
        new_ids(group, packs_path)
        for name in {getattr(job, group) for job in jobs} - set(installed_ids(group, packs_path)):
            pack_sha256(group, name, packs_path)  # raises, with the nearest names
    prompts = {
        job.language: prompts_sha256(load_prompts(job.prompts, job.language, job.limit))
        for job in {job.language: job for job in jobs}.values()
    }
    _require_device(jobs[0].device, jobs[0].devices)
    digests = {
        group: {
            name: pack_sha256(group, name, packs_path) for name in dict.fromkeys(getattr(job, group) for job in jobs)
        }
        for group in GROUPS
    }
    return Plan(line, jobs, safety.sha256, digests, prompts)


def read_plan(folder: Path, safety: SafetyPack) -> Plan:
    """Return the plan recorded in a run folder, checked as if its command line were typed now.

    Raises `RecordError` where there is none, and `CheckpointMismatchError` where packs, prompts or engine are no longer
    the ones that the run began with.
    """
    if not (folder / PLAN).is_file():
        raise RecordError(f"{folder} is no run folder: it has no {PLAN}")
    recorded = read_json(folder / PLAN)
    overrides, multirun = recorded.get("overrides"), recorded.get("multirun")
    if not isinstance(overrides, list) or not all(isinstance(item, str) for item in overrides):
        raise RecordError(f"{folder / PLAN} holds no overrides")
    line = check_command_line([*overrides, *(["-m"] if multirun else [])], installed_ids)
    plan = make_plan(line, safety)
    require_same_run(folder, recorded, plan.document(resumed=True))
    return plan


def require_same_run(folder: Path, recorded: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise `CheckpointMismatchError`, which names both sides, where a recorded plan cannot be continued."""
    for name in ("engine_version", "safety_sha256", "pack_sha256", "prompts_sha256", "jobs"):
        if recorded.get(name) != now[name]:
            raise CheckpointMismatchError(
                f"{folder} was begun with another {name}: {_short(recorded.get(name))}, now {_short(now[name])}"
            )


def settings_of_job(values: Mapping[str, str]) -> JobSettings:
    """Return a job's settings from plain texts; what is not given has the default of the schema."""
    defaults = SweepConf()
    whole = {name: int(values[name]) for name in INTEGER_KEYS if name in values}
    real = {name: float(values[name]) for name in ("alpha", "perturb") if name in values}
    return JobSettings(
        identity=values.get("identity", DEFAULT_CHOICES["identity"]),
        language=values.get("language", DEFAULT_CHOICES["language"]),
        prompts=values.get("prompts"),
        packs_path=values.get("packs_path"),
        device=values.get("device", defaults.device),
        limit=whole.get("limit", defaults.limit),
        seed=whole.get("seed", defaults.seed),
        steps=whole.get("steps", defaults.steps),
        alpha=real.get("alpha", defaults.alpha),
        perturb=real.get("perturb", defaults.perturb),
        checkpoint_every=whole.get("checkpoint.every", defaults.checkpoint.every),
        checkpoint_keep=whole.get("checkpoint.keep", defaults.checkpoint.keep),
        checkpoint_asynchronous=values.get("checkpoint.asynchronous", "false") == "true",
        compilation_cache=values.get("compilation_cache"),
        devices=whole.get("devices", defaults.devices),
    )


DEFAULT_CHOICES = {"identity": "default_general_v1", "language": "en"}
"""The group choices of `configs/config.yaml`; a test compares them."""


def _require_device(kind: str, devices: int) -> None:
    from experiments.device import use_device

    use_device(kind, devices=devices)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
