"""One job of a sweep: check what Hydra composed, load the runtime, evaluate the prompts, write the job's folder.

The outcome of a job is its `status.json`; launchers report only the first failure of a sweep and may lose the rest.
"""

import functools
import hashlib
import importlib.metadata
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from engine import __version__
from engine.base.errors import CheckpointMismatchError, ClusterError, CoreError
from experiments.cluster import joined, tell, watched
from experiments.config import JobSettings, settings_from
from experiments.guard import check_composed, check_config_package, check_plugin_locations
from experiments.progress import Progress
from experiments.prompts import Prompt, load_prompts
from experiments.rundir import PLAN, RESULTS, STATUS, file_sha256, finished, read_json, write_bytes, write_json
from experiments.segments import Gathered, Segments, forget_segments, run_segments, settings_sha256
from packs.errors import SafetyOverrideError

LOG = logging.getLogger("corefield.sweep")


def run_job(composed: Any) -> None:
    """Run the job that Hydra composed; the task function of the Hydra application, also in launchers' children.

    A `CoreError` is the job's outcome and is written to its status; any other exception is written there and raised.
    """
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import OmegaConf

    # Unresolved: Hydra's own node holds interpolations that have a value in a multirun only.
    hydra: dict[str, Any] = OmegaConf.to_container(HydraConfig.get(), resolve=False)  # type: ignore[assignment]
    folder = Path(hydra["runtime"]["output_dir"])
    with _logging_to(folder / "job.log"), _status_of(folder) as status:
        root = Path(__file__).resolve().parent.parent
        check_plugin_locations()
        check_config_package(root)
        check_composed(hydra)
        settings = settings_from(OmegaConf.to_container(composed, resolve=True))  # type: ignore[arg-type]
        plan = read_json(folder.parent.parent / PLAN)
        job = _planned_job(plan, folder.name, settings)
        if _is_done(folder, settings, plan):
            status.update(read_json(folder / STATUS))
        else:
            _run(folder, settings, plan, status)
            _say_done(job, len(plan["jobs"]), settings, status)
    # Only now: the status that says so is on the disk.
    if status["state"] == "done":
        forget_segments(folder)


def evaluate(
    settings: JobSettings, prompts: Sequence[Prompt], folder: Path | None = None
) -> tuple[list[dict[str, Any]], list[float | None], int]:
    """Return the result rows of `prompts` in their order, the worst closure residual at each step, and the progress.

    The residual of a step is None where a state was not finite. With `checkpoint.every` the prompts are evaluated
    segment after segment, and in a `folder` each is made durable; the progress is the number of prompts that an earlier
    attempt at this job had made.
    """
    from experiments.device import use_device

    device = use_device(settings.device, settings.compilation_cache, devices=settings.devices)
    import jax

    with jax.default_device(device), watched():
        runtime = _load_runtime(settings.identity, settings.language, settings.packs_path)
        columns = {"alpha": settings.alpha, "perturb": settings.perturb, "max_steps": settings.steps}
        progress = Progress(len(prompts))
        place_of = {prompt.prompt_id: number for number, prompt in enumerate(prompts)}

        def part(some: Sequence[Prompt]) -> Any:
            pairs = [(prompt.prompt_id, prompt.text) for prompt in some]
            if joined() is not None:
                tell({"settings": settings.as_dict(), "prompts": pairs, "same": same_everywhere(runtime)})
            begin = place_of[some[0].prompt_id] if some else 0
            table = evaluate_part(runtime, settings, pairs, progress.part(begin, len(some)))
            return replace(table, rows=[{**row, **columns} for row in table.rows])

        every = settings.checkpoint_every or len(prompts)
        if settings.checkpoint_every is None or folder is None:
            tables = [part(prompts[begin : begin + every]) for begin in range(0, len(prompts), every)]
            rows = [row for table in tables for row in table.rows]
            gathered = Gathered(rows, np.concatenate([table.residuals for table in tables]).max(axis=0), 0)
        else:
            gathered = run_segments(_segments(settings, prompts, folder, runtime, device), prompts, part)
    # Not `isfinite` of a maximum alone: NumPy's maximum keeps a NaN, and a NaN is not below infinity.
    worst = [float(value) if value < np.inf else None for value in gathered.residuals]
    return gathered.rows, worst, gathered.resumed_at


