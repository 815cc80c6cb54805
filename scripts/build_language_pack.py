"""Build a language pack from tables, from a user's relation table, or from word vectors.

    python scripts/build_language_pack.py scripts/authoring/en --out packs/en
    python scripts/build_language_pack.py --relations my_relations.csv --out my_packs/botany
    python scripts/build_language_pack.py --embedding vectors.txt --out my_packs/glove

The name of the folder after --out is the pack's id. Ratify it with scripts/ratify_language_packs.py.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

from engine.base.errors import CoreError
from engine.base.precision import enable_x64
from engine.language.build import build_from_embedding, build_from_relations, build_from_tables
from engine.language.graph import adjacency_matrix, component_labels, pair_array
from packs.language.model import LanguagePack

THIN_DEGREE = 2
"""Words with fewer relations than this can only be guessed by the geometry."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("tables", nargs="?", type=Path, help="folder of authored tables")
    source.add_argument("--relations", type=Path, help="CSV or TSV with head, relation, tail[, sentence, domain]")
    source.add_argument("--embedding", type=Path, help="word vectors in word2vec text format")
    parser.add_argument("--out", type=Path, required=True, help="folder of the pack; its name is the pack's id")
    parser.add_argument("--description", default="", help="one line for the manifest (user packs)")
    options = parser.parse_args(arguments)
    enable_x64()
    try:
        pack, skipped = _build(options)
    except (CoreError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    _report(pack, skipped)
    return 0


def _build(options: argparse.Namespace) -> tuple[LanguagePack, dict[str, int]]:
    out = options.out.absolute()
    if options.embedding:
        return build_from_embedding(options.embedding, out, options.description)
    if options.relations:
        return build_from_relations(options.relations, out, options.description), {}
    return build_from_tables(options.tables, out), {}


def _report(pack: LanguagePack, skipped: dict[str, int]) -> None:
    print(
        f"{pack.pack_id}: {len(pack.lexicon)} lexemes, {len(pack.relations)} relations of {len(pack.relation_types)} "
        f"types, {len(pack.forms)} forms, {len(pack.alignment)} alignments; {pack.sha256[:12]}"
    )
    for reason, count in sorted(skipped.items()):
        print(f"  skipped {count} rows: {reason}")
    if pack.relations:
        _report_graph(pack)


def _report_graph(pack: LanguagePack) -> None:
    adjacency = adjacency_matrix(pair_array(pack), len(pack.lexicon))
    degree = adjacency.sum(axis=1)
    parts = int(component_labels(adjacency).max()) + 1
    domains = {lexeme.lemma: lexeme.domain for lexeme in pack.lexicon}
    crossing = sum(domains[relation.head] != domains[relation.tail] for relation in pack.relations)
    print(f"  mean degree {degree.mean():.1f}, {parts} component(s), {crossing / len(pack.relations):.0%} cross-domain")
    thin = [lemma for lemma, count in zip(pack.lemmas, degree, strict=True) if count < THIN_DEGREE]
    if thin:
        print(f"  warning: {len(thin)} words with fewer than {THIN_DEGREE} relations: {', '.join(thin[:12])}")
    for relation, count in sorted(Counter(relation.relation for relation in pack.relations).items()):
        print(f"  {relation}: {count}")


if __name__ == "__main__":
    sys.exit(main())
