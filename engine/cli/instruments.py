"""`core shadow-constitution`, `core amend-constitution` and `core adopt-staged`."""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.base.command import complain, one_line
from engine.base.errors import StagingError, UsageError

if TYPE_CHECKING:
    from engine.instruments.arms import Inputs
    from engine.instruments.calibration import Calibration
    from engine.instruments.shadow import ShadowResult

_MAX_RUNS = 1000


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the three commands."""
    _register_shadow(commands)
    _register_amend(commands)
    adopt = commands.add_parser(
        "adopt-staged", help="show a staged amendment and, on an explicit yes, put it in force", allow_abbrev=False
    )
    adopt.add_argument("stage", metavar="DIR", type=Path)
    adopt.add_argument("--yes", action="store_true", help="adopt without asking")
    adopt.set_defaults(handler=_adopt)


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that both arms share."""
    parser.add_argument("--constitution", metavar="DIR", help="folder of the constitution in force (*.md)")
    parser.add_argument("--patterns", metavar="FILE", required=True, help="pattern file, a JSON list or JSONL")
    parser.add_argument("--generator", metavar="NAME", default="extractive", help="name or name:argument")
    parser.add_argument("--embedder", metavar="NAME", default="minilm", help="name or name:argument")
    parser.add_argument("--key", metavar="N", type=int, default=0, help="key of the first run (default: 0)")
    parser.add_argument("--views", metavar="DIR", help="folder of views in place of the shipped ones")
    parser.add_argument("--prompts", metavar="DIR", help="folder of prompts in place of the shipped ones")
    parser.add_argument("--cache", metavar="DIR", help="keep embeddings in this folder")


def print_json(document: object) -> None:
    """Print one JSON document on stdout."""
    json.dump(document, sys.stdout, indent=2, ensure_ascii=True, allow_nan=False)
    sys.stdout.write("\n")


def print_text(text: str) -> None:
    """Print text of unknown origin line by line, with characters that could steer a terminal escaped."""
    for line in text.split("\n"):
        print(one_line(line))


def progress(text: str) -> None:
    """Tell a person who waits at a terminal how far the command is; a refusal's one line on stderr stays alone."""
    if sys.stderr is not None and sys.stderr.isatty():
        complain("core", text)


