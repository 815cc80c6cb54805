"""Citations resolved against the loaded packs: the span must be there, unaltered, and state the claimed relation."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from packs.language.consistency import find_ends
from packs.language.lookup import FormIndex
from packs.language.model import Citation, LanguagePack, Relation
from packs.language.text import tokenise


@dataclass(frozen=True)
class CitedClaim:
    """A claim as it was said, the pack and the relation it stands on, and the citation it was given."""

    text: str
    language: str
    relation: Relation
    citation: Citation | None


class CitationResolver:
    """Resolves citations against the sources of loaded language packs; nothing is read from disk."""

    def __init__(self, packs: Iterable[LanguagePack]) -> None:
        self._packs = {pack.pack_id: pack for pack in packs}
        self._indices = {
            pack.pack_id: FormIndex(pack.lexicon, pack.forms, pack.operators, pack.function_words)
            for pack in self._packs.values()
        }
        self._numbers = {
            pack.pack_id: {lexeme.lemma: number for number, lexeme in enumerate(pack.lexicon)}
            for pack in self._packs.values()
        }
        self._bodies = {
            (pack.pack_id, name): text.encode() for pack in self._packs.values() for name, text in pack.sources.items()
        }
        self._digests = {key: sha256(body).hexdigest() for key, body in self._bodies.items()}
        self._found: dict[tuple[str, Relation, Citation | None], str | None] = {}
        self._stated = {pack.pack_id: frozenset(_triples(pack)) for pack in self._packs.values()}

    def span(self, language: str, citation: Citation) -> str | None:
        """Return the cited text, or None where there is no such span of a source with this digest."""
        key = (language, citation.source)
        body = self._bodies.get(key)
        if body is None or self._digests[key] != citation.sha256:
            return None
        if not 0 <= citation.start < citation.end <= len(body):
            return None
        try:
            return body[citation.start : citation.end].decode()
        except UnicodeDecodeError:
            return None

    def fault(self, claim: CitedClaim) -> str | None:
        """Return what is wrong with a claim's citation, in one line, or None where it stands."""
        key = (claim.language, claim.relation, claim.citation)
        if key not in self._found:
            self._found[key] = self._resolve(claim)
        return self._found[key]

    def _resolve(self, claim: CitedClaim) -> str | None:
        relation, citation = claim.relation, claim.citation
        triple = f"{relation.head} {relation.relation} {relation.tail}"
        if claim.language not in self._packs:
            return f"{triple}: the language pack {claim.language} is not loaded"
        if citation is None:
            return f"{triple}: no citation"
        text = self.span(claim.language, citation)
        if text is None:
            return f"{triple}: {citation.source}[{citation.start}:{citation.end}] is no span of a loaded source"
        if (relation.head, relation.relation, relation.tail) not in self._stated[claim.language]:
            return f"{triple}: no such relation in {claim.language}"
        numbers = self._numbers[claim.language]
        ends = numbers[relation.head], numbers[relation.tail]
        if find_ends(tokenise(text), self._indices[claim.language], *ends) is None:
            return f"{triple}: the cited span does not contain both ends"
        return None


def _triples(pack: LanguagePack) -> Iterable[tuple[str, str, str]]:
    return ((relation.head, relation.relation, relation.tail) for relation in pack.relations)
