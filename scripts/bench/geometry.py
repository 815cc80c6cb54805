"""Measure the geometry of language packs and write the figures of docs/language-geometry.md.

    python scripts/bench/geometry.py                 all shipped packs, printed as JSON
    python scripts/bench/geometry.py --write         ... and the table in the docs renewed
    python scripts/bench/geometry.py my_packs/botany a pack of your own

Seeded; the same packs give the same figures.
"""

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.random import Generator

from engine.base.errors import CoreError, PromptRefusedError
from engine.base.precision import enable_x64
from engine.field.holonomy import holonomy
from engine.language import evaluation
from engine.language.compile import compile_vocabulary
from engine.language.crosslingual import score_alignment
from engine.language.encode import Encoding, encode_text, prompt_motors
from engine.language.graph import adjacency_matrix, component_labels, pair_array
from engine.language.vocabulary import Vocabulary
from packs.language.authoring import geometry_digest
from packs.language.loader import available_language_packs, load_language_folder, shipped_folder
from packs.language.model import LanguagePack

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "language-geometry.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
SEED = 20_260
REPEATS = 5
REWIRINGS = 5
PERMUTATIONS = 5
NUMERICAL_FLOOR = 1e-9
"""Encodings closer than this are the same: products of a dozen motors round to about 1e-15."""

ALPHA = 0.5


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="pack folders; default: the shipped packs")
    parser.add_argument("--prompts", type=Path, default=ROOT / "configs" / "prompts", help="folder of prompt files")
    parser.add_argument("--write", action="store_true", help="renew the table in docs/language-geometry.md")
    options = parser.parse_args(arguments)
    enable_x64()
    folders = options.folders or [shipped_folder(name) for name in available_language_packs()]
    try:
        loaded = [load_language_folder(folder.resolve(), require_seal=False) for folder in folders]
        vocabularies = {pack.pack_id: compile_vocabulary(pack) for pack in loaded}
        figures = {pack.pack_id: measure(pack, vocabularies, options.prompts) for pack in loaded}
    except CoreError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps(figures, indent=1, ensure_ascii=False))
    if options.write:
        write_page(figures)
    return 0


def measure(pack: LanguagePack, vocabularies: dict[str, Vocabulary], prompts: Path) -> dict[str, Any]:
    """Return all figures of one pack."""
    random = np.random.default_rng(SEED)
    figures: dict[str, Any] = {"geometry_sha256": geometry_digest(pack.manifest), **measure_graph(pack)}
    figures["held_out"], figures["by_type"] = measure_held_out(pack, random)
    figures["rewired"] = measure_rewired(pack, random)
    figures["order"] = measure_order(pack, vocabularies[pack.pack_id], prompts, random)
    figures["alignment"] = {
        language: dataclasses.asdict(score_alignment(pack, vocabularies[language], random))
        for language in sorted(pack.manifest.anchors)
        if language in vocabularies
    }
    return figures


def measure_graph(pack: LanguagePack) -> dict[str, Any]:
    """Return the sizes, cross-domain share and clustering of the pack's graph."""
    pairs = evaluation.distinct_pairs(pair_array(pack))
    adjacency = adjacency_matrix(pairs, len(pack.lexicon))
    return {
        "words": len(pack.lexicon),
        "relations": len(pack.relations),
        "pairs": len(pairs),
        "domains": len({lexeme.domain for lexeme in pack.lexicon}),
        "components": int(component_labels(adjacency).max()) + 1,
        "mean_degree": float(adjacency.sum(axis=1).mean()),
        "cross_domain": evaluation.cross_domain_share(pairs, domain_numbers(pack)),
        "clustering": evaluation.clustering(adjacency),
    }


def measure_held_out(pack: LanguagePack, random: Generator) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return AUCs on held-out pairs with intervals, and for each relation type."""
    pairs = evaluation.distinct_pairs(pair_array(pack))
    scores = evaluation.cross_validate(pairs, domain_numbers(pack), random, REPEATS)
    overall = {
        name: dataclasses.asdict(evaluation.estimate([getattr(score, name) for score in scores]))
        for name in ("point", "motor", "oracle")
    }
    number_of = {(int(a), int(b)): number for number, (a, b) in enumerate(pairs)}
    by_type = {}
    for kind in pack.relation_types:
        chosen = np.zeros(len(pairs), dtype=bool)
        triples = [number for number, relation in enumerate(pack.relations) if relation.relation == kind.relation]
        for a, b in np.sort(pair_array(pack)[triples], axis=1):
            chosen[number_of[(int(a), int(b))]] = True
        by_type[kind.relation] = {
            "pairs": int(chosen.sum()),
            "point": evaluation.mean_rank(scores, chosen, "point"),
            "motor": evaluation.mean_rank(scores, chosen, "motor"),
        }
    return overall, by_type


def measure_rewired(pack: LanguagePack, random: Generator) -> dict[str, Any]:
    """Return the AUCs of graphs with the same degrees and no other structure: what chance scores."""
    pairs = evaluation.distinct_pairs(pair_array(pack))
    domains = domain_numbers(pack)
    scores = [
        score
        for _ in range(REWIRINGS)
        for score in evaluation.cross_validate(evaluation.rewire(pairs, random), domains, random, repeats=1)
    ]
    return {
        name: dataclasses.asdict(evaluation.estimate([getattr(score, name) for score in scores]))
        for name in ("point", "motor")
    }


def measure_order(pack: LanguagePack, vocabulary: Vocabulary, prompts: Path, random: Generator) -> dict[str, Any]:
    """Return the share of permuted prompts whose encoding moves by more than the numerical floor."""
    originals, permuted = [], []
    for encoding in known_prompts(pack, vocabulary, prompts):
        motors = prompt_motors(vocabulary, encoding)
        for _ in range(PERMUTATIONS):
            shuffled = motors[random.permutation(len(motors))]
            if not np.array_equal(shuffled, motors):
                originals.append(motors)
                permuted.append(shuffled)
    if not permuted:
        return {"permuted": 0, "moved": 0, "share": None}
    encoded = np.asarray(holonomy(_padded(originals + permuted), jnp.asarray(ALPHA)))
    before, after = encoded[: len(originals)], encoded[len(originals) :]
    # F and -F are the same motion: the distance to whichever is nearer.
    change = np.minimum(np.linalg.norm(after - before, axis=1), np.linalg.norm(after + before, axis=1))
    moved = int((change > NUMERICAL_FLOOR).sum())
    return {"permuted": len(change), "moved": moved, "share": moved / len(change)}


def _padded(prompts: list[np.ndarray]) -> jax.Array:
    """Return the prompts' motors as one batch, identity motors at the ends."""
    batch = np.zeros((len(prompts), max(map(len, prompts)), 16))
    batch[..., 0] = 1.0
    for row, motors in enumerate(prompts):
        batch[row, : len(motors)] = motors
    return jnp.asarray(batch)


