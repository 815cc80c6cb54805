"""A sweep over several processes, on one host or many: one leads, the others follow, and every row set is shared out.

The leader is an ordinary sweep; each follower (`core follow`) waits for what the leader is about to evaluate, makes the
same call on its own packs, and so moves its share of the rows. Both sides are one JAX cluster (`jax.distributed`).
Files are the leader's alone. Whoever can reach the coordinator's port takes part: it belongs in a trusted network.
"""

import atexit
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.base.command import EXIT_REFUSED
from engine.base.errors import ClusterError, UsageError
from experiments.values import ADDRESS

MAX_PROCESSES = 4096
MAX_TIMEOUT_S = 3600
SHUTDOWN_S = 10
STOP = b""
_LIMIT = 2**30


@dataclass(frozen=True)
class Cluster:
    """How a process takes part. `coordinator` is HOST:PORT of the leader, whose index is 0.

    `timeout_s` bounds the wait for the others at the start, and the time until a process that does not answer is given
    up. Raises `UsageError` for values out of range.
    """

    coordinator: str
    processes: int
    index: int
    timeout_s: int = 60

    def __post_init__(self) -> None:
        if not ADDRESS.fullmatch(self.coordinator) or not 0 < int(self.coordinator.rpartition(":")[2]) < 65536:
            raise UsageError(f"coordinator {self.coordinator!r}: expected HOST:PORT of the leading process")
        if not 2 <= self.processes <= MAX_PROCESSES or not 0 <= self.index < self.processes:
            raise UsageError(
                f"process {self.index} of {self.processes}: expected 2 to {MAX_PROCESSES} processes, the leader being 0"
            )
        if not 1 <= self.timeout_s <= MAX_TIMEOUT_S:
            raise UsageError(f"timeout {self.timeout_s}: expected 1 to {MAX_TIMEOUT_S} seconds")


_joined: Cluster | None = None
_lost = False


def joined() -> Cluster | None:
    """Return the cluster that this process has joined, if any."""
    return _joined


def join(cluster: Cluster, kind: str) -> None:
    """Join the cluster, before anything touches a device of `kind`. Raises `ClusterError` where the others do not come.

    A process joins once in its life: JAX cannot leave a cluster and join another.
    """
    import jax

    global _joined
    if _joined is not None:
        raise ClusterError(f"this process has joined the cluster of {_joined.coordinator} already")
    if kind == "cpu":
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        _keep_standard_output()
    # Its notifier would take SIGTERM away from us.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(
            cluster.coordinator,
            cluster.processes,
            cluster.index,
            initialization_timeout=cluster.timeout_s,
            heartbeat_timeout_seconds=cluster.timeout_s,
            shutdown_timeout_seconds=SHUTDOWN_S,
        )
    except (RuntimeError, ValueError) as error:
        raise ClusterError(
            f"process {cluster.index} of {cluster.processes} could not join {cluster.coordinator} "
            f"within {cluster.timeout_s} s: {_first_line(error)}"
        ) from error
    _joined = cluster
    # Registered after JAX's own, and therefore run before it.
    atexit.register(_leave_without_the_lost)


def _keep_standard_output() -> None:
    """Let only Python write to standard output: Gloo says there, from C++, whom it has connected."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = os.fdopen(kept, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)


def _leave_without_the_lost() -> None:
    """End the process where another was lost: JAX would wait for that one, and then abort with a stack trace."""
    if _lost:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(EXIT_REFUSED)


@contextmanager
def watched() -> Iterator[None]:
    """Say as a `ClusterError` that another process was lost, where JAX says it as a failed collective."""
    import jax

    global _lost
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        if not re.search(r"Gloo|NCCL|coordination|UNAVAILABLE|DEADLINE_EXCEEDED", str(error)):
            raise
        _lost = True
        raise ClusterError(
            f"another process of the cluster was lost ({_first_line(error)}); start all of them again with resume=RUN"
        ) from error


def tell(message: Mapping[str, Any] | None) -> None:
    """Tell the followers what the leader evaluates next; None: that nothing more comes."""
    _broadcast(STOP if message is None else json.dumps(message).encode("utf-8"))


def dismiss() -> None:
    """Tell the followers that nothing more comes; says nothing where one was lost, since nobody would be told."""
    if _joined is not None and not _lost:
        with watched():
            tell(None)


def told() -> dict[str, Any] | None:
    """Wait for what the leader evaluates next; None when nothing more comes."""
    data = _broadcast(None)
    if data == STOP:
        return None
    try:
        message = json.loads(data)
    except ValueError as error:
        raise ClusterError(f"the leading process said what is no JSON: {error}") from error
    if not isinstance(message, dict):
        raise ClusterError("the leading process said what is no JSON object")
    return message


def follow(evaluate: Callable[[Mapping[str, Any]], object]) -> int:
    """Hand what the leader tells to `evaluate` until it says that nothing more comes; return how often that was.

    Raises `ClusterError` where a process was lost.
    """
    count = 0
    with watched():
        while (message := told()) is not None:
            evaluate(message)
            count += 1
    return count


def _broadcast(data: bytes | None) -> bytes:
    """Send the leader's bytes to every process; followers hand in None. The length goes first."""
    from jax.experimental import multihost_utils

    length = np.asarray(len(data) if data is not None else 0, np.int64)
    size = int(multihost_utils.broadcast_one_to_all(length, is_source=data is not None))
    if not 0 <= size <= _LIMIT:
        raise ClusterError(f"the leader announces {size} bytes")
    if size == 0:
        return STOP
    body = np.zeros(size, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return np.asarray(multihost_utils.broadcast_one_to_all(body, is_source=data is not None)).tobytes()


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
