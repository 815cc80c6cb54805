"""How alignment spreads over the shipped prompts, which bands are reached, and how far the packs' walks part.

python scripts/bench/alignment.py [--language en ...]
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np

IDENTITIES = ("default_general_v1", "precision_first_v1", "generosity_first_v1")
QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
BANDS = ("strong", "soft", "qualifier", "bare")


def shipped_prompts(language: str) -> list[str]:
    """Return the questions that ship for a language."""
    name = "questions.txt" if language == "en" else f"questions_{language}.txt"
    text = resources.files("configs").joinpath("prompts", name).read_text("utf-8")
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def as_markdown(language: str, table: Any) -> str:
    """Return the readings of one language as two tables."""
    rows = {name: table.select(identity=name) for name in IDENTITIES}
    names = " | ".join(f"{quantile:.0%}" for quantile in QUANTILES)
    lines = [f"`{language}`, {len(table) // len(IDENTITIES)} prompts", ""]
    lines += [f"| identity | {names} | flagged |", "|---" * (len(QUANTILES) + 2) + "|"]
    for name, own in rows.items():
        known = [row["alignment"] for row in own if row["alignment"] is not None]
        values = " | ".join(f"{value:.2f}" for value in np.quantile(known, QUANTILES))
        flagged = np.mean([row["flagged"] for row in own if row["flagged"] is not None])
        lines.append(f"| `{name}` | {values} | {flagged:.0%} |")
    lines += ["", "| identity | answered | " + " | ".join(BANDS) + " | other words than the default | worst residual |"]
    lines.append("|---" * (len(BANDS) + 4) + "|")
    for name, own in rows.items():
        hedges = Counter(row["hedge"] for row in own if row["status"] == "ok")
        pairs = [
            (a["tokens"], b["tokens"]) for a, b in zip(rows[IDENTITIES[0]], own, strict=True) if b["tokens"] != "[]"
        ]
        parted = np.mean([one != other for one, other in pairs])
        worst = max(row["max_residual"] for row in own if row["max_residual"] is not None)
        counts = " | ".join(str(hedges[band]) for band in BANDS)
        lines.append(f"| `{name}` | {sum(hedges.values())} | {counts} | {parted:.0%} | {worst:.0e} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; returns 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", nargs="+", default=["en", "he", "grc"])
    options = parser.parse_args(argv)
    from engine.base.precision import enable_x64

    enable_x64()
    from engine.runtime import Runtime, evaluate_many

    for language in options.language:
        runtimes = [Runtime.load(identity, language) for identity in IDENTITIES]
        print(as_markdown(language, evaluate_many(runtimes, shipped_prompts(language))), end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
