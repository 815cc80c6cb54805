"""`core report RUN_DIR`: write a self-contained page about a run."""

import argparse
from pathlib import Path


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `core report`."""
    parser = commands.add_parser("report", help="write a self-contained HTML page about a run", allow_abbrev=False)
    parser.add_argument("run", metavar="RUN_DIR", type=Path)
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write it (default: beside the run, RUN_DIR.report.html)"
    )
    parser.set_defaults(handler=_run)


def _run(arguments: argparse.Namespace) -> int:
    from experiments.report import write_report

    print(write_report(arguments.run, arguments.out))
    return 0
