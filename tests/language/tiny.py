"""A small pack, authored as tables, that has one of everything; and the means to damage a built pack consistently."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from packs import seal, strict_json

MANIFEST = {
    "version": "1.0.0",
    "description": "A garden and a harbour",
    "role": "articulation",
    "script": "Latin",
    "direction": "ltr",
    "oov_policy": "tagged_fallback",
}
WORDS = [
    ("rose", "garden", "r-s"),
    ("rosary", "garden", "r-s"),
    ("garden", "garden", ""),
    ("gardener", "garden", ""),
    ("water", "garden", ""),
    ("soil", "garden", ""),
    ("harbour", "harbour", ""),
    ("ship", "harbour", ""),
    ("sailor", "harbour", ""),
    ("sail", "harbour", ""),
    ("open sea", "harbour", ""),
    ("storm", "harbour", ""),
]
TRIPLES = [
    ("rose", "part_of", "garden", "A rose is a part of the garden."),
    ("rosary", "part_of", "garden", "The rosary is a part of the garden where roses grow."),
    ("rose", "needs", "water", "Every rose needs water."),
    ("rose", "needs", "soil", "Roses need soil."),
    ("garden", "needs", "gardener", "No garden lives without its gardener."),
    ("garden", "needs", "water", "A garden needs water."),
    ("soil", "part_of", "garden", "The soil is a part of the garden."),
    ("water", "resembles", "soil", "Water and soil are alike in what they give."),
    ("gardener", "resembles", "sailor", "A gardener and a sailor both watch the sky."),
    ("ship", "needs", "harbour", "A ship needs a harbour."),
    ("sail", "part_of", "ship", "The sail is a part of the ship."),
    ("ship", "needs", "sailor", "Ships need a sailor."),
    ("storm", "resembles", "open sea", "A storm is like the open sea."),
    ("sailor", "needs", "sail", "The sailor's hands need the sail."),
    ("harbour", "part_of", "open sea", "The harbour is a part of the open sea."),
    ("storm", "needs", "water", "No storm comes without water."),
]


def write_table(path: Path, columns: str, rows: list[tuple[str, ...]]) -> None:
    """Write a table: columns are given in one string."""
    lines = ["\t".join(columns.split()), *("\t".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def write_tables(folder: Path) -> Path:
    """Write the authoring tables of the tiny pack and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder / "manifest.tsv", "key value", list(MANIFEST.items()))
    write_table(
        folder / "lexicon.tsv",
        "lemma pos gloss domain root",
        [(lemma, "noun", f"a kind of {domain} thing", domain, root) for lemma, domain, root in WORDS],
    )
    write_table(
        folder / "relation_types.tsv",
        "relation inverse symmetric questions gloss",
        [
            ("part_of", "has_part", "0", "part,definition,~parts", "the head is a part of the tail"),
            ("needs", "", "0", "requirement,why", "the head needs the tail"),
            ("resembles", "", "1", "comparison", "the two are alike"),
        ],
    )
    write_table(
        folder / "relations.tsv",
        "head relation tail sentence source",
        [(*triple, "book_one" if number % 2 else "book_two") for number, triple in enumerate(TRIPLES)],
    )
    write_table(
        folder / "operators.tsv",
        "operator class feature surface productive",
        [
            ("diminutive", "stem", "size=small", "", "0"),
            ("plural", "inflection", "number=plural", "-s", "0"),
            ("possessive", "affix", "case=genitive", "-'s", "1"),
            ("not", "affix", "polarity=negative", "non-", "1"),
        ],
    )
    write_table(
        folder / "morphology.tsv",
        "form lemma operators",
        [("roses", "rose", "plural"), ("ships", "ship", "plural"), ("rosettes", "rose", "diminutive plural")],
    )
    write_table(
        folder / "function_words.tsv",
        "word role",
        [("a", "article"), ("the", "article"), ("is", "copula"), ("what", "question_what"), ("of", "preposition")],
    )
    write_table(
        folder / "templates.tsv",
        "kind key text",
        [
            ("statement", "part_of", "{head} is a part of {tail}."),
            ("inverse", "part_of", "{tail} has the part {head}."),
            ("statement", "needs", "{head} needs {tail}."),
            ("statement", "resembles", "{head} resembles {tail}."),
            ("phrase", "hedge_strong", "perhaps"),
        ],
    )
    return folder


def edit(folder: Path, name: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a part of a built pack and its digest in the manifest, so that only the change itself can be refused."""
    path = folder / name
    value = json.loads(path.read_bytes())
    change(value)
    path.write_bytes(strict_json.file_bytes(value))
    if name != "manifest.json":
        renew_digest(folder, "files", name)


def renew_digest(folder: Path, kind: str, name: str) -> None:
    """Bring one digest in the manifest up to date: `kind` is `files` or `sources`."""
    path = folder / name if kind == "files" else folder / "sources" / name
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest[kind][name] = seal.sha256_hex(path.read_bytes())
    (folder / "manifest.json").write_bytes(strict_json.file_bytes(manifest))
