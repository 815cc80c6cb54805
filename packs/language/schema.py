"""From parsed JSON to the frozen data model: types, bounds and grammar of each field, one file at a time."""

import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from packs.errors import LanguagePackError
from packs.ids import is_id, parse_version, require_sha256, shown
from packs.language.fields import Fields
from packs.language.model import (
    OPERATOR_CLASSES,
    Alignment,
    Citation,
    Form,
    FunctionWord,
    Lexeme,
    Manifest,
    Operator,
    Relation,
    RelationType,
    RotationVector,
    Template,
)
from packs.language.text import word_key

SCHEMA_VERSION = "1.0.0"
PARTS = ("lexicon.json", "relations.json", "morphology.json", "templates.json", "alignment.json")
POS = ("noun", "verb", "adjective", "adverb", "proper", "phrase")
SCRIPTS = ("Latin", "Hebrew", "Greek", "Common")
DIRECTIONS = ("ltr", "rtl")
OOV_POLICIES = ("tagged_fallback", "refuse")
GEOMETRIES = ("relations", "projection")
TEMPLATE_KINDS = ("statement", "inverse", "question", "relation_word", "phrase")
PLACEHOLDERS = frozenset({"head", "tail", "relation", "word", "claim", "identity", "reason"})

MAX_LEXEMES = 60_000
MAX_RELATIONS = 400_000
MAX_FORMS = 400_000
MAX_RELATION_TYPES = 64
MAX_OPERATORS = 256
MAX_TEMPLATES = 10_000
MAX_SOURCES = 256
LONGEST_WORD = 128
LONGEST_GLOSS = 512
LONGEST_SENTENCE = 2_000
COORDINATE_BOUND = 16.0
"""Translations beyond this would let walks leave 1e-6 closure early (DESIGN §5)."""

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_Row = TypeVar("_Row")


def parse_manifest(value: Mapping[str, Any], pack_id: str) -> Manifest:
    """Return the manifest; its `pack_id` must be the one asked for."""
    fields = Fields(
        dict(value),
        "manifest.json",
        frozenset(
            [
                "schema_version",
                "pack_id",
                "version",
                "description",
                "role",
                "script",
                "direction",
                "normalisation",
                "oov_policy",
                "geometry",
                "files",
                "sources",
                "anchors",
                "mastery_report_sha256",
            ]
        ),
    )
    fields.choice("schema_version", (SCHEMA_VERSION,))
    if fields.identifier("pack_id") != pack_id:
        raise LanguagePackError(f"manifest.json: pack_id {shown(value['pack_id'])} is not the folder's name {pack_id}")
    parse_version(value["version"], what="manifest.json: version")
    seal = value["mastery_report_sha256"]
    if seal != "":
        require_sha256(seal, what="manifest.json: mastery_report_sha256")
    files = _digests(fields, "files", most=len(PARTS))
    if set(files) != set(PARTS):
        raise LanguagePackError(f"manifest.json: files must name exactly {', '.join(PARTS)}")
    return Manifest(
        pack_id=pack_id,
        version=value["version"],
        description=fields.text("description", longest=LONGEST_SENTENCE),
        role=fields.identifier("role"),
        script=fields.choice("script", SCRIPTS),
        direction=fields.choice("direction", DIRECTIONS),
        normalisation=fields.choice("normalisation", ("NFC",)),
        oov_policy=fields.choice("oov_policy", OOV_POLICIES),
        geometry=fields.choice("geometry", GEOMETRIES),
        files=files,
        sources=_source_digests(fields),
        anchors=_digests(fields, "anchors", most=16),
    )


def parse_lexicon(value: Mapping[str, Any]) -> tuple[tuple[Lexeme, ...], tuple[FunctionWord, ...]]:
    """Return the lexemes and the function words of `lexicon.json`."""
    fields = _part(value, "lexicon.json", "lexemes", "function_words")
    lexemes = _rows(fields, "lexemes", MAX_LEXEMES, _lexeme)
    if not lexemes:
        raise LanguagePackError("lexicon.json: no lexeme")
    return lexemes, _rows(fields, "function_words", MAX_LEXEMES, _function_word)


