"""Drive Hydra through a plan and gather what its jobs left: one table, one summary, one manifest."""

import fcntl
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.base.errors import ConfigError
from experiments import overrides, rundir
from experiments.cluster import Cluster, dismiss, join
from experiments.config import register_schema
from experiments.guard import check_config_package, check_plugin_locations
from experiments.job import run_job
from experiments.overrides import CommandLine
from experiments.packs_path import GROUPS, new_ids
from experiments.planning import Plan, make_plan, read_plan
from experiments.results import Row, read_rows, write_table
from experiments.summary import summarise
from packs.errors import SafetyPackError
from packs.safety.loader import SafetyPack, load_safety_pack

OWN_LAUNCHERS = ("submitit", "ray")
"""Libraries that our own launchers stand on (`experiments.launchers`)."""


@dataclass(frozen=True)
class Outcome:
    """A finished sweep: its folder, its summary, and whether every planned job is done."""

    folder: Path
    summary: dict[str, Any]
    ok: bool


def sweep(line: CommandLine, safety: SafetyPack) -> Outcome:
    """Run every job of a checked command line, or what is left of a recorded run, and gather the results."""
    _check_installation()
    _require_plugin("launcher", line.single("hydra/launcher"))
    resume = line.single("resume")
    _join_cluster(line)
    if resume is not None:
        folder = Path(resume)
        plan = read_plan(folder, safety)
        plan = replace(plan, line=plan.line.with_launcher_of(line))
    else:
        plan = make_plan(line, safety)
        overrides.quoted_path(os.getcwd())
        folder = rundir.create_run_folder(line.single("hydra.sweep.dir" if line.multirun else "hydra.run.dir"))
    retries = int(line.single("retries") or 0)
    with locked(folder):
        try:
            attempts = _run_jobs(plan, folder, retries, resumed=resume is not None)
        except KeyboardInterrupt:
            rundir.write_json(folder / rundir.STATUS, {"state": "interrupted"})
            sys.stderr.write(f"core sweep: stopped; continue with: core sweep resume={folder}\n")
            raise
        except Exception:
            # A bug: what is done is gathered first, then it shows.
            gather(plan, folder)
            raise
        outcome = gather(plan, folder, attempts)
    dismiss()
    if load_safety_pack().sha256 != safety.sha256:
        raise SafetyPackError("the safety pack changed while the sweep ran; its results are not to be used")
    return outcome


def _join_cluster(line: CommandLine) -> None:
    """Join, as its leader, the cluster that a command line names, before anything looks for a device."""
    coordinator = line.single("cluster.coordinator")
    if coordinator is None:
        return
    from engine.base.precision import enable_x64

    enable_x64()
    timeout = int(line.single("cluster.timeout_s") or Cluster.timeout_s)
    join(Cluster(coordinator, int(line.single("cluster.processes") or 0), 0, timeout), line.single("device") or "cpu")


def _run_jobs(plan: Plan, folder: Path, retries: int, *, resumed: bool) -> dict[int, int]:
    """Run the jobs, and those that were lost or failed up to `retries` times more; return attempts by job number.

    A job that is done is not run again, and one with a checkpoint goes on from it.
    """
    missing = list(range(len(plan.jobs)))
    attempts = dict.fromkeys(missing, 0)
    for attempt in range(retries + 1):
        rundir.write_json(folder / rundir.PLAN, plan.document(resumed=resumed or attempt > 0))
        try:
            _run_hydra(plan, folder)
        except BrokenExecutor:
            # A launcher lost a worker process; the jobs without a status are named in the summary.
            sys.stderr.write("core sweep: a worker process died\n")
        attempts.update(dict.fromkeys(missing, attempt + 1))
        missing = [number for number in missing if _job_status(folder / "jobs" / str(number))["state"] != "done"]
        if not missing:
            break
        if attempt < retries:
            names = ", ".join(map(str, missing))
            sys.stderr.write(f"core sweep: jobs without a result: {names}; retry {attempt + 1} of {retries}\n")
    return attempts


def show_configuration(line: CommandLine) -> None:
    """Print the configuration that Hydra composes for a command line's first job, and run nothing."""
    _check_installation()
    flags = ["--cfg", str(line.show), *(["--resolve"] if line.resolve else [])]
    _call_hydra(line, [*flags, *line.hydra_arguments(first_job=True)])


