"""Load a language pack: bytes, strict JSON, digests, seal, schema, consistency; then a frozen pack or an error.

Every path that does not end in a pack ends in `LanguagePackError`.
"""

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

from packs import seal, strict_json
from packs.errors import LanguagePackError, PackFormatError
from packs.files import list_folder, open_folder, read_once
from packs.ids import is_id, shown
from packs.language import schema
from packs.language.consistency import check_alignment_with, check_pack
from packs.language.fields import check_text
from packs.language.gates import REQUIRED_LANGUAGE_GATES
from packs.language.model import LanguagePack, Manifest

SHIPPED = Path(__file__).resolve().parent.parent
RESERVED = frozenset({"safety", "identity", "language"})
"""Folders of `packs/` that are other kinds of pack."""

MANIFEST = "manifest.json"
SOURCES = "sources"
MAX_MANIFEST_BYTES = 1024**2
MAX_PART_BYTES = 64 * 1024**2
MAX_SOURCE_BYTES = 4 * 1024**2

SearchPaths = Iterable[str | os.PathLike[str]] | None
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def _typed(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Turn the format errors of the shared readers into this loader's own type."""

    @functools.wraps(function)
    def wrapper(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        try:
            return function(*args, **kwargs)
        except PackFormatError as error:
            raise LanguagePackError(str(error)) from None

    return wrapper


@_typed
def load_language_pack(
    lang: str | None,
    *,
    search_paths: SearchPaths = None,
    require_seal: bool = True,
    aligned_with: Iterable[LanguagePack] = (),
) -> LanguagePack:
    """Return the language pack `lang`, every part of it checked.

    Args:
      lang: the pack's id, which is its folder's name.
      search_paths: folders that hold further packs (`<search path>/<lang>/manifest.json`).
      require_seal: off only for what builds and ratifies packs; an unsealed pack then says `ratified=False`.
      aligned_with: packs already loaded; an alignment to a word they lack is refused.

    Raises:
      LanguagePackError: one line that names pack, file and row.
    """
    if lang is None or lang in ("", "null"):
        raise LanguagePackError("no language pack: an identity needs at least one (en, he, grc or your own)")
    folder = _find(lang, search_paths)
    try:
        pack = load_language_folder(folder, require_seal=require_seal)
        for other in aligned_with:
            check_alignment_with(pack, other)
    except (LanguagePackError, PackFormatError) as error:
        raise LanguagePackError(f"language pack {lang}: {error}") from None
    return pack


@_typed
def load_language_folder(folder: str | os.PathLike[str], *, require_seal: bool = True) -> LanguagePack:
    """Return the pack that lies in `folder`, whose name is the pack's id; checks and errors as `load_language_pack`."""
    path = Path(folder)
    pack_id = path.resolve().name if path.name in ("", ".", "..") else path.name
    if not is_id(pack_id) or pack_id in RESERVED:
        raise LanguagePackError(f"{shown(pack_id)} is not the name of a language pack")
    with open_folder(path) as descriptor:
        names = list_folder(descriptor)
        raw = read_once(MANIFEST, MAX_MANIFEST_BYTES, folder=descriptor)
        value = strict_json.loads(raw, source=MANIFEST)
        manifest = schema.parse_manifest(value, pack_id)
        _check_listing(names, pack_id)
        ratified = _check_seal(value, raw, pack_id, descriptor, names, require_seal)
        parts = {name: _read_part(name, digest, descriptor) for name, digest in manifest.files.items()}
    pack = _assemble(manifest, parts, _read_sources(path / SOURCES, manifest), seal.body_digest(value), ratified)
    check_pack(pack)
    return pack


def available_language_packs(search_paths: SearchPaths = None) -> tuple[str, ...]:
    """Return the sorted ids of the language packs that can be asked for; nothing is parsed."""
    found: set[str] = set()
    for root in (SHIPPED, *_roots(search_paths)):
        if root.is_dir():
            found |= {entry.name for entry in root.iterdir() if _looks_like_pack(entry)}
    return tuple(sorted(found))


def shipped_folder(lang: str) -> Path:
    """Return where the pack `lang` lies, or would lie, in the installation."""
    return SHIPPED / lang


def _looks_like_pack(entry: Path) -> bool:
    return is_id(entry.name) and entry.name not in RESERVED and (entry / MANIFEST).is_file()


def _roots(search_paths: SearchPaths) -> tuple[Path, ...]:
    if search_paths is None:
        return ()
    if isinstance(search_paths, str | os.PathLike):
        raise LanguagePackError("search_paths is a collection of folders, not one path")
    return tuple(Path(path) for path in search_paths)


def _find(lang: object, search_paths: SearchPaths) -> Path:
    if not isinstance(lang, str) or not is_id(lang) or lang in RESERVED:
        raise LanguagePackError(f"{shown(lang)} is not the name of a language pack")
    folders = [root / lang for root in (SHIPPED, *_roots(search_paths)) if (root / lang / MANIFEST).is_file()]
    if not folders:
        known = ", ".join(available_language_packs(search_paths)) or "none"
        raise LanguagePackError(f"no language pack {lang}; there are: {known}")
    if len(folders) > 1:
        raise LanguagePackError(f"the language pack {lang} is there {len(folders)} times; give yours another id")
    return folders[0]


def _check_listing(names: tuple[str, ...], pack_id: str) -> None:
    allowed = {MANIFEST, SOURCES, f"{pack_id}{seal.REPORT_ENDING}", *schema.PARTS}
    foreign = sorted(set(names) - allowed)
    if foreign:
        raise LanguagePackError(f"{shown(foreign[0])} does not belong in a language pack")


def _check_seal(
    value: dict[str, Any], raw: bytes, pack_id: str, descriptor: int, names: tuple[str, ...], required: bool
) -> bool:
    report = f"{pack_id}{seal.REPORT_ENDING}"
    if not required and (report not in names or value[seal.SEAL_FIELD] == ""):
        return False
    if report not in names:
        raise LanguagePackError(f"not ratified: {report} is missing (run scripts/ratify_language_packs.py)")
    report_bytes = read_once(report, seal.MAX_REPORT_BYTES, folder=descriptor)
    try:
        seal.verify_seal(value, raw, report_bytes, required_gates=REQUIRED_LANGUAGE_GATES)
    except PackFormatError:
        if required:
            raise
        return False
    return True


def _read_part(name: str, digest: str, descriptor: int) -> dict[str, Any]:
    raw = read_once(name, MAX_PART_BYTES, folder=descriptor)
    if seal.sha256_hex(raw) != digest:
        raise LanguagePackError(f"{name}: its bytes are not those the manifest names")
    return strict_json.loads(raw, source=name)


def _read_sources(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    if not manifest.sources:
        return MappingProxyType({})
    texts: dict[str, str] = {}
    with open_folder(folder) as descriptor:
        foreign = sorted(set(list_folder(descriptor)) - set(manifest.sources))
        if foreign:
            raise LanguagePackError(f"sources/{shown(foreign[0])} is not named by the manifest")
        for name, digest in manifest.sources.items():
            raw = read_once(name, MAX_SOURCE_BYTES, folder=descriptor)
            if seal.sha256_hex(raw) != digest:
                raise LanguagePackError(f"sources/{name}: its bytes are not those the manifest names")
            texts[name.removesuffix(".md")] = _decode_source(raw, name)
    return MappingProxyType(texts)


def _decode_source(raw: bytes, name: str) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LanguagePackError(f"sources/{name}: not UTF-8 at byte {error.start}") from None
    # The text rules allow spaces at the ends of lines; only the ends of the whole file are looked at by check_text.
    check_text(text.strip(" "), f"sources/{name}", longest=MAX_SOURCE_BYTES, allowed="\n")
    return text


def _assemble(
    manifest: Manifest, parts: dict[str, dict[str, Any]], sources: Mapping[str, str], sha256: str, ratified: bool
) -> LanguagePack:
    lexicon, function_words = schema.parse_lexicon(parts["lexicon.json"])
    relation_types, relations = schema.parse_relations(parts["relations.json"])
    operators, forms = schema.parse_morphology(parts["morphology.json"])
    return LanguagePack(
        pack_id=manifest.pack_id,
        manifest=manifest,
        lexicon=lexicon,
        function_words=function_words,
        relation_types=relation_types,
        relations=relations,
        operators=operators,
        forms=forms,
        templates=schema.parse_templates(parts["templates.json"]),
        alignment=schema.parse_alignment(parts["alignment.json"]),
        sources=sources,
        sha256=sha256,
        ratified=ratified,
    )