def parse_relations(value: Mapping[str, Any]) -> tuple[tuple[RelationType, ...], tuple[Relation, ...]]:
    """Return the relation types and the relations of `relations.json`."""
    fields = _part(value, "relations.json", "types", "relations")
    return (
        _rows(fields, "types", MAX_RELATION_TYPES, _relation_type),
        _rows(fields, "relations", MAX_RELATIONS, _relation),
    )


def parse_morphology(value: Mapping[str, Any]) -> tuple[tuple[Operator, ...], tuple[Form, ...]]:
    """Return the operators and the forms of `morphology.json`."""
    fields = _part(value, "morphology.json", "operators", "forms")
    return _rows(fields, "operators", MAX_OPERATORS, _operator), _rows(fields, "forms", MAX_FORMS, _form)


def parse_templates(value: Mapping[str, Any]) -> tuple[Template, ...]:
    """Return the templates of `templates.json`."""
    return _rows(_part(value, "templates.json", "templates"), "templates", MAX_TEMPLATES, _template)


def parse_alignment(value: Mapping[str, Any]) -> tuple[Alignment, ...]:
    """Return the edges of `alignment.json`."""
    return _rows(_part(value, "alignment.json", "edges"), "edges", MAX_LEXEMES, _alignment)


def _part(value: Mapping[str, Any], name: str, *lists: str) -> Fields:
    fields = Fields(dict(value), name, frozenset({"schema_version", *lists}))
    fields.choice("schema_version", (SCHEMA_VERSION,))
    return fields


def _rows(fields: Fields, name: str, most: int, parse: Callable[[object, str], _Row]) -> tuple[_Row, ...]:
    return tuple(
        parse(item, f"{fields.where} {name}[{number}]") for number, item in enumerate(fields.items(name, most=most))
    )


def _lexeme(value: object, where: str) -> Lexeme:
    fields = Fields(value, where, frozenset(["lemma", "pos", "gloss", "domain", "root"]), frozenset({"coordinates"}))
    coordinates = fields.vector("coordinates", length=6, bound=COORDINATE_BOUND) if fields.has("coordinates") else None
    return Lexeme(
        lemma=_word(fields, "lemma"),
        pos=fields.choice("pos", POS),
        gloss=fields.text("gloss", longest=LONGEST_GLOSS, empty=True),
        domain=fields.identifier("domain"),
        root=fields.text("root", longest=LONGEST_WORD, empty=True),
        coordinates=coordinates,
    )


def _function_word(value: object, where: str) -> FunctionWord:
    fields = Fields(value, where, frozenset({"word", "role", "rotor"}))
    return FunctionWord(word=_word(fields, "word"), role=fields.identifier("role"), rotor=_rotor(fields))


def _relation_type(value: object, where: str) -> RelationType:
    fields = Fields(value, where, frozenset(["relation", "inverse", "symmetric", "questions", "gloss", "rotor"]))
    symmetric, inverse = fields.flag("symmetric"), fields.identifier("inverse", empty=True)
    if symmetric and inverse:
        raise LanguagePackError(f"{where}: a symmetric relation has no inverse name")
    rotor = _rotor(fields)
    if symmetric and not math.isclose(math.hypot(*rotor), math.pi, rel_tol=1e-12):
        # An involution: the step back along a symmetric relation is the step forth.
        raise LanguagePackError(f"{where}: the rotor of a symmetric relation is a half-turn")
    return RelationType(
        relation=fields.identifier("relation"),
        inverse=inverse,
        symmetric=symmetric,
        questions=tuple(_question(item, where) for item in fields.items("questions", most=32)),
        gloss=fields.text("gloss", longest=LONGEST_GLOSS, empty=True),
        rotor=rotor,
    )


def _relation(value: object, where: str) -> Relation:
    fields = Fields(
        value,
        where,
        frozenset(["head", "relation", "tail", "source", "sha256", "start", "end", "head_form", "tail_form"]),
    )
    start = fields.integer("start", low=0, high=2**31)
    return Relation(
        head=_word(fields, "head"),
        relation=fields.identifier("relation"),
        tail=_word(fields, "tail"),
        citation=Citation(
            source=fields.identifier("source"),
            sha256=fields.text("sha256", longest=64),
            start=start,
            end=fields.integer("end", low=start + 1, high=2**31),
            head_form=_word(fields, "head_form"),
            tail_form=_word(fields, "tail_form"),
        ),
    )


