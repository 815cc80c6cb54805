"""Run the shipped language packs (or the folders named) through the eight gates and seal those that pass.

    python scripts/ratify_language_packs.py
    python scripts/ratify_language_packs.py my_packs/botany

Works without an operative safety pack. Exit 0 when every pack is ratified, 1 when one is not.
"""

import argparse
import sys
from pathlib import Path

from engine.base.precision import enable_x64
from engine.language.ratify import Outcome, ratify_language_folder
from packs.language.loader import available_language_packs, shipped_folder

AUTHORING = Path(__file__).resolve().parent / "authoring"


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="pack folders; default: the shipped packs")
    parser.add_argument("--tables", type=Path, help="authoring folder of the one pack named")
    options = parser.parse_args(arguments)
    enable_x64()
    folders = options.folders or [shipped_folder(name) for name in available_language_packs()]
    if options.tables and len(folders) != 1:
        parser.error("--tables goes with one folder")
    return max((_ratify(folder, options.tables) for folder in folders), default=1)


def _ratify(folder: Path, tables: Path | None) -> int:
    if tables is None and folder == shipped_folder(folder.name) and (AUTHORING / folder.name).is_dir():
        tables = AUTHORING / folder.name
    try:
        outcome = ratify_language_folder(folder, tables=tables)
    except OSError as error:
        print(f"error: {folder}: {error.strerror}", file=sys.stderr)
        return 1
    _report(outcome)
    return 0 if outcome.ratified else 1


def _report(outcome: Outcome) -> None:
    verdict = "ratified" if outcome.ratified else "NOT ratified"
    print(f"{outcome.pack_id}: {verdict}{'' if outcome.written or not outcome.ratified else ' (unchanged)'}")
    for gate in outcome.gates:
        mark = "pass" if gate.passed else "FAIL"
        print(f"  {mark}  {gate.name:12} {gate.measurement:.4f}  (at least {gate.threshold:g})")
    for reason in outcome.failure_reasons:
        print(f"  {outcome.pack_id}: {reason}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
