"""One turn as a person sees it, and as the audit log keeps it."""

import argparse
import uuid
from datetime import UTC, datetime
from typing import Any

from engine.cli.commands import one_line


def render_turn(response: Any, options: argparse.Namespace, *, direction: str) -> str:
    """Return the text of a turn: the surface, then citations and verdicts where they are asked for."""
    lines = [in_display_order(response.surface, direction, visual=options.visual)]
    if options.cite:
        lines.extend(citation_lines(response, direction, visual=options.visual))
    if options.verdicts:
        lines.extend(verdict_lines(response))
    return "\n".join(lines)


def citation_lines(response: Any, direction: str, *, visual: bool = False) -> list[str]:
    """Return one line for each cited sentence."""
    return [
        f"  [{number}] {in_display_order(citation.sentence, direction, visual=visual)}"
        f" ({citation.source}.md, bytes {citation.start}-{citation.end})"
        for number, citation in enumerate(response.citations, start=1)
    ]


def verdict_lines(response: Any) -> list[str]:
    """Return why the turn was said as it was, and one line for each boundary."""
    row = response.row
    lines = []
    if row["alignment"] is not None:
        lines.append(
            f"  {row['identity']}: alignment {row['alignment']:.3f}, hedge {row['hedge']}, "
            f"{'flagged' if row['flagged'] else 'not flagged'}; intent {row['intent']}, {row['steps']} steps, "
            f"ended {row['reason']}"
        )
    if response.refusal is not None:
        lines.append(f"  refused: {one_line(response.refusal.reason)}")
    lines.extend(f"  {verdict.boundary}: {verdict.status.value} ({verdict.evidence})" for verdict in response.verdicts)
    return lines


def in_display_order(text: str, direction: str, *, visual: bool) -> str:
    """Return right-to-left text in visual order (Unicode UAX #9) where the terminal is said not to reorder it."""
    if direction != "rtl" or not visual:
        return text
    from bidi import get_display

    return str(get_display(text, base_dir="R"))


def record_turn(path: str | None, text: str, response: Any) -> bool:
    """Append a turn to the audit log at `path` (None: no log); return False where it is not on the disk."""
    if path is None:
        return True
    from engine import __version__
    from engine.instruments.bundles import bundle
    from engine.instruments.records import append_record

    row = response.row
    record = {
        "ts": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "event": "chat_turn",
        "verdict": "ok" if response.refusal is None else "refused",
        "message": "" if response.refusal is None else response.refusal.reason,
        "run_id": uuid.uuid4().hex,
        "schema_version": "1.0.0",
        "engine_version": __version__,
        **{name: row[name] for name in ("identity", "language", "intent", "alignment", "hedge", "tokens", "steps")},
        **{name: row[name] for name in ("max_residual", "first_violation", "citations")},
        **{name: row[name] for name in ("safety_sha256", "identity_sha256", "language_sha256", "ratified")},
        "boundaries": {verdict.boundary: verdict.status.value for verdict in response.verdicts},
        **bundle("text", text),
        **bundle("surface", response.surface),
        **bundle("withheld", row["withheld"]),
    }
    return append_record(path, record)
