"""Ratify the safety pack of this source tree on the real engine, and write report, seal and pin together.

Works without an operative safety pack: this is how one comes to be. Run it after every edit of the pack.
"""

import argparse
import sys

from engine.base.command import run_command


def main() -> int:
    """Ratify `packs/safety` and print one line."""
    parser = argparse.ArgumentParser(prog="ratify_safety_pack", description=__doc__, allow_abbrev=False)
    parser.parse_args()

    from engine.base.origin import verify_one_root
    from engine.base.precision import enable_x64

    verify_one_root()
    enable_x64()
    from engine.formation.ratify import ratify_safety

    print(ratify_safety().line())
    return 0


if __name__ == "__main__":
    sys.exit(run_command("ratify_safety_pack", main))