def gather(plan: Plan, folder: Path, attempts: Mapping[int, int] | None = None) -> Outcome:
    """Read every job's folder and write the run's table, summary, figures, status and manifest.

    `attempts` says how often each job was run; those that took more than one are named in the summary.
    """
    from experiments.device import describe_environment, use_device
    from experiments.figures import draw_figures

    rows: list[Row] = []
    failed = []
    retried = []
    for number, settings in enumerate(plan.jobs):
        status = _job_status(folder / "jobs" / str(number))
        if (attempts or {}).get(number, 1) > 1:
            made = {"attempts": (attempts or {})[number], "state": status["state"]}
            retried.append({"job": number, **made, "resumed_at": status.get("resumed_at", 0)})
        if status["state"] == "done":
            rows += read_rows(folder / "jobs" / str(number) / rundir.RESULTS)
        else:
            what = f"identity={settings.identity} language={settings.language} seed={settings.seed}"
            failed.append({"job": number, "state": status["state"], "what": what, "error": _error_of(status)})
    summary = {**summarise(rows), "jobs": len(plan.jobs), "failed_jobs": failed, "retried_jobs": retried}
    write_table(folder, rows)
    draw_figures(folder / "figures", rows, summary)
    rundir.write_json(folder / "summary.json", summary)
    first = plan.jobs[0]
    environment = describe_environment(use_device(first.device), devices=first.devices)
    packs = {"safety": {"sha256": plan.safety_sha256}, **plan.pack_sha256}
    rundir.write_json(folder / "environment.json", {**environment, "packs": packs})
    rundir.write_json(folder / rundir.STATUS, {"state": "failed" if failed else "done"})
    rundir.write_manifest(folder)
    return Outcome(folder, summary, ok=not failed)


def _job_status(folder: Path) -> dict[str, Any]:
    """Return a job's status; a job that left none, or died while it ran, is `lost`."""
    if not (folder / rundir.STATUS).is_file():
        return {"state": "lost", "error": "the job left no status: it was never started, or its process died"}
    status = rundir.read_json(folder / rundir.STATUS)
    if status.get("state") == "running":
        return {"state": "lost", "error": "the job's process died"}
    return status


def _error_of(status: Mapping[str, Any]) -> str:
    kind = status.get("error_type")
    text = str(status.get("error", status["state"]))
    return f"{kind}: {text}" if kind else text


def _run_hydra(plan: Plan, folder: Path) -> None:
    arguments = plan.line.hydra_arguments()
    if plan.line.multirun:
        arguments = ["--multirun", *arguments, f"hydra.sweep.dir={overrides.quoted_path(str(folder))}"]
    else:
        arguments.append(f"hydra.run.dir={overrides.quoted_path(str(folder / 'jobs' / '0'))}")
    _call_hydra(plan.line, arguments)


def _call_hydra(line: CommandLine, arguments: list[str]) -> None:
    """Hand `arguments` to Hydra. Its own argument reading and error printing are switched off for the call."""
    import hydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    packs_path = line.single("packs_path")
    register_schema({group: new_ids(group, packs_path) for group in GROUPS})
    application = hydra.main(version_base="1.3", config_path="pkg://configs", config_name="config")(run_job)
    with _replaced(sys, "argv", ["core-sweep", *arguments]), _environment_variable("HYDRA_FULL_ERROR", "1"):
        try:
            application()
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(f"Hydra could not compose the run: {error}") from error


def _check_installation() -> None:
    check_plugin_locations()
    check_config_package(Path(__file__).resolve().parent.parent)


def _require_plugin(kind: str, name: str | None) -> None:
    """Raise `ConfigError` where a launcher or sweeper was asked for whose plugin is not installed."""
    if name in (None, "basic"):
        return
    plugin = str(name).split("_")[0]
    library = plugin if plugin in OWN_LAUNCHERS else f"hydra_plugins.hydra_{plugin}_{kind}"
    if importlib.util.find_spec("hydra_plugins") is None or not importlib.util.find_spec(library):
        raise ConfigError(f"hydra/{kind}={name} is not installed: pip install 'corefield[{plugin}]'")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the run folder's lock, so that two processes never write one run. Raises `ConfigError` where it is taken."""
    with open(folder / rundir.LOCK, "w", encoding="utf-8") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigError(f"another process is writing {folder}") from error
        yield


@contextmanager
def _replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    previous = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, previous)


@contextmanager
def _environment_variable(name: str, value: str) -> Iterator[None]:
    previous = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if previous is None:
            del os.environ[name]
        else:
            os.environ[name] = previous
