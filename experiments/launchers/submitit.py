"""Jobs through submitit: processes on this machine (`submitit_local`) or a SLURM array (`submitit_slurm`)."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from engine.base.command import interrupt_on
from experiments import rundir
from experiments.launchers.base import STOP_SECONDS, QueueLauncher, Task

POLL_SECONDS = 0.2
QUEUE_SECONDS = 10.0
"""How often SLURM's queue is looked at. A job that was missing from it twice has ended."""
KILL_WAIT_SECONDS = 30.0
"""SLURM's own wait between SIGTERM and SIGKILL, by default. Its jobs need so much longer to stop: submitit passes
over SIGTERM."""
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
        """Run the task here, unless it is done: SLURM requeues a job that was told to stop and ended well all the same.

        Its sweep may have ended since, and what is sealed is not touched.
        """
        if rundir.finished(Path(str(self.task.config.hydra.sweep.dir)) / "jobs" / str(self.task.number)) is None:
            self.task()

    def checkpoint(self) -> Any:
        """Return what submitit submits in this task's place."""
        import submitit

        return submitit.helpers.DelayedSubmission(self)


class Local(Requeued):
    """A task in a process of this machine, which SIGTERM stops as Ctrl-C would.

    submitit passes over SIGTERM and stops its local jobs with SIGINT. Whatever a shell without job control started in
    the background ignores SIGINT, and so do its children: they would go on after their sweep.
    """

    def __call__(self) -> None:
        """Run the task here, unless it is done."""
        interrupt_on(signal.SIGTERM)
        super().__call__()


class Queue:
    """Which SLURM jobs have ended without a result, by `squeue`.

    submitit asks `sacct` alone. On a cluster without accounting that answers nothing, and a job that was killed would
    be waited for without end.
    """

    def __init__(self) -> None:
        self.looked = float("-inf")
        self.missing: set[str] = set()
        self.ended: set[str] = set()

    def left(self, jobs: Sequence[Any]) -> list[Any]:
        """Return those of the jobs that have not ended."""
        running = [job for job in jobs if not job.done()]
        if running and time.monotonic() - self.looked >= QUEUE_SECONDS:
            self.look({str(job.job_id) for job in running})
            self.looked = time.monotonic()
        return [job for job in running if job.job_id not in self.ended]

    def look(self, expected: set[str]) -> None:
        """Compare the queue with what is expected in it. A queue that does not answer says nothing."""
        found = subprocess.run(["squeue", "--me", "-h", "-r", "-o", "%i"], capture_output=True, text=True, check=False)
        if found.returncode == 0:
            missing = expected - set(found.stdout.split())
            self.ended |= missing & self.missing
            self.missing = missing


class SubmititLauncher(QueueLauncher):
    """Jobs through one of submitit's executors."""

    CLUSTER: ClassVar[str]
    TASK: ClassVar[type[Requeued]] = Requeued

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
        waiting, running = [self.TASK(task) for task in tasks], []
        executor, left = self.executor(folder), self.left()
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
                running = left(running)
        except KeyboardInterrupt:
            for job in running:
                self.stop(job)
            _wait(running, left, STOP_SECONDS + (KILL_WAIT_SECONDS if self.CLUSTER == "slurm" else 0.0))
            raise

    def stop(self, job: Any) -> None:
        """Tell a job to stop."""
        job.cancel(check=False)

    def left(self) -> Callable[[Sequence[Any]], list[Any]]:
        """Return what picks, out of jobs, those that have not ended."""
        if self.CLUSTER == "slurm":
            return Queue().left
        return lambda jobs: [job for job in jobs if not job.done()]


def _wait(jobs: Sequence[Any], left: Callable[[Sequence[Any]], list[Any]], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while (jobs := left(jobs)) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    if jobs:
        names = ", ".join(job.job_id for job in jobs)
        sys.stderr.write(f"core sweep: told to stop and still running: submitit jobs {names}\n")
