"""`core sweep [HYDRA OVERRIDES] [-m]`: the same command as `python -m experiments.sweep`."""

import argparse


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `core sweep`. Its arguments are read by the allow-list of `experiments.overrides`, not by argparse."""
    parser = commands.add_parser(
        "sweep",
        help="run a Hydra sweep over packs, seeds and settings on a file of prompts",
        add_help=False,
        # With no prefix character argparse takes every argument as it stands, flags included.
        prefix_chars="\0",
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    # The sweep checks origin, command line and safety pack itself, in that order, for `python -m` too.
    parser.set_defaults(handler=_run, diagnoses=True)


def _run(arguments: argparse.Namespace) -> int:
    from experiments.sweep import run

    return run(arguments.arguments)
