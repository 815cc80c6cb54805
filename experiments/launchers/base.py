"""What the launchers of our own share: which jobs are to run, and what a worker does with one.

A worker's answer is its job's `status.json` and nothing else. A launcher therefore waits for every job, whatever became
of the others, and raises for none: `experiments.orchestrate` reads the statuses, names what failed or was lost, and
runs it again where `retries` allow. Jobs that are done are not handed out a second time.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, run_job, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext
from omegaconf import OmegaConf, open_dict

from experiments import rundir

STOP_SECONDS = 30.0
"""How long jobs may take to end after they were told to, before they are ended."""


@dataclass(frozen=True)
class Task:
    """One job, ready to be sent to a worker: call it there. It is pickled with the checked configuration in it."""

    hydra_context: HydraContext
    task_function: Callable[[Any], Any]
    config: Any
    overrides: tuple[str, ...]
    number: int
    singletons: Any

    def __call__(self) -> None:
        """Compose and run the job in this process. The outcome is the job's status; a bug is raised on."""
        setup_globals()
        Singleton.set_state(self.singletons)
        config = self.hydra_context.config_loader.load_sweep_config(self.config, list(self.overrides))
        with open_dict(config):
            config.hydra.job.id = f"job-{self.number}"
            config.hydra.job.num = self.number
        run_job(
            hydra_context=self.hydra_context,
            config=config,
            task_function=self.task_function,
            job_dir_key="hydra.sweep.dir",
            job_subdir_key="hydra.sweep.subdir",
        )


class QueueLauncher(Launcher):
    """Hand jobs to a queue and wait for all of them. A queue implements `run_all`."""

    def __init__(self, **parameters: Any) -> None:
        self.parameters: dict[str, Any] = {
            name: OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
            for name, value in parameters.items()
        }
        self.config: Any = None
        self.hydra_context: HydraContext | None = None
        self.task_function: Callable[[Any], Any] | None = None

    def setup(self, *, hydra_context: HydraContext, task_function: Callable[[Any], Any], config: Any) -> None:
        """Take what Hydra hands to a launcher before it launches."""
        self.config, self.hydra_context, self.task_function = config, hydra_context, task_function

    @abstractmethod
    def run_all(self, tasks: Sequence[Task], folder: Path) -> None:
        """Run every task and return when none runs any more; `folder` is the launcher's own in the run folder.

        A task that failed or was lost is not raised. On `KeyboardInterrupt` the tasks are stopped before it goes on.
        """

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run the jobs that are not done; their outcomes stand in their statuses."""
        assert self.config is not None
        assert self.hydra_context is not None
        assert self.task_function is not None
        setup_globals()
        sweep = Path(str(self.config.hydra.sweep.dir))
        resumed = bool(rundir.read_json(sweep / rundir.PLAN)["resumed"])
        tasks = [
            Task(
                self.hydra_context,
                self.task_function,
                self.config,
                tuple(overrides),
                initial_job_idx + place,
                Singleton.get_state(),
            )
            for place, overrides in enumerate(job_overrides)
            if not (resumed and rundir.finished(sweep / "jobs" / str(initial_job_idx + place)))
        ]
        folder = sweep / rundir.LAUNCHER
        folder.mkdir(mode=0o700, exist_ok=True)
        if tasks:
            self.run_all(tasks, folder)
        return [_launched(overrides) for overrides in job_overrides]


def _launched(overrides: Sequence[str]) -> JobReturn:
    """Return what Hydra's sweeper looks at: that the job was launched."""
    result = JobReturn()
    result.overrides = list(overrides)
    result.status = JobStatus.COMPLETED
    result.return_value = None
    return result
