"""Parse the command line, check the installation, run one command, answer with an exit code.

Exit codes: 0 success, 1 a refusal or failed check, 2 a usage error, 130 interrupted. Each command lives in its own
module with `register(subparsers)`; its heavy imports happen inside its handler, so that `core --help` stays light.
Unless a parser says `set_defaults(diagnoses=True)`, its command does not start without an operative safety pack.
"""

import argparse
import importlib
from collections.abc import Sequence

from engine import __version__
from engine.base.command import one_line as one_line
from engine.base.command import run_command

COMMAND_MODULES: tuple[str, ...] = ("chat", "sweep", "follow", "verify", "report", "packs", "instruments", "readings")
"""Modules under `engine.cli` that register commands, in the order of `core --help`."""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the `core` command with every subcommand registered."""
    parser = argparse.ArgumentParser(
        prog="core", description="A Cl(4,1) versor-field research engine with packs.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"core {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMAND_MODULES:
        importlib.import_module(f"engine.cli.{name}").register(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run `core` on `argv` (default: the process's arguments) and return the exit code."""
    return run_command("core", lambda: _dispatch(argv))


def _dispatch(argv: Sequence[str] | None) -> int:
    arguments = build_parser().parse_args(argv)
    if not getattr(arguments, "diagnoses", False):
        _require_operative_installation()
    return int(arguments.handler(arguments) or 0)


def _require_operative_installation() -> None:
    from engine.base.origin import verify_one_root
    from packs.safety.loader import load_safety_pack

    verify_one_root()
    load_safety_pack()
