"""Embedding throughput of the default encoder, beside sentence-transformers where that is installed, in one run.

`python -m scripts.bench.embedding PATTERNS [--texts N] [--repeats N]` reads a pattern file, embeds its texts cold and
warm, and prints one JSON line and a Markdown table. Sentence-transformers reads the same model folder (extra `parity`)
and takes turns with ours; a ratio is that of two neighbouring passes, above 1 where ours is the faster one.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from engine.base.precision import enable_x64
from engine.instruments.embed.sentence import SentenceEmbedder
from engine.instruments.patterns import read_patterns


def seconds(action: Callable[[], object]) -> float:
    """Return the wall-clock seconds of `action`."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def reference(folder: Path, texts: list[str]) -> Callable[[], object] | None:
    """Return a call that embeds `texts` with sentence-transformers, or None where it is not installed."""
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        return None
    model = SentenceTransformer(str(folder), device="cpu")
    model.encode(texts[:8])
    return lambda: model.encode(texts, normalize_embeddings=True, batch_size=32)


def main() -> None:
    """Measure and print."""
    shipped = resources.files("configs") / "readings" / "patterns.jsonl"
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("patterns", nargs="?", default=str(shipped))
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    arguments = parser.parse_args()
    enable_x64()
    texts = [pattern.text for pattern in read_patterns(arguments.patterns).patterns][: arguments.texts]
    embedder = SentenceEmbedder()
    cold = seconds(lambda: embedder.embed(texts))
    theirs = reference(embedder.folder, texts)
    ours, other = [], []
    for _ in range(arguments.repeats):  # round-robin, so that a slow moment of the machine hits both
        ours.append(seconds(lambda: embedder.embed(texts)))
        if theirs is not None:
            other.append(seconds(theirs))
    middle = statistics.median(ours)
    figures = {"texts": len(texts), "cold_s": cold, "warm_s": middle, "texts_per_s": len(texts) / middle}
    if other:
        ratios = [theirs_s / ours_s for theirs_s, ours_s in zip(other, ours, strict=True)]
        figures |= {
            "sentence_transformers_s": statistics.median(other),
            "ratio_median": statistics.median(ratios),
            "ratio_min": min(ratios),
            "ratio_max": max(ratios),
        }
    if arguments.json:
        print(json.dumps(figures))
        return
    print("| figure | value |\n|---|---|")
    for name, value in figures.items():
        print(f"| {name} | {value:.4g} |")


if __name__ == "__main__":
    main()
