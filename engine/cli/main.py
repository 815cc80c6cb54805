"""Parse the command line, run one command, and turn typed errors into one line on stderr and an exit code.

Exit codes: 0 success, 1 a refusal or failed check, 2 a usage error, 130 interrupted. Each command lives in its own
module with `register(subparsers)`; its heavy imports happen inside its handler, so that `core --help` stays light.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence

from engine import __version__
from packs.errors import CoreError

COMMAND_MODULES: tuple[str, ...] = ()
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


def one_line(text: object) -> str:
    """Return `text` on one line with control and format characters escaped, fit for a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))


def main(argv: Sequence[str] | None = None) -> int:
    """Run `core` on `argv` (default: the process's arguments) and return the exit code."""
    arguments = build_parser().parse_args(argv)
    try:
        return int(arguments.handler(arguments) or 0)
    except CoreError as error:
        print(f"core: {type(error).__name__}: {one_line(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("core: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
