"""Build a pack folder: from authored tables, from a user's relation table, or from a word2vec-format embedding file.

The files are written to a scratch folder and loaded by the ordinary loader first; what does not load is not installed.
"""

import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from engine.language.compile import compile_vocabulary, scale_coordinates
from engine.language.placement import snap_apart
from engine.language.projection import project, read_word2vec
from engine.language.vocabulary import Vocabulary
from packs import seal, strict_json
from packs.errors import LanguagePackError
from packs.files import write_together
from packs.ids import is_id, shown
from packs.language.authoring import Anchor, Tables, build_files, geometry_digest, read_tables
from packs.language.loader import MANIFEST, MAX_MANIFEST_BYTES, RESERVED, SHIPPED, load_language_folder
from packs.language.model import LanguagePack
from packs.language.schema import DIRECTIONS, SCRIPTS
from packs.language.tables import Row, read_user_table
from packs.language.text import scripts_of


def build_from_tables(folder: Path, out: Path) -> LanguagePack:
    """Build the pack `out` from the authoring folder `folder` and return it, loaded back.

    Raises `LanguagePackError`; nothing is written then.
    """
    if not folder.is_dir():
        raise LanguagePackError(f"{folder}: no such folder of tables")
    tables = read_tables(folder)
    languages = {row["language"] for row in tables.alignment}
    return install(build_files(tables, out.name, anchors_for(languages, out)), out)


def build_from_relations(path: Path, out: Path, description: str = "") -> LanguagePack:
    """Build a pack from a table (CSV or TSV) with the columns `head`, `relation`, `tail` and perhaps `sentence`.

    Words are taken from the ends, relation types from the names; where there is no sentence, `head relation tail.` is
    written and cited, and the source says so.
    """
    rows = read_user_table(path, ("head", "relation", "tail"), ("sentence", "domain"))
    if not rows:
        raise LanguagePackError(f"{path.name}: no relation")
    return install(build_files(_user_tables(rows, path, description), out.name, {}), out)


def build_from_embedding(path: Path, out: Path, description: str = "") -> tuple[LanguagePack, dict[str, int]]:
    """Build a pack from word vectors by projection to six coordinates; also return what was skipped and why."""
    embedding = read_word2vec(path)
    geometry = scale_coordinates(project(embedding.vectors), np.ones(len(embedding.words), dtype=bool))
    tables = Tables(
        manifest=_user_manifest(embedding.words, description or f"Projected from {path.name}"),
        lexicon=[_user_lexeme(word, "general", f"{path.name} {word}") for word in embedding.words],
        relation_types=(),
        relations=(),
        coordinates=snap_apart(geometry.coordinates).tolist(),
    )
    return install(build_files(tables, out.name, {}), out), embedding.skipped


def anchors_for(languages: Iterable[str], out: Path) -> dict[str, Anchor]:
    """Return the anchors of the packs that `out` is aligned to: built beside it, or shipped."""
    return {language: anchor_of(load_beside(language, out)) for language in sorted(set(languages))}


def anchor_of(pack: LanguagePack) -> Anchor:
    """Return what alignment needs of another pack: its words' coordinates, and the digest of what determines them."""
    return anchor_from(pack, compile_vocabulary(pack))


def anchor_from(pack: LanguagePack, vocabulary: Vocabulary) -> Anchor:
    """Return the anchor of a pack that is compiled already."""
    places = (tuple(float(value) for value in row) for row in np.asarray(vocabulary.coordinates))
    return Anchor(dict(zip(vocabulary.lemmas, places, strict=True)), geometry_digest(pack.manifest))


def load_beside(language: str, out: Path) -> LanguagePack:
    """Return the pack that `out` is aligned to, from the folder beside it or from the installation, sealed or not."""
    if not is_id(language):
        raise LanguagePackError(f"alignment.tsv: {shown(language)} is not the name of a language pack")
    for root in (out.parent, SHIPPED):
        if (root / language / MANIFEST).is_file():
            return load_language_folder(root / language, require_seal=False)
    raise LanguagePackError(f"alignment.tsv: the pack {language} is not built yet; build it first")