def _operator(value: object, where: str) -> Operator:
    fields = Fields(value, where, frozenset(["operator", "class", "feature", "surface", "productive", "rotor"]))
    surface, productive = fields.text("surface", longest=LONGEST_WORD, empty=True), fields.flag("productive")
    if surface and (len(surface) < 2 or surface.startswith("-") == surface.endswith("-")):
        raise LanguagePackError(f"{where}: surface {shown(surface)} is neither a prefix `x-` nor a suffix `-x`")
    if productive and not surface:
        raise LanguagePackError(f"{where}: a productive operator needs a surface")
    return Operator(
        operator=fields.identifier("operator"),
        operator_class=fields.choice("class", OPERATOR_CLASSES[1:]),
        feature=fields.text("feature", longest=LONGEST_GLOSS),
        surface=surface,
        productive=productive,
        rotor=_rotor(fields),
    )


def _form(value: object, where: str) -> Form:
    fields = Fields(value, where, frozenset({"form", "lemma", "operators"}))
    operators = fields.items("operators", most=8)
    if not all(is_id(item) for item in operators):
        raise LanguagePackError(f"{where}: operators is not a list of identifiers")
    return Form(form=_word(fields, "form"), lemma=_word(fields, "lemma"), operators=tuple(operators))


def _template(value: object, where: str) -> Template:
    fields = Fields(value, where, frozenset({"kind", "key", "text"}))
    text = fields.text("text", longest=LONGEST_SENTENCE)
    names = set(_PLACEHOLDER.findall(text))
    rest = _PLACEHOLDER.sub("", text)
    if names - PLACEHOLDERS or "{" in rest or "}" in rest:
        raise LanguagePackError(f"{where}: {shown(text)} holds a placeholder that is none of {sorted(PLACEHOLDERS)}")
    kind = fields.choice("kind", TEMPLATE_KINDS)
    if kind in ("statement", "inverse") and not {"head", "tail"} <= names:
        raise LanguagePackError(f"{where}: a {kind} needs both {{head}} and {{tail}}")
    return Template(kind=kind, key=fields.identifier("key"), text=text)


def _alignment(value: object, where: str) -> Alignment:
    fields = Fields(value, where, frozenset(["lemma", "language", "other", "strength", "target"]))
    strength = fields.number("strength", low=0.0, high=1.0)
    if strength == 0.0:
        raise LanguagePackError(f"{where}: a strength of 0 says nothing; leave the row out")
    return Alignment(
        lemma=_word(fields, "lemma"),
        language=fields.identifier("language"),
        other=_word(fields, "other"),
        strength=strength,
        target=fields.vector("target", length=6, bound=COORDINATE_BOUND),
    )


def _word(fields: Fields, name: str) -> str:
    value = fields.text(name, longest=LONGEST_WORD)
    if not word_key(value):
        raise LanguagePackError(f"{fields.where}: {name} {shown(value)} holds no letter or digit")
    return value


def _rotor(fields: Fields) -> RotationVector:
    x, y, z = fields.vector("rotor", length=3, bound=4.0)
    if math.hypot(x, y, z) > math.pi * (1 + 1e-12):
        raise LanguagePackError(f"{fields.where}: rotor turns by more than a half-turn")
    return (x, y, z)


def _question(value: object, where: str) -> str:
    if isinstance(value, str) and is_id(value.removeprefix("~")):
        return value
    raise LanguagePackError(f"{where}: {shown(value)} is not a question kind")


def _digests(fields: Fields, name: str, *, most: int) -> Mapping[str, str]:
    value = fields.mapping(name, most=most)
    return MappingProxyType(
        {key: require_sha256(digest, what=f"manifest.json: {name} {shown(key)}") for key, digest in value.items()}
    )


def _source_digests(fields: Fields) -> Mapping[str, str]:
    digests = _digests(fields, "sources", most=MAX_SOURCES)
    for name in digests:
        if not name.endswith(".md") or not is_id(name.removesuffix(".md")):
            raise LanguagePackError(f"manifest.json: source {shown(name)} is not of the form [a-z][a-z0-9_]*.md")
    return digests
