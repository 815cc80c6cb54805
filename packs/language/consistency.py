"""Checks that need more than one file: uniqueness, spans that contain both ends, templates, alignment, scripts."""

from collections.abc import Iterable, Sequence

from packs.errors import LanguagePackError
from packs.ids import shown
from packs.language.lookup import FormIndex
from packs.language.model import LanguagePack, Relation, RelationType
from packs.language.schema import LONGEST_SENTENCE
from packs.language.text import Token, in_word, scripts_of, tokenise


def check_pack(pack: LanguagePack) -> FormIndex:
    """Raise `LanguagePackError` for the first thing in `pack` that does not hold together; return its form index."""
    _check_scripts(pack)
    _require_unique((operator.operator for operator in pack.operators), "morphology.json: operator")
    index = FormIndex(pack.lexicon, pack.forms, pack.operators, pack.function_words)
    _check_geometry(pack)
    check_relation_types(pack.relation_types)
    _check_relations(pack, index)
    _check_templates(pack)
    _check_alignment(pack)
    return index


def check_alignment_with(pack: LanguagePack, other: LanguagePack) -> None:
    """Raise `LanguagePackError` if `pack` is aligned to a word that `other` does not have."""
    known = set(other.lemmas)
    for edge in pack.alignment:
        if edge.language == other.pack_id and edge.other not in known:
            raise LanguagePackError(
                f"alignment.json: {edge.lemma} is aligned to {edge.other}, which is no lemma of {other.pack_id}"
            )


def check_relation_types(types: Sequence[RelationType]) -> None:
    """Raise `LanguagePackError` unless names of relations and inverses are all different, and rotors too."""
    _require_unique(
        (name for kind in types for name in (kind.relation, kind.inverse) if name), "relations.json: relation name"
    )
    rotors: dict[tuple[float, ...], str] = {}
    for kind in types:
        if kind.rotor in rotors:
            raise LanguagePackError(f"relations.json: {kind.relation} and {rotors[kind.rotor]} have the same rotor")
        rotors[kind.rotor] = kind.relation