def install(files: Mapping[str, bytes], out: Path) -> LanguagePack:
    """Load the files from a scratch folder, then write them to `out`; an unchanged pack keeps its seal and bytes."""
    if not is_id(out.name) or out.name in RESERVED:
        raise LanguagePackError(
            f"{shown(out.name)} is not a pack id: the folder's name is the pack's id, [a-z][a-z0-9_]*"
        )
    with tempfile.TemporaryDirectory() as scratch:
        draft = Path(scratch) / out.name
        _write(files, draft)
        pack = load_language_folder(draft, require_seal=False)
    current = _current_manifest(out)
    if current is not None and seal.body_digest(current) == pack.sha256:
        files = {**files, MANIFEST: strict_json.file_bytes(current)}
    elif out.exists():
        _clear(out)
    _write(files, out)
    return load_language_folder(out, require_seal=False)


def _write(files: Mapping[str, bytes], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if any(name.startswith("sources/") for name in files):
        (folder / "sources").mkdir(exist_ok=True)
    # The manifest names the digests of the rest: it goes last, so that a killed writer leaves a pack that is refused.
    names = sorted(files, key=lambda name: name == MANIFEST)
    write_together([(folder / name, files[name]) for name in names])


def _current_manifest(out: Path) -> dict[str, object] | None:
    if not (out / MANIFEST).is_file():
        return None
    return strict_json.loads((out / MANIFEST).read_bytes()[:MAX_MANIFEST_BYTES], source=MANIFEST)


def _clear(out: Path) -> None:
    """Remove a pack that is about to be replaced; a folder that is no pack is left alone and refused."""
    if any(out.iterdir()) and not (out / MANIFEST).is_file():
        raise LanguagePackError(f"{out}: not empty and no language pack; nothing is written")
    for entry in out.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _user_tables(rows: Sequence[Row], path: Path, description: str) -> Tables:
    domains: dict[str, str] = {}
    for row in rows:
        for end in ("head", "tail"):
            domains.setdefault(row[end], row["domain"] or "general")
    names = {row["relation"]: _identifier(row["relation"], row.where) for row in rows}
    if len(set(names.values())) != len(names):
        raise LanguagePackError(f"{path.name}: two relations have the same identifier once written in [a-z0-9_]")
    where = path.name
    return Tables(
        manifest=_user_manifest(domains, description or f"Built from {path.name}"),
        lexicon=[_user_lexeme(word, domain, where) for word, domain in domains.items()],
        relation_types=[
            Row({"relation": name, "inverse": "", "symmetric": "0", "questions": "relation", "gloss": ""}, where)
            for name in names.values()
        ],
        relations=[
            Row(
                {
                    "head": row["head"],
                    "relation": names[row["relation"]],
                    "tail": row["tail"],
                    "source": "relations",
                    "sentence": row["sentence"] or f"{row['head']} {row['relation']} {row['tail']}.",
                },
                row.where,
            )
            for row in rows
        ],
        templates=[
            Row({"kind": "statement", "key": name, "text": f"{{head}} {words} {{tail}}."}, where)
            for words, name in names.items()
        ],
    )


def _identifier(name: str, where: str) -> str:
    identifier = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    if not is_id(identifier):
        raise LanguagePackError(f"{where}: the relation {shown(name)} gives no identifier [a-z][a-z0-9_]*")
    return identifier


def _user_lexeme(word: str, domain: str, where: str) -> Row:
    return Row({"lemma": word, "pos": "noun", "gloss": "", "domain": domain, "root": ""}, where)


def _user_manifest(words: Iterable[str], description: str) -> dict[str, str]:
    found = set().union(*(scripts_of(word) for word in words))
    script = next(iter(found)) if len(found) == 1 and found <= set(SCRIPTS) else "Common"
    return {
        "version": "1.0.0",
        "description": description,
        "role": "user_vocabulary",
        "script": script,
        "direction": DIRECTIONS[1] if script == "Hebrew" else DIRECTIONS[0],
        "oov_policy": "tagged_fallback",
    }
