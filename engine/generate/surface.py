"""Sentences from the relations a walk took, each with the citation of the relation it states.

A claim is a step of the walk, said by the language pack's template for its relation, from the side the step was taken.
What was not walked is not said, and what was walked but is not in the pack cannot be: a step is an index into the
pack's relations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.generate.hedge import Hedge
from packs.language.model import Citation, LanguagePack, Relation

DEFAULT_PHRASES: Mapping[str, str] = {
    "not_grounded": "That is not grounded in my sources.",
    "unknown_word": "I do not know the word “{word}”.",
    "refusal": "I cannot answer that.",
}
"""Said where a language pack has no phrase of its own; the shipped packs have them all."""


@dataclass(frozen=True)
class Step:
    """A walked step: the index of the relation in the pack, and whether it was walked from tail to head."""

    relation: int
    backward: bool


@dataclass(frozen=True)
class Claim:
    """One sentence and what it stands on: the relation, its citation, and the cited sentence of the source."""

    text: str
    relation: Relation
    citation: Citation


@dataclass(frozen=True)
class Surface:
    """What is said. `claims` are in the order in which they are said."""

    text: str
    claims: tuple[Claim, ...]
    hedge: Hedge


class Speaker:
    """Says things in one language pack's words."""

    def __init__(self, pack: LanguagePack) -> None:
        self._pack = pack
        self._templates: dict[tuple[str, str], str] = {}
        for template in pack.templates:
            self._templates.setdefault((template.kind, template.key), template.text)

    @property
    def phrases(self) -> Mapping[str, str]:
        """The pack's fixed phrases; an articulation pack (the language identity packs are written in) keeps theirs."""
        if self._pack.manifest.role == "articulation":
            return {}
        return {key: text for (kind, key), text in self._templates.items() if kind == "phrase"}

    def lacks(self, key: str) -> bool:
        """True where the pack has no fixed phrase of its own for `key`, so that a default is said."""
        return ("phrase", key) not in self._templates

    def phrase(self, key: str, **values: str) -> str:
        """Return a fixed phrase with its placeholders filled, as a sentence; empty where there is none."""
        text = self._templates.get(("phrase", key), DEFAULT_PHRASES.get(key, ""))
        for name, value in values.items():
            text = text.replace("{" + name + "}", value)
        return sentence(text) if text else ""

    def claim(self, step: Step) -> Claim:
        """Return the sentence of a step."""
        relation = self._pack.relations[step.relation]
        statement = self._templates[("statement", relation.relation)]
        template = self._templates.get(("inverse", relation.relation), statement) if step.backward else statement
        text = template.replace("{head}", self._said(relation.head)).replace("{tail}", self._said(relation.tail))
        return Claim(text=text, relation=relation, citation=relation.citation)

    def _said(self, lemma: str) -> str:
        """Return how a lemma stands in a sentence: the pack's phrase `say_<lemma>` (`a baker`), or the lemma itself."""
        return self._templates.get(("phrase", f"say_{lemma}"), lemma)

    def say(self, steps: Sequence[Step], hedge: Hedge, *, extra: Sequence[str] = ()) -> Surface:
        """Return the steps as sentences, the first one under the hedge; `extra` sentences come last."""
        claims = tuple(self.claim(step) for step in steps)
        sentences = [sentence(claim.text) for claim in claims]
        if sentences and hedge.phrase:
            sentences[0] = sentence(_under(hedge.phrase, uncapitalised(claims[0].text, claims[0].relation)))
        return Surface(text=" ".join([*sentences, *extra]), claims=claims, hedge=hedge)


def _under(phrase: str, claim: str) -> str:
    """Return a claim under a hedge: in the phrase's own place for it, or after the phrase."""
    return phrase.replace("{claim}", claim) if "{claim}" in phrase else f"{phrase} {claim}"


def sentence(text: str) -> str:
    """Return the text as a sentence: first letter upper-case, a full stop unless it ends with a stop of its own."""
    text = capitalised(text.strip())
    return text if text.endswith((".", "!", "?", "·", ";", "׃")) else text + "."


def capitalised(text: str) -> str:
    """Return the text with its first letter upper-case."""
    return text[:1].upper() + text[1:]


def uncapitalised(text: str, relation: Relation) -> str:
    """Return the text with its first letter lower-case, unless it begins with a word that is written upper-case."""
    if text.startswith((relation.head, relation.tail)):
        return text
    return text[:1].lower() + text[1:]