def find_ends(
    tokens: Sequence[Token],
    index: FormIndex,
    head: int,
    tail: int,
    head_form: str | None = None,
    tail_form: str | None = None,
) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return the first pair of token runs, not overlapping, that are forms of the two lemmas, or None."""
    tails = index.positions(tokens, tail, tail_form)
    for first in index.positions(tokens, head, head_form):
        for second in tails:
            if first[1] <= second[0] or second[1] <= first[0]:
                return first, second
    return None


def _check_scripts(pack: LanguagePack) -> None:
    script = pack.manifest.script
    if script == "Common":
        return
    words = [lexeme.lemma for lexeme in pack.lexicon] + [form.form for form in pack.forms]
    for word in words + [entry.word for entry in pack.function_words]:
        foreign = scripts_of(word) - {script}
        if foreign:
            raise LanguagePackError(f"the word {word!a} holds {min(foreign)} letters in a {script} pack")


def _check_geometry(pack: LanguagePack) -> None:
    placed = sum(lexeme.coordinates is not None for lexeme in pack.lexicon)
    if placed != (len(pack.lexicon) if pack.manifest.geometry == "projection" else 0):
        raise LanguagePackError(
            f"lexicon.json: {placed} of {len(pack.lexicon)} lexemes carry coordinates, which does not fit the "
            f"geometry {pack.manifest.geometry}"
        )


def _check_relations(pack: LanguagePack, index: FormIndex) -> None:
    numbers = {lexeme.lemma: number for number, lexeme in enumerate(pack.lexicon)}
    types = {kind.relation: kind for kind in pack.relation_types}
    bodies = {name: text.encode() for name, text in pack.sources.items()}
    sentences: dict[tuple[str, int, int], tuple[Token, ...]] = {}
    seen: set[tuple[str, str, str]] = set()
    for number, relation in enumerate(pack.relations):
        where = f"relations.json relations[{number}] ({relation.head} {relation.relation} {relation.tail})"
        _check_triple(relation, numbers, types, seen, where)
        citation = relation.citation
        span = (citation.source, citation.start, citation.end)
        if span not in sentences:
            sentences[span] = tokenise(_cited(pack, bodies, relation, where))
        elif citation.sha256 != pack.manifest.sources[f"{citation.source}.md"]:
            raise LanguagePackError(f"{where}: cites another version of {citation.source}.md")
        head, tail = numbers[relation.head], numbers[relation.tail]
        if find_ends(sentences[span], index, head, tail, citation.head_form, citation.tail_form) is None:
            raise LanguagePackError(
                f"{where}: the cited span does not contain both {citation.head_form} and {citation.tail_form} "
                "as forms of its ends"
            )


def _check_triple(
    relation: Relation,
    numbers: dict[str, int],
    types: dict[str, RelationType],
    seen: set[tuple[str, str, str]],
    where: str,
) -> None:
    for end in (relation.head, relation.tail):
        if end not in numbers:
            raise LanguagePackError(f"{where}: {end} is not in the lexicon")
    if relation.relation not in types:
        raise LanguagePackError(f"{where}: unknown relation {relation.relation}")
    if relation.head == relation.tail:
        raise LanguagePackError(f"{where}: a word is related to itself")
    triple = (relation.head, relation.relation, relation.tail)
    back = (relation.tail, relation.relation, relation.head)
    if triple in seen or (types[relation.relation].symmetric and back in seen):
        raise LanguagePackError(f"{where}: the triple stands twice")
    seen.add(triple)


def _cited(pack: LanguagePack, bodies: dict[str, bytes], relation: Relation, where: str) -> str:
    citation = relation.citation
    body = bodies.get(citation.source)
    if body is None:
        raise LanguagePackError(f"{where}: cites {citation.source}.md, which the pack does not have")
    if citation.sha256 != pack.manifest.sources[f"{citation.source}.md"]:
        raise LanguagePackError(f"{where}: cites another version of {citation.source}.md")
    if citation.end > len(body):
        raise LanguagePackError(f"{where}: the span ends at byte {citation.end}, after the end of the file")
    if citation.end - citation.start > 4 * LONGEST_SENTENCE:
        raise LanguagePackError(f"{where}: the span is longer than a sentence may be")
    try:
        text = body[citation.start : citation.end].decode("utf-8")
    except UnicodeDecodeError:
        raise LanguagePackError(f"{where}: the span cuts a character in two") from None
    if "\n" in text or len(text) > LONGEST_SENTENCE:
        raise LanguagePackError(f"{where}: the span is not one sentence on one line")
    if _continues(body, citation.start, citation.end):
        raise LanguagePackError(f"{where}: the span begins or ends inside a word")
    return text


def _continues(body: bytes, start: int, end: int) -> bool:
    """Does a word run across either edge of the span?"""
    around = body[max(0, start - 8) : min(len(body), end + 8)].decode("utf-8", errors="ignore")
    inside = body[start:end].decode("utf-8")
    offset = around.find(inside)
    edges = [
        edge
        for edge in (offset, offset + len(inside))
        if 0 < edge < len(around) and in_word(around, edge - 1) and in_word(around, edge)
    ]
    return bool(edges) and any(token.start < edge < token.end for token in tokenise(around) for edge in edges)


def _check_templates(pack: LanguagePack) -> None:
    relations = {kind.relation for kind in pack.relation_types}
    stated = set()
    for number, template in enumerate(pack.templates):
        if template.kind in ("statement", "inverse", "relation_word") and template.key not in relations:
            raise LanguagePackError(f"templates.json templates[{number}]: unknown relation {shown(template.key)}")
        if template.kind == "statement":
            stated.add(template.key)
    used = {relation.relation for relation in pack.relations}
    silent = sorted(used - stated)
    if silent and pack.manifest.geometry == "relations":
        raise LanguagePackError(f"templates.json: no statement for the relation {silent[0]}")


def _check_alignment(pack: LanguagePack) -> None:
    lemmas = set(pack.lemmas)
    seen: set[tuple[str, str]] = set()
    for edge in pack.alignment:
        if edge.lemma not in lemmas:
            raise LanguagePackError(f"alignment.json: {edge.lemma} is not in the lexicon")
        if edge.language == pack.pack_id:
            raise LanguagePackError(f"alignment.json: {edge.lemma} is aligned within its own language")
        if edge.language not in pack.manifest.anchors:
            raise LanguagePackError(f"alignment.json: the manifest has no anchor for {edge.language}")
        if (edge.lemma, edge.language) in seen:
            raise LanguagePackError(f"alignment.json: {edge.lemma} is aligned to {edge.language} twice")
        seen.add((edge.lemma, edge.language))


def _require_unique(names: Iterable[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise LanguagePackError(f"{what} {name} stands twice")
        seen.add(name)