def evaluate_part(
    runtime: Any,
    settings: JobSettings,
    prompts: Sequence[tuple[str, str]],
    progress: Callable[[int, int], None] | None = None,
) -> Any:
    """Return the result table of (id, text) prompts under a job's settings, on the devices that the job asks for."""
    from experiments.device import placement

    return runtime.evaluate(
        prompts,
        seeds=(settings.seed,),
        perturb=settings.perturb,
        alpha=settings.alpha,
        steps=settings.steps,
        place=placement(settings.device, settings.devices, progress),
    )


def same_everywhere(runtime: Any) -> dict[str, str]:
    """Return what has to be the same in every process of a cluster: packs, engine and compiler."""
    composition = runtime.composition
    return {
        "safety_sha256": composition.safety.sha256,
        "identity_sha256": composition.identity.sha256,
        "language_sha256": composition.language.sha256,
        "corefield": __version__,
        "jaxlib": importlib.metadata.version("jaxlib"),
    }


def follow_part(message: Mapping[str, Any]) -> None:
    """Evaluate, as a follower of a cluster, what the leader evaluates at this moment, and keep nothing of it.

    Raises `ClusterError` where this process has other packs or other software than the leader.
    """
    from experiments.device import use_device

    settings, same, prompts = _understood(message)
    use_device(settings.device, settings.compilation_cache)
    runtime = _load_runtime(settings.identity, settings.language, settings.packs_path)
    for name, here in same_everywhere(runtime).items():
        if same.get(name) != here:
            raise ClusterError(f"{name} is {same.get(name)} in the leading process, {here} in this one")
    evaluate_part(runtime, settings, prompts)


def _understood(message: Any) -> tuple[JobSettings, Mapping[str, Any], list[tuple[str, str]]]:
    """Return settings, digests and prompts of what the leader said; it came over a network and may be anything."""
    try:
        settings, same, prompts = JobSettings(**message["settings"]), dict(message["same"]), list(message["prompts"])
        return settings, same, [(str(name), str(text)) for name, text in prompts]
    except (KeyError, TypeError, ValueError) as error:
        raise ClusterError(f"the leading process said something that this one does not understand: {error}") from error


def _segments(settings: JobSettings, prompts: Sequence[Prompt], folder: Path, runtime: Any, device: Any) -> Segments:
    """Bind a job's checkpoints to its packs, settings, prompts, software and devices."""
    from engine.runtime.compose import recheck_safety
    from experiments.device import describe_devices

    composition, config = runtime.composition, settings.as_dict()
    assert settings.checkpoint_every is not None
    return Segments(
        folder=folder,
        every=settings.checkpoint_every,
        keep=settings.checkpoint_keep,
        asynchronous=settings.checkpoint_asynchronous,
        seed=settings.seed,
        steps=settings.steps,
        digests={
            "safety_sha256": composition.safety.sha256,
            "identity_sha256": composition.identity.sha256,
            "language_sha256": composition.language.sha256,
            "ratified": str(composition.ratified),
            "settings_sha256": settings_sha256(config),
            "prompts_sha256": prompts_sha256(prompts),
            **describe_devices(device),
        },
        config=config,
        guard=lambda: recheck_safety(composition),
    )


@functools.lru_cache(maxsize=16)
def _load_runtime(identity: str, language: str, packs_path: str | None) -> Any:
    """Load a runtime once per process: the jobs of a sweep share it, and with it the compiled program."""
    from engine.runtime import Runtime

    return Runtime.load(identity=identity, language=language, packs_path=packs_path)


