"""`core verify RUN_DIR|LOG`: check the digests of a run or record log and derive its readings again."""

import argparse
import json
from pathlib import Path


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `core verify`."""
    parser = commands.add_parser(
        "verify", help="check a run folder or a record log and derive its results again", allow_abbrev=False
    )
    parser.add_argument("path", metavar="RUN_DIR|LOG", type=Path)
    parser.add_argument("--all", action="store_true", help="derive every row of a run again, not a sample")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.set_defaults(handler=_run)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.path.is_dir():
        from experiments.verify import verify_run

        findings = verify_run(arguments.path, all_rows=arguments.all)
        lines, is_good = findings.lines(), findings.ok
        document = findings.as_dict()
    else:
        from engine.base.precision import enable_x64
        from engine.instruments.replay import verify_log

        enable_x64()
        report = verify_log(arguments.path)
        lines, is_good = report.lines(), report.ok
        document = report.as_dict()
    print(json.dumps(document, indent=2) if arguments.json else "\n".join(lines))
    return 0 if is_good else 1
