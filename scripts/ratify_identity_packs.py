"""Ratify identity packs on the real engine: those of this source tree, or the files that are named.

Works without an operative safety pack; the boundaries come from the file in `packs/safety`, with the floor checked.
"""

import argparse
import sys
from pathlib import Path

from engine.base.command import run_command


def main() -> int:
    """Ratify the packs and print one line each."""
    parser = argparse.ArgumentParser(prog="ratify_identity_packs", description=__doc__, allow_abbrev=False)
    parser.add_argument("files", nargs="*", type=Path, help="pack files (default: every pack in packs/identity)")
    files = parser.parse_args().files

    from engine.base.origin import engine_root, verify_one_root
    from engine.base.precision import enable_x64
    from packs.seal import REPORT_ENDING

    verify_one_root()
    enable_x64()
    from engine.formation.ratify import ratify_identity

    shipped = sorted((engine_root() / "packs" / "identity").glob("*.json"))
    for path in files or [path for path in shipped if not path.name.endswith(REPORT_ENDING)]:
        print(ratify_identity(path).line(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(run_command("ratify_identity_packs", main))
