"""From an author's tables to the files of a pack. Pure: tables in, bytes out; the same tables give the same bytes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packs import seal, strict_json
from packs.errors import LanguagePackError
from packs.ids import is_id, shown
from packs.language.consistency import find_ends
from packs.language.lookup import FormIndex
from packs.language.model import Form, FunctionWord, Lexeme, Manifest, Operator, RotationVector
from packs.language.schema import PARTS, SCHEMA_VERSION
from packs.language.tables import Row, read_source, read_table
from packs.language.text import Token, tokenise

MANIFEST_KEYS = ("version", "description", "role", "script", "direction", "oov_policy")
RELATION_ANGLE = math.pi / 3
"""Turn of a directed relation's rotor; a symmetric relation is a half-turn, which is its own inverse."""

OPERATOR_ANGLE = math.pi / 12
"""Turn of a morphological operator: a form stays close to its lemma."""

FUNCTION_ANGLE = 2.0
"""Turn of a function word's rotor, one direction for each role: grammar turns a prompt as much as a content word does,
so that the alignment of short questions covers [0, 1] too (docs/language-geometry.md)."""

_GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))


@dataclass(frozen=True)
class Anchor:
    """Another language's vocabulary as alignment sees it: coordinates by lemma, and the digest of what made them."""

    coordinates: Mapping[str, tuple[float, ...]]
    sha256: str


@dataclass(frozen=True)
class Tables:
    """All tables of a pack, as read; `texts` are authored sources by stem."""

    manifest: Mapping[str, str]
    lexicon: Sequence[Row]
    relation_types: Sequence[Row]
    relations: Sequence[Row]
    operators: Sequence[Row] = ()
    morphology: Sequence[Row] = ()
    function_words: Sequence[Row] = ()
    templates: Sequence[Row] = ()
    alignment: Sequence[Row] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    coordinates: Sequence[Sequence[float]] | None = None


def read_tables(folder: Path) -> Tables:
    """Return the tables of an authoring folder; only manifest, lexicon, relation types and relations must be there."""
    manifest = {row["key"]: row["value"] for row in read_table(folder / "manifest.tsv", ("key", "value"))}
    return Tables(
        manifest=manifest,
        lexicon=read_table(folder / "lexicon.tsv", ("lemma", "pos", "gloss", "domain"), ("root",)),
        relation_types=read_table(
            folder / "relation_types.tsv", ("relation", "inverse", "symmetric", "questions", "gloss")
        ),
        relations=read_table(
            folder / "relations.tsv", ("head", "relation", "tail", "source", "sentence"), ("head_form", "tail_form")
        ),
        operators=_optional(folder / "operators.tsv", ("operator", "class", "feature"), ("surface", "productive")),
        morphology=_optional(folder / "morphology.tsv", ("form", "lemma", "operators")),
        function_words=_optional(folder / "function_words.tsv", ("word", "role")),
        templates=_optional(folder / "templates.tsv", ("kind", "key", "text")),
        alignment=_optional(folder / "alignment.tsv", ("lemma", "language", "other", "strength")),
        texts=_texts(folder / "sources"),
    )


def build_files(tables: Tables, pack_id: str, anchors: Mapping[str, Anchor]) -> dict[str, bytes]:
    """Return the files of the pack, unsealed, by their path inside its folder.

    Raises `LanguagePackError` naming the table and line. What the loader checks is left to the loader: the caller
    loads the result before it counts.
    """
    operators = [_operator(row, number) for number, row in enumerate(tables.operators)]
    forms = [_form(row) for row in tables.morphology]
    lexicon = [_lexeme(row, tables, number) for number, row in enumerate(tables.lexicon)]
    function_words = _function_words(tables.function_words)
    index = _index(lexicon, forms, operators, function_words)
    texts = _source_texts(tables)
    relations = _Citations(texts, index, [entry["lemma"] for entry in lexicon]).cite_all(tables.relations)
    types = [_relation_type(row, number) for number, row in enumerate(tables.relation_types)]
    parts: dict[str, dict[str, Any]] = {
        "lexicon.json": {"lexemes": lexicon, "function_words": function_words},
        "relations.json": {"types": types, "relations": relations},
        "morphology.json": {"operators": operators, "forms": forms},
        "templates.json": {"templates": [dict(row.cells) for row in tables.templates]},
        "alignment.json": {"edges": [_edge(row, anchors) for row in tables.alignment]},
    }
    files = {name: strict_json.file_bytes({"schema_version": SCHEMA_VERSION, **parts[name]}) for name in PARTS}
    sources = {f"{stem}.md": text.encode() for stem, text in texts.items()}
    used = {row["language"] for row in tables.alignment}
    manifest = _manifest(tables, pack_id, files, sources, {name: anchors[name].sha256 for name in sorted(used)})
    return {
        "manifest.json": strict_json.file_bytes(manifest),
        **files,
        **{f"sources/{name}": body for name, body in sources.items()},
    }


