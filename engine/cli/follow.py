"""`core follow HOST:PORT --processes N --index I`: take part in a sweep that another process leads."""

import argparse


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `core follow`."""
    parser = commands.add_parser(
        "follow",
        help="evaluate a share of the rows of a sweep that another process leads",
        description="Join the cluster of a sweep started with cluster.coordinator=HOST:PORT cluster.processes=N, "
        "evaluate a share of its rows, and end with it. The leader is process 0; files are its alone.",
        allow_abbrev=False,
    )
    parser.add_argument("coordinator", metavar="HOST:PORT", help="cluster.coordinator of the sweep")
    parser.add_argument("--processes", type=int, required=True, metavar="N", help="cluster.processes of the sweep")
    parser.add_argument("--index", type=int, required=True, metavar="I", help="number of this process, 1 to N-1")
    parser.add_argument("--device", choices=("cpu", "gpu", "tpu"), default="cpu", help="device of the sweep")
    parser.add_argument("--timeout", type=int, default=60, metavar="S", help="seconds to wait for the others")
    parser.set_defaults(handler=_run)


def _run(arguments: argparse.Namespace) -> int:
    from engine.base.errors import UsageError
    from engine.base.precision import enable_x64
    from experiments.cluster import Cluster, follow, join
    from experiments.job import follow_part

    if arguments.index == 0:
        raise UsageError("--index 0 is the leader: core sweep cluster.coordinator=HOST:PORT cluster.processes=N")
    cluster = Cluster(arguments.coordinator, arguments.processes, arguments.index, arguments.timeout)
    enable_x64()
    join(cluster, arguments.device)
    count = follow(follow_part)
    print(f"process {cluster.index} of {cluster.processes}: took part {count} times; the sweep has ended")
    return 0