def _register_shadow(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    shadow = commands.add_parser(
        "shadow-constitution",
        help="synthesise a constitution from patterns alone and read its distance to the live one",
        description="Synthesise a constitution from accumulated patterns with the live text absent, and read how far "
        "the two are apart. The result is NOT an amendment candidate; adoption goes only through amend-constitution.",
        allow_abbrev=False,
    )
    add_source_arguments(shadow)
    shadow.add_argument(
        "--runs", metavar="N", type=int, default=1, help="runs, each with a key of its own (default: 1)"
    )
    record = shadow.add_mutually_exclusive_group(required=True)
    record.add_argument("--log", metavar="FILE", help="append each run to this record log")
    record.add_argument("--no-log", action="store_true", help="record nothing, on purpose")
    shadow.add_argument("--calibration", metavar="FILE", help="anchors from `core readings anchors --out`")
    shadow.add_argument("--figure", metavar="FILE", help="draw the reading (.png, .svg or .pdf)")
    shadow.add_argument("--json", action="store_true", help="print the reading as JSON")
    shadow.set_defaults(handler=_shadow)


def _register_amend(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    amend = commands.add_parser(
        "amend-constitution", help="stage a conservative amendment of the first constitution file", allow_abbrev=False
    )
    add_source_arguments(amend)
    amend.add_argument("--stage", metavar="DIR", required=True, help="folder for the proposal, its diff and lineage")
    amend.add_argument("--json", action="store_true", help="print the outcome as JSON")
    amend.set_defaults(handler=_amend)


def _inputs(arguments: argparse.Namespace) -> "Inputs":
    from engine.base.precision import enable_x64
    from engine.instruments.arms import make_inputs
    from engine.instruments.cache import EmbeddingCache

    enable_x64()
    return make_inputs(
        arguments.constitution,
        arguments.patterns,
        embedder=arguments.embedder,
        generator=arguments.generator,
        key=arguments.key,
        views_dir=arguments.views,
        prompts_dir=arguments.prompts,
        cache=EmbeddingCache(arguments.cache),
    )


def _shadow(arguments: argparse.Namespace) -> int:
    from engine.instruments.calibration import read_calibration
    from engine.instruments.figure import check_figure_path, draw_reading
    from engine.instruments.report import read_runs, reading_table

    if not 1 <= arguments.runs <= _MAX_RUNS:
        raise UsageError(f"--runs takes 1 to {_MAX_RUNS}, not {arguments.runs}")
    if arguments.figure is not None:
        check_figure_path(arguments.figure)
    inputs = _inputs(arguments)
    given = read_calibration(arguments.calibration) if arguments.calibration else None
    live, calibration = _anchors(inputs, given)
    results = _run_all(arguments, inputs, calibration)
    reading = read_runs(results, live, inputs.embedder, calibration, inputs.cache)
    if arguments.figure is not None:
        draw_reading(reading, arguments.figure)
    if arguments.json:
        print_json(reading)
    else:
        print_text(reading_table(reading))
    failed = next((result for result in results if not result.ok), None)
    if failed is not None:
        reason = failed.message if failed.verdict != "ok" else "the record could not be written"
        complain("core", f"{failed.verdict}: {reason}")
    return 0 if failed is None else 1


def _anchors(inputs: "Inputs", given: "Calibration | None") -> "tuple[str | None, Calibration | None]":
    """Return the live text and the calibration: the given one, or one measured now. None where there is no live text:
    the run itself will name that fault."""
    from engine.instruments.calibration import measure_anchors
    from engine.instruments.constitution import ConstitutionUnreadable, read_constitution

    try:
        constitution = read_constitution(inputs.constitution_dir)
    except ConstitutionUnreadable:
        return None, given
    if given is None and inputs.store.patterns:
        progress("anchors: embedding the shipped references and the patterns")
        given = measure_anchors(
            constitution, inputs.store, inputs.embedder, cache=inputs.cache, views_dir=inputs.views_dir
        )
    return constitution.text, given


def _run_all(
    arguments: argparse.Namespace, inputs: "Inputs", calibration: "Calibration | None"
) -> "list[ShadowResult]":
    from engine.instruments.shadow import synthesize_shadow_constitution

    results = []
    for number in range(arguments.runs):
        started = time.monotonic()
        result = synthesize_shadow_constitution(
            inputs.constitution_dir,
            inputs.store,
            log_path=arguments.log,
            embedder=inputs.embedder,
            generator=inputs.generator,
            key=inputs.key + number,
            views_dir=inputs.views_dir,
            prompts_dir=inputs.prompts_dir,
            calibration=calibration,
            cache=inputs.cache,
        )
        results.append(result)
        progress(f"run {number + 1} of {arguments.runs}: {result.verdict} ({time.monotonic() - started:.1f} s)")
        # A generator may recover and a text may validate with another key; every other fault would only repeat itself.
        if result.recorded is False or result.verdict not in ("ok", "validation_failed", "llm_failure"):
            break
    return results


def _amend(arguments: argparse.Namespace) -> int:
    from engine.instruments.amend import amend_constitution
    from engine.instruments.notes import NOT_A_CANDIDATE

    inputs = _inputs(arguments)
    result = amend_constitution(
        inputs.constitution_dir,
        inputs.store,
        stage_dir=arguments.stage,
        embedder=inputs.embedder,
        generator=inputs.generator,
        key=inputs.key,
        views_dir=inputs.views_dir,
        prompts_dir=inputs.prompts_dir,
        cache=inputs.cache,
    )
    status = (
        "This proposal is staged: nothing changes before `core adopt-staged` and a person's yes. "
        f"A shadow text is {NOT_A_CANDIDATE}."
    )
    if arguments.json:
        print_json(_amend_document(result.verdict, result.message, result.diff, result.staged, status))
    elif result.ok:
        print_text(f"{result.message}\n\n{result.diff}\nstaged in {arguments.stage}\n{status}")
    if not result.ok:
        complain("core", f"{result.verdict}: {result.message}")
    return 0 if result.ok else 1


def _amend_document(verdict: str, message: str, diff: str, staged: tuple[Path, ...], status: str) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "message": message,
        "diff": diff,
        "staged": [str(path) for path in staged],
        "status": status,
    }


def _adopt(arguments: argparse.Namespace) -> int:
    from engine.instruments.staging import adopt, check_adoptable, read_staged

    staged = read_staged(arguments.stage)
    check_adoptable(staged)
    print_text(staged.diff or "no clause was changed")
    print_text(f"This would replace {staged.target}")
    if not arguments.yes:
        _confirm()
    kept = adopt(staged)
    print_text(f"adopted; the old text is kept as {kept}")
    return 0


def _confirm() -> None:
    """Ask the person at the terminal. Raises `StagingError` for any answer but yes, or where there is no terminal."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise StagingError("not adopted: that needs a person's yes at a terminal, or --yes")
    print("Adopt? Type 'yes': ", end="", flush=True)
    if sys.stdin.readline().strip() != "yes":
        raise StagingError("not adopted")
