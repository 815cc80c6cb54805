"""Jobs through Ray: a cluster of this machine's own processes (`address=local`) or the one it belongs to (`auto`)."""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments.launchers.base import STOP_SECONDS, QueueLauncher, Task


class RayTaskLauncher(QueueLauncher):
    """Jobs as Ray tasks, one for each, never retried behind our back: retries are counted by the sweep."""

    def run_all(self, tasks: Sequence[Task], folder: Path) -> None:
        """Submit every task and wait until none runs; told to stop, cancel them first."""
        import ray

        with _cluster(self.parameters):
            remote: Any = ray.remote(num_cpus=self.parameters["cpus_per_task"], max_retries=0)(_run)
            running = [remote.remote(task) for task in tasks]
            try:
                while running:
                    finished, running = ray.wait(running, timeout=1.0)
                    for reference in finished:
                        _settle(reference)
            except KeyboardInterrupt:
                for reference in running:
                    ray.cancel(reference)
                ray.wait(running, num_returns=len(running), timeout=STOP_SECONDS)
                raise


def _run(task: Task) -> None:
    # Ray cancels by SIGINT, which is ignored by all that a shell without job control started in the background.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    task()


def _settle(reference: Any) -> None:
    """Take a task's end. A worker that died or a bug is in the job's status, or shows by the want of one."""
    import ray

    try:
        ray.get(reference)
    except ray.exceptions.RayError as error:
        os.write(2, f"core sweep: {type(error).__name__}: {str(error).splitlines()[0][:200]}\n".encode())


@contextmanager
def _cluster(parameters: dict[str, Any]) -> Iterator[None]:
    """Be connected to a Ray cluster. A local one begins and ends here; nothing is reported to Ray's makers."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    if parameters["address"] == "local":
        width = parameters.get("n_jobs") or os.cpu_count()
        ray.init("local", num_cpus=width, include_dashboard=False, log_to_driver=False, configure_logging=False)
    else:
        ray.init(parameters["address"], log_to_driver=False, configure_logging=False)
    if is_main:
        # Ray ends the driver at once on SIGTERM; a sweep ends its jobs first.
        signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        ray.shutdown()
