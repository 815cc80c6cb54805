"""Where Hydra looks for launchers: the classes and ready configurations of `experiments.launchers`.

Hydra accepts plugins from this namespace package only and imports every module in it on sight, so that nothing heavy is
imported here; submitit and Ray are, when a sweep uses them.
"""

import os
import signal
from dataclasses import dataclass
from typing import Any

from hydra.core.config_store import ConfigStore

from experiments.launchers.ray import RayTaskLauncher
from experiments.launchers.submitit import Local, SubmititLauncher


class SubmititLocalLauncher(SubmititLauncher):
    """One process for each job on this machine, `n_jobs` at a time."""

    CLUSTER = "local"
    TASK = Local

    def stop(self, job: Any) -> None:
        """Tell a job to stop: its id is that of the process which hands the signal on."""
        if not job.done():
            os.kill(int(job.job_id), signal.SIGTERM)


class SubmititSlurmLauncher(SubmititLauncher):
    """One SLURM array, a task for each job."""

    CLUSTER = "slurm"


class RayLauncher(RayTaskLauncher):
    """One Ray task for each job."""


@dataclass
class SubmititLocalConf:
    """`hydra/launcher=submitit_local`."""

    _target_: str = "hydra_plugins.corefield_launchers.SubmititLocalLauncher"
    n_jobs: int | None = None
    timeout_min: int = 24 * 60
    gpus_per_node: int | None = None
    max_num_timeout: int = 0


@dataclass
class SubmititSlurmConf:
    """`hydra/launcher=submitit_slurm`.

    A task that meets its limit or is preempted is requeued `max_num_timeout` times and goes on from its checkpoint.
    """

    _target_: str = "hydra_plugins.corefield_launchers.SubmititSlurmLauncher"
    n_jobs: int = 64
    timeout_min: int = 60
    cpus_per_task: int | None = None
    gpus_per_node: int | None = None
    mem_gb: int | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    max_num_timeout: int = 3
    name: str = "core-sweep"


@dataclass
class RayConf:
    """`hydra/launcher=ray`. `n_jobs` is the size of a local cluster; `address=auto` joins the one of this machine."""

    _target_: str = "hydra_plugins.corefield_launchers.RayLauncher"
    address: str = "local"
    n_jobs: int | None = None
    cpus_per_task: int = 1


for _name, _node in (("submitit_local", SubmititLocalConf), ("submitit_slurm", SubmititSlurmConf), ("ray", RayConf)):
    ConfigStore.instance().store(group="hydra/launcher", name=_name, node=_node, provider="corefield")
