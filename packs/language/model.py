"""What a loaded language pack is: frozen dataclasses, filled by the loader only, equal by value."""

from collections.abc import Mapping
from dataclasses import dataclass

RotationVector = tuple[float, float, float]
"""Axis times angle, radians; the rotor is exp(-angle/2 * plane dual to the axis)."""

OPERATOR_CLASSES = ("root", "stem", "inflection", "affix")
"""The order in which morphological operators compose; `root` comes from the lexicon."""


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A word of the vocabulary. `coordinates` (6 numbers) only in packs made by projection."""

    lemma: str
    pos: str
    gloss: str
    domain: str
    root: str
    coordinates: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class FunctionWord:
    """A word that carries grammar: neither vocabulary nor unknown; its rotor turns the prompt."""

    word: str
    role: str
    rotor: RotationVector


@dataclass(frozen=True, slots=True)
class RelationType:
    """A kind of relation with its rotor; `questions` are the question kinds it answers (`~kind`: from the tail)."""

    relation: str
    inverse: str
    symmetric: bool
    questions: tuple[str, ...]
    gloss: str
    rotor: RotationVector


@dataclass(frozen=True, slots=True)
class Citation:
    """A span of a source file: bytes `start` to `end` (exclusive) of the file with this SHA-256."""

    source: str
    sha256: str
    start: int
    end: int
    head_form: str
    tail_form: str


@dataclass(frozen=True, slots=True)
class Relation:
    """A typed triple of lemmas and the span that states it."""

    head: str
    relation: str
    tail: str
    citation: Citation


@dataclass(frozen=True, slots=True)
class Operator:
    """A morphological operator: class, what it marks, its visible affix (`x-` or `-x`), and its rotor."""

    operator: str
    operator_class: str
    feature: str
    surface: str
    productive: bool
    rotor: RotationVector


@dataclass(frozen=True, slots=True)
class Form:
    """An inflected or derived form: its lemma and the operators that make it, in class order."""

    form: str
    lemma: str
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """A surface template, question pattern, relation word or phrase."""

    kind: str
    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Alignment:
    """The same concept in another language; `target` are that word's six coordinates when this pack was built."""

    lemma: str
    language: str
    other: str
    strength: float
    target: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the pack says of itself."""

    pack_id: str
    version: str
    description: str
    role: str
    script: str
    direction: str
    normalisation: str
    oov_policy: str
    geometry: str
    files: Mapping[str, str]
    sources: Mapping[str, str]
    anchors: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LanguagePack:
    """A language pack, checked in every part. `sha256` is the digest of its manifest, which binds the rest."""

    pack_id: str
    manifest: Manifest
    lexicon: tuple[Lexeme, ...]
    function_words: tuple[FunctionWord, ...]
    relation_types: tuple[RelationType, ...]
    relations: tuple[Relation, ...]
    operators: tuple[Operator, ...]
    forms: tuple[Form, ...]
    templates: tuple[Template, ...]
    alignment: tuple[Alignment, ...]
    sources: Mapping[str, str]
    sha256: str
    ratified: bool

    @property
    def lang(self) -> str:
        """The pack's id, which is its language code for the packs that ship."""
        return self.pack_id

    @property
    def lemmas(self) -> tuple[str, ...]:
        """The lemmas in the order of the lexicon."""
        return tuple(lexeme.lemma for lexeme in self.lexicon)

    def cited_text(self, citation: Citation) -> str:
        """Return the sentence a citation points to."""
        return self.sources[citation.source].encode()[citation.start : citation.end].decode()
