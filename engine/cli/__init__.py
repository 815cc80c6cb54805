"""The `core` command. Importing this package imports neither JAX nor Hydra."""

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Verify where the packages come from, then run `core` on `argv` and return the exit code."""
    from engine.base.origin import foreign_packages

    # Before anything of `packs` is imported: in a working directory with a `packs` folder of its own, that folder's
    # code would answer for ours.
    for problem in foreign_packages():
        sys.stderr.write(f"core: SafetyOverrideError: {problem}\n")
        return 1
    from engine.cli.commands import main as run

    return run(argv)