def prompts_sha256(prompts: Sequence[Prompt]) -> str:
    """Return a digest of ids and texts, by which a resumed run knows that its prompts have not changed."""
    text = json.dumps([[prompt.prompt_id, prompt.text] for prompt in prompts])
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _run(folder: Path, settings: JobSettings, plan: Mapping[str, Any], status: dict[str, Any]) -> None:
    from experiments.results import write_table

    # An earlier attempt's status must not speak for this one if it is killed.
    write_json(folder / STATUS, {"state": "running", "job": folder.name})
    prompts = load_prompts(settings.prompts, settings.language, settings.limit)
    digest = prompts_sha256(prompts)
    expected = plan["prompts_sha256"].get(settings.language)
    if digest != expected:
        raise CheckpointMismatchError(
            f"the prompts have changed since this run was planned: sha256 {digest}, planned {expected}"
        )
    started = time.perf_counter()
    rows, residual_by_step, resumed_at = evaluate(settings, prompts, folder)
    _check_safety_digest(rows, plan)
    write_table(folder, rows)
    _write_config(folder, settings)
    status.update(
        state="done",
        rows=len(rows),
        refused=sum(row["status"] != "ok" for row in rows),
        seconds=round(time.perf_counter() - started, 3),
        results_sha256=file_sha256(folder / RESULTS),
        settings=settings.as_dict(),
        residual_by_step=residual_by_step,
        resumed_at=resumed_at,
    )
    LOG.info("%d rows in %.3f s", len(rows), status["seconds"])


def _check_safety_digest(rows: Sequence[Mapping[str, Any]], plan: Mapping[str, Any]) -> None:
    odd = {row["safety_sha256"] for row in rows} - {plan["safety_sha256"]}
    if odd:
        raise SafetyOverrideError(f"rows were made under the safety pack {odd.pop()}, not {plan['safety_sha256']}")


def _planned_job(plan: Mapping[str, Any], number: str, settings: JobSettings) -> int:
    """Return the job's number. Raises `SafetyOverrideError` where Hydra composed another job than was planned."""
    jobs = plan["jobs"]
    if not number.isdecimal() or int(number) >= len(jobs) or jobs[int(number)] != settings.as_dict():
        raise SafetyOverrideError(f"job {number} is not the one that was planned: {settings.as_dict()}")
    return int(number)


def _is_done(folder: Path, settings: JobSettings, plan: Mapping[str, Any]) -> bool:
    """Return whether an earlier attempt finished this job and left its results undamaged."""
    status = finished(folder) if plan["resumed"] else None
    return status is not None and status.get("settings") == settings.as_dict()


def _write_config(folder: Path, settings: JobSettings) -> None:
    from omegaconf import OmegaConf

    text = OmegaConf.to_yaml(OmegaConf.create(settings.as_dict()))
    write_bytes(folder / "config.yaml", text.encode("utf-8"))


@contextmanager
def _status_of(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the job's status and write it whatever happens. A `CoreError` ends here; everything else is raised on."""
    status: dict[str, Any] = {"state": "running", "job": folder.name}
    try:
        yield status
    except CoreError as error:
        status.update(state="failed", error_type=type(error).__name__, error=str(error))
        LOG.error("%s: %s", type(error).__name__, error)
    except KeyboardInterrupt:
        status.update(state="interrupted")
        LOG.warning("interrupted")
        raise
    except BaseException as error:
        status.update(state="failed", error_type=type(error).__name__, error=str(error))
        LOG.exception("a bug or a fault of the machine")
        raise
    finally:
        write_json(folder / STATUS, status)


@contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    handler = logging.FileHandler(path, encoding="utf-8")
    formatter = logging.Formatter("%(asctime)sZ %(levelname)s %(message)s")
    formatter.converter = time.gmtime
    formatter.default_msec_format = None
    handler.setFormatter(formatter)
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
    try:
        yield
    finally:
        LOG.removeHandler(handler)
        handler.close()


def _say_done(job: int, total: int, settings: JobSettings, status: Mapping[str, Any]) -> None:
    from rich.console import Console

    Console(stderr=True, highlight=False).print(
        f"[{job + 1}/{total}] {settings.identity} {settings.language} seed {settings.seed}: "
        f"{status['rows']} rows in {status['seconds']:.2f} s",
        markup=False,
    )
