"""Jobs through submitit: processes on this machine (`submitit_local`) or a SLURM array (`submitit_slurm`)."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from experiments.launchers.base import STOP_SECONDS, QueueLauncher, Task

POLL_SECONDS = 0.2
COMMON = ("timeout_min", "cpus_per_task", "gpus_per_node", "mem_gb", "name")
SLURM = {"partition": "partition", "account": "account", "qos": "qos", "n_jobs": "array_parallelism"}
"""Our names of SLURM's settings, and submitit's."""


class Requeued:
    """A task that submitit may hand out again: a job that met its time limit or was preempted starts once more.

    It goes on from its checkpoint, which it finds in its own folder.
    """

    def __init__(self, task: Task) -> None:
        self.task = task

    def __call__(self) -> None:
        """Run the task here."""
        self.task()

    def checkpoint(self) -> Any:
        """Return what submitit submits in this task's place."""
        import submitit

        return submitit.helpers.DelayedSubmission(self)


class SubmititLauncher(QueueLauncher):
    """Jobs through one of submitit's executors."""

    CLUSTER: ClassVar[str]

    def executor(self, folder: Path) -> Any:
        """Return submitit's executor with this launcher's parameters. It writes pickles and logs into `folder`."""
        import submitit

        limit = {f"{self.CLUSTER}_max_num_timeout": self.parameters.get("max_num_timeout", 0)}
        executor = submitit.AutoExecutor(folder=folder / "%j", cluster=self.CLUSTER, **limit)
        common = {name: self.parameters[name] for name in COMMON if self.parameters.get(name) is not None}
        slurm = {
            f"slurm_{theirs}": self.parameters[ours]
            for ours, theirs in SLURM.items()
            if self.CLUSTER == "slurm" and self.parameters.get(ours) is not None
        }
        executor.update_parameters(**common, **slurm)
        return executor

    def run_all(self, tasks: Sequence[Task], folder: Path) -> None:
        """Submit every task and wait until none runs; told to stop, cancel them first."""
        width = self.parameters.get("n_jobs") or os.cpu_count() or 1
        waiting, running = [Requeued(task) for task in tasks], []
        executor = self.executor(folder)
        try:
            if self.CLUSTER == "slurm":
                # One array: the scheduler knows the width, and a thousand jobs are one request.
                with executor.batch():
                    running = [executor.submit(task) for task in waiting]
                waiting = []
            while waiting or running:
                while waiting and len(running) < width:
                    running.append(executor.submit(waiting.pop(0)))
                time.sleep(POLL_SECONDS)
                running = [job for job in running if not job.done()]
        except KeyboardInterrupt:
            _stop(running)
            raise


def _stop(jobs: Sequence[Any]) -> None:
    for job in jobs:
        job.cancel(check=False)
    deadline = time.monotonic() + STOP_SECONDS
    while any(not job.done() for job in jobs) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    left = [job.job_id for job in jobs if not job.done()]
    if left:
        sys.stderr.write(f"core sweep: told to stop and still running: submitit jobs {', '.join(left)}\n")