def geometry_digest(manifest: Manifest) -> str:
    """Return the digest of the files that a pack's coordinates follow from."""
    names = ("lexicon.json", "relations.json", "alignment.json")
    return seal.sha256_hex("".join(manifest.files[name] for name in names).encode())


def spread_direction(number: int) -> tuple[float, float, float]:
    """Return the unit vector `number` of a sequence that fills the sphere evenly, whatever its length.

    Heights by the van der Corput sequence in base 2, longitudes by the golden angle, so that adding a relation type
    does not move the rotors of those before it.
    """
    fraction, base, rest = 0.0, 0.5, number + 1
    while rest:
        fraction, base, rest = fraction + base * (rest & 1), base / 2, rest >> 1
    height = 2 * fraction - 1
    radius = math.sqrt(max(0.0, 1 - height * height))
    angle = _GOLDEN_ANGLE * number
    return (radius * math.cos(angle), radius * math.sin(angle), height)


def _optional(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> tuple[Row, ...]:
    return read_table(path, required, optional) if path.exists() else ()


def _texts(folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        return {}
    return {path.stem: read_source(path) for path in sorted(folder.glob("*.md"))}


def _turn(number: int, angle: float) -> list[float]:
    return [angle * component for component in spread_direction(number)]


def _lexeme(row: Row, tables: Tables, number: int) -> dict[str, Any]:
    entry: dict[str, Any] = {name: row[name] for name in ("lemma", "pos", "gloss", "domain", "root")}
    if tables.coordinates is not None:
        entry["coordinates"] = [float(value) for value in tables.coordinates[number]]
    return entry


def _function_words(rows: Sequence[Row]) -> list[dict[str, Any]]:
    roles = {role: number for number, role in enumerate(dict.fromkeys(row["role"] for row in rows))}
    return [
        {"word": row["word"], "role": row["role"], "rotor": _turn(roles[row["role"]], FUNCTION_ANGLE)} for row in rows
    ]


def _relation_type(row: Row, number: int) -> dict[str, Any]:
    symmetric = row.flag("symmetric")
    return {
        "relation": row["relation"],
        "inverse": row["inverse"],
        "symmetric": symmetric,
        "questions": [name.strip() for name in row["questions"].split(",") if name.strip()],
        "gloss": row["gloss"],
        "rotor": _turn(number, math.pi if symmetric else RELATION_ANGLE),
    }


def _operator(row: Row, number: int) -> dict[str, Any]:
    return {
        "operator": row["operator"],
        "class": row["class"],
        "feature": row["feature"],
        "surface": row["surface"],
        "productive": row.flag("productive"),
        "rotor": _turn(number, OPERATOR_ANGLE),
    }


def _form(row: Row) -> dict[str, Any]:
    return {"form": row["form"], "lemma": row["lemma"], "operators": row["operators"].split()}


def _edge(row: Row, anchors: Mapping[str, Anchor]) -> dict[str, Any]:
    language, other = row["language"], row["other"]
    if language not in anchors:
        raise LanguagePackError(f"{row.where}: the pack {shown(language)} is not built yet; build it first")
    target = anchors[language].coordinates.get(other)
    if target is None:
        raise LanguagePackError(f"{row.where}: {other} is no lemma of {language}")
    return {
        "lemma": row["lemma"],
        "language": language,
        "other": other,
        "strength": row.number("strength"),
        "target": list(target),
    }


def _index(
    lexicon: list[dict[str, Any]],
    forms: list[dict[str, Any]],
    operators: list[dict[str, Any]],
    function_words: list[dict[str, Any]],
) -> FormIndex:
    zero: RotationVector = (0.0, 0.0, 0.0)
    for entry in operators:
        if entry["class"] not in ("stem", "inflection", "affix"):
            raise LanguagePackError(
                f"operators.tsv: {entry['operator']}: class {shown(entry['class'])} is not stem, inflection or affix"
            )
    return FormIndex(
        [Lexeme(e["lemma"], e["pos"], e["gloss"], e["domain"], e["root"]) for e in lexicon],
        [Form(e["form"], e["lemma"], tuple(e["operators"])) for e in forms],
        [Operator(e["operator"], e["class"], e["feature"], e["surface"], e["productive"], zero) for e in operators],
        [FunctionWord(e["word"], e["role"], zero) for e in function_words],
    )


def _source_texts(tables: Tables) -> dict[str, str]:
    """Return every source by stem: authored ones as they are, others made of their sentences, one a paragraph."""
    sentences: dict[str, dict[str, None]] = {}
    for row in tables.relations:
        if not is_id(row["source"]):
            raise LanguagePackError(f"{row.where}: source {shown(row['source'])} is not a file stem [a-z][a-z0-9_]*")
        sentences.setdefault(row["source"], {})[row["sentence"]] = None
    made = {stem: "\n\n".join((f"# {stem}", *lines)) + "\n" for stem, lines in sentences.items()}
    return dict(sorted({**made, **tables.texts}.items()))


class _Citations:
    """Finds each relation's sentence in its source and the forms of its ends in the sentence."""

    def __init__(self, texts: Mapping[str, str], index: FormIndex, lemmas: Sequence[str]) -> None:
        self._texts = texts
        self._index = index
        self._numbers = {lemma: number for number, lemma in enumerate(lemmas)}
        self._digests = {stem: seal.sha256_hex(text.encode()) for stem, text in texts.items()}
        self._spans: dict[tuple[str, str], tuple[int, int]] = {}
        self._tokens: dict[str, tuple[Token, ...]] = {}

    def cite_all(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        return [self._cite(row) for row in rows]

    def _cite(self, row: Row) -> dict[str, Any]:
        start, end = self._span(row)
        head_form, tail_form = self._forms(row)
        return {
            "head": row["head"],
            "relation": row["relation"],
            "tail": row["tail"],
            "source": row["source"],
            "sha256": self._digests[row["source"]],
            "start": start,
            "end": end,
            "head_form": head_form,
            "tail_form": tail_form,
        }

    def _span(self, row: Row) -> tuple[int, int]:
        key = (row["source"], row["sentence"])
        if key not in self._spans:
            text = self._texts[row["source"]]
            offset = _sentence_offset(text, row)
            start = len(text[:offset].encode())
            self._spans[key] = (start, start + len(row["sentence"].encode()))
        return self._spans[key]

    def _forms(self, row: Row) -> tuple[str, str]:
        sentence = row["sentence"]
        tokens = self._tokens.setdefault(sentence, tokenise(sentence))
        ends = find_ends(
            tokens,
            self._index,
            self._number(row, "head"),
            self._number(row, "tail"),
            row["head_form"] or None,
            row["tail_form"] or None,
        )
        if ends is None:
            for side in ("head", "tail"):
                if not self._index.positions(tokens, self._number(row, side), row[f"{side}_form"] or None):
                    raise LanguagePackError(
                        f"{row.where}: the sentence holds no form of the {side} {row[side]} "
                        "(add the form to morphology.tsv, or mend the sentence)"
                    )
            raise LanguagePackError(f"{row.where}: {row['head']} and {row['tail']} overlap in the sentence")
        (first, last), (begin, finish) = ends
        return (
            sentence[tokens[first].start : tokens[last - 1].end],
            sentence[tokens[begin].start : tokens[finish - 1].end],
        )

    def _number(self, row: Row, side: str) -> int:
        number = self._numbers.get(row[side])
        if number is None:
            raise LanguagePackError(f"{row.where}: {side} {row[side]} is not in lexicon.tsv")
        return number


def _sentence_offset(text: str, row: Row) -> int:
    """Return where the sentence stands: the one place where it fills whole words."""
    sentence = row["sentence"]
    offset = text.find(sentence)
    if offset < 0:
        raise LanguagePackError(f"{row.where}: the sentence is not in sources/{row['source']}.md")
    if f"\n{sentence}\n" in text:
        return text.index(f"\n{sentence}\n") + 1
    if text.find(sentence, offset + 1) >= 0:
        raise LanguagePackError(f"{row.where}: the sentence stands more than once in sources/{row['source']}.md")
    return offset


def _manifest(
    tables: Tables,
    pack_id: str,
    files: Mapping[str, bytes],
    sources: Mapping[str, bytes],
    anchors: Mapping[str, str],
) -> dict[str, Any]:
    missing = [key for key in MANIFEST_KEYS if key not in tables.manifest]
    unknown = sorted(set(tables.manifest) - set(MANIFEST_KEYS))
    if missing or unknown:
        fault = f"without the key {missing[0]}" if missing else f"unknown key {shown(unknown[0])}"
        raise LanguagePackError(f"manifest.tsv: {fault}")
    return {
        "schema_version": SCHEMA_VERSION,
        "pack_id": pack_id,
        **{key: tables.manifest[key] for key in MANIFEST_KEYS},
        "normalisation": "NFC",
        "geometry": "relations" if tables.coordinates is None else "projection",
        "files": {name: seal.sha256_hex(body) for name, body in files.items()},
        "sources": {name: seal.sha256_hex(body) for name, body in sources.items()},
        "anchors": dict(anchors),
        seal.SEAL_FIELD: "",
    }