def known_prompts(pack: LanguagePack, vocabulary: Vocabulary, folder: Path) -> list[Encoding]:
    """Return the readable prompts of the shipped files; else the pack's own cited sentences."""
    lines = [line for path in sorted(folder.glob("*.txt")) for line in path.read_text("utf-8").splitlines()]
    encodings = [
        e for line in lines if line.strip() and not line.startswith("#") for e in _read(pack, vocabulary, line)
    ]
    if encodings:
        return encodings
    sentences = dict.fromkeys(pack.cited_text(relation.citation) for relation in pack.relations)
    return [e for line in list(sentences)[:100] for e in _read(pack, vocabulary, line)]


def _read(pack: LanguagePack, vocabulary: Vocabulary, line: str) -> list[Encoding]:
    try:
        encoding = encode_text(vocabulary, pack, line)
    except PromptRefusedError:
        # A prompt of another language: the script is refused, and it is not one of this pack's prompts.
        return []
    return [encoding] if encoding.token_ids else []


def domain_numbers(pack: LanguagePack) -> np.ndarray:
    """Return the number of each word's domain."""
    names = sorted({lexeme.domain for lexeme in pack.lexicon})
    return np.array([names.index(lexeme.domain) for lexeme in pack.lexicon])


def write_page(figures: dict[str, Any]) -> None:
    """Replace the part of the page between the markers."""
    page = PAGE.read_text("utf-8")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n{render(figures)}\n{END}{after}", "utf-8")


def render(figures: dict[str, Any]) -> str:
    """Return the tables of the page as Markdown."""
    parts = [_graph_table(figures), _held_out_table(figures), _type_table(figures), _alignment_table(figures)]
    return "\n\n".join(part for part in parts if part)


def _graph_table(figures: dict[str, Any]) -> str:
    rows = [
        f"| {name} | {f['words']} | {f['relations']} | {f['domains']} | {f['components']} | {f['mean_degree']:.1f} | "
        f"{f['cross_domain']:.0%} | {f['clustering']:.2f} | {f['order']['moved']}/{f['order']['permuted']} | "
        f"`{f['geometry_sha256'][:12]}` |"
        for name, f in figures.items()
    ]
    head = (
        "| pack | words | relations | domains | components | mean degree | cross-domain | clustering | "
        "reordered prompts that moved | geometry digest |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    return "\n".join([head, *rows])


def _held_out_table(figures: dict[str, Any]) -> str:
    columns = [("held_out", which) for which in ("point", "motor", "oracle")]
    columns += [("rewired", which) for which in ("point", "motor")]
    head = "| pack | point distance | full motor | domain oracle | rewired, point | rewired, motor |"
    rows = [
        f"| {name} | " + " | ".join(_interval(figure[part][which]) for part, which in columns) + " |"
        for name, figure in figures.items()
    ]
    return "\n".join([head, "|---|---|---|---|---|---|", *rows])


def _type_table(figures: dict[str, Any]) -> str:
    kinds = list(dict.fromkeys(kind for f in figures.values() for kind in f["by_type"]))
    head = "| relation | " + " | ".join(f"{name}: pairs, point, motor" for name in figures) + " |"
    rows = [
        f"| `{kind}` | " + " | ".join(_type_cell(f["by_type"].get(kind)) for f in figures.values()) + " |"
        for kind in kinds
    ]
    return "\n".join([head, "|---|" + "---|" * len(figures), *rows])


def _type_cell(figure: dict[str, Any] | None) -> str:
    return "–" if figure is None else f"{figure['pairs']}, {figure['point']:.2f}, {figure['motor']:.2f}"


def _alignment_table(figures: dict[str, Any]) -> str:
    rows = []
    for name, figure in figures.items():
        for language, score in figure["alignment"].items():
            rows.append(
                f"| {name} to {language} | {score['raw']:.3f} | {score['fitted']:.3f} | {score['pulled']:.3f} | "
                f"{_interval(dataclasses.asdict(evaluation.estimate(score['held_out'])))} | "
                f"{score['strength_correlation']:+.2f} |"
            )
    head = (
        "| alignment | as embedded | turned | turned and pulled | held-out pairs | strength with nearness |\n"
        "|---|---|---|---|---|---|"
    )
    return "\n".join([head, *rows]) if rows else ""


def _interval(estimate: dict[str, float]) -> str:
    return f"{estimate['mean']:.3f} ({estimate['low']:.3f} to {estimate['high']:.3f})"


if __name__ == "__main__":
    sys.exit(main())
