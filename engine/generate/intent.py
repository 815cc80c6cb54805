"""What a prompt asks: which concept, which kind of relation, and about which other word.

The question patterns, relation words and question words are data of the language pack; this module only matches them
on look-up keys. The asked relation becomes an admissibility region for the first step of the walk, so that the answer
is a relation that was really walked and not a sentence chosen beside it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.generate.admissibility import UNCONSTRAINED, Region
from packs.language.lookup import FormIndex
from packs.language.model import LanguagePack, RelationType
from packs.language.text import Token, tokenise

OPEN = "open"
"""The kind of a prompt that asks for no particular relation."""

RELATION_CHECK = "relation"
COMPARISON = "comparison"
_SLOTS = ("{head}", "{tail}", "{relation}")
_SKIPPED_ROLES = frozenset({"article", "particle"})
_QUESTION_ROLES = {
    "question_why": "why",
    "question_how": "how",
    "question_who": "who",
    "question_what": "what",
    "question_when": "when",
    "question_where": "where",
}


@dataclass(frozen=True)
class Mention:
    """A word of a prompt in a slot: tokens `start` to `end`, the lemma's index or None where it is unknown."""

    start: int
    end: int
    lemma: int | None
    text: str


@dataclass(frozen=True)
class Intent:
    """What is asked. `relations` are directed relation indices (r forward, types + r backward); None asks any."""

    kind: str
    head: Mention | None
    tail: Mention | None = None
    relations: frozenset[int] | None = None
    relation: str | None = None
    pattern: str | None = None

    def region(self, labels: Sequence[str]) -> Region:
        """Return the region of the first step; `labels` are the lemmas, for messages only."""
        region = UNCONSTRAINED
        if self.relations is not None:
            region = region & Region(label=self.relation or self.kind, relations=self.relations)
        if self.tail is not None and self.tail.lemma is not None:
            region = region & Region(label=f"to {labels[self.tail.lemma]}", words=frozenset({self.tail.lemma}))
        return region


@dataclass(frozen=True)
class _Pattern:
    kind: str
    items: tuple[str, ...]
    text: str

    @property
    def specificity(self) -> tuple[int, int]:
        literals = sum(item not in _SLOTS for item in self.items)
        return literals, len(self.items)


class IntentParser:
    """Reads prompts of one language pack. Built once per pack; patterns are tried most specific first."""

    def __init__(self, pack: LanguagePack) -> None:
        self._index = FormIndex(pack.lexicon, pack.forms, pack.operators, pack.function_words)
        self._types = pack.relation_types
        self._roles = {key: word.role for word in pack.function_words for key in [_key(word.word)]}
        patterns = [
            _Pattern(template.key, _pattern_items(template.text), template.text)
            for template in pack.templates
            if template.kind == "question"
        ]
        self._patterns = sorted(patterns, key=lambda pattern: pattern.specificity, reverse=True)
        self._relation_words = _relation_words(pack)

    def mentions(self, tokens: Sequence[Token]) -> tuple[Mention, ...]:
        """Return the known concepts of a text in order."""
        return tuple(
            Mention(match.start, match.end, match.reading.lemma, _surface(tokens, match.start, match.end))
            for match in self._index.scan(tokens)
            if match.reading is not None
        )

    def unknown(self, tokens: Sequence[Token]) -> tuple[str, ...]:
        """Return the words of a text that are neither vocabulary, nor function words, nor name a relation."""
        named = {word for words, _ in self._relation_words for word in words}
        return tuple(
            _surface(tokens, match.start, match.end)
            for match in self._index.scan(tokens)
            if match.reading is None and not match.is_function_word and tokens[match.start].key not in named
        )

    def parse(self, text: str) -> Intent:
        """Return what a prompt asks. Never fails: a prompt that fits no pattern is read by its question word."""
        tokens = tokenise(text)
        for pattern in self._patterns:
            slots = next(self._match(pattern.items, tokens, 0, {}), None)
            if slots is not None:
                return self._from_pattern(pattern, slots)
        return self._from_question_word(tokens)

    def kinds_answering(self, kind: str) -> frozenset[int]:
        """Return the directed relations that answer a question kind, read from the asked concept's side."""
        return frozenset(_directed(self._types, kind))

    def _from_pattern(self, pattern: _Pattern, slots: dict[str, object]) -> Intent:
        head, tail, named = slots.get("{head}"), slots.get("{tail}"), slots.get("{relation}")
        assert head is None or isinstance(head, Mention)
        assert tail is None or isinstance(tail, Mention)
        relation: str | None = None
        kinds: frozenset[int] | None = self.kinds_answering(pattern.kind) or None
        if isinstance(named, int):
            relation = self._types[named].relation
            backwards = pattern.items.index("{relation}") < pattern.items.index("{head}") and tail is None
            kinds = self._one_relation(named, backwards=backwards)
        elif tail is not None:
            kinds = None
        return Intent(pattern.kind, head, tail, kinds, relation, pattern.text)

    def _from_question_word(self, tokens: Sequence[Token]) -> Intent:
        mentions = self.mentions(tokens)
        head = mentions[0] if mentions else None
        roles = [self._roles.get(token.key, "") for token in tokens]
        kind = next((_QUESTION_ROLES[role] for role in roles if role in _QUESTION_ROLES), OPEN)
        kinds = self.kinds_answering(kind) if kind != OPEN else frozenset()
        return Intent(kind, head, None, kinds or None, None, None)

    def _one_relation(self, number: int, *, backwards: bool) -> frozenset[int]:
        count = len(self._types)
        if self._types[number].symmetric:
            return frozenset({number, count + number})
        return frozenset({count + number if backwards else number})

    def _match(
        self, items: Sequence[str], tokens: Sequence[Token], at: int, slots: dict[str, object]
    ) -> Iterator[dict[str, object]]:
        """Yield the ways in which pattern items cover all tokens from `at`; the first is the one that counts."""
        if not items:
            if at == len(tokens):
                yield slots
            return
        item, rest = items[0], items[1:]
        if item == "{relation}":
            for words, number in self._relation_words:
                end = at + len(words)
                if tuple(token.key for token in tokens[at:end]) == words:
                    yield from self._match(rest, tokens, end, {**slots, item: number})
        elif item in _SLOTS:
            for mention in self._mentions_at(tokens, at, last=not rest):
                yield from self._match(rest, tokens, mention.end, {**slots, item: mention})
        elif at < len(tokens) and tokens[at].key == item:
            yield from self._match(rest, tokens, at + 1, slots)

    def _mentions_at(self, tokens: Sequence[Token], at: int, *, last: bool) -> Iterator[Mention]:
        """Yield what a slot may hold at a token: a known concept or one unknown word, articles before it skipped."""
        start = at
        while start < len(tokens) and self._roles.get(tokens[start].key) in _SKIPPED_ROLES:
            start += 1
        if start >= len(tokens):
            return
        match = self._index.scan(tokens[start:])[0]
        if match.is_function_word:
            return
        end = start + match.end
        lemma = None if match.reading is None else match.reading.lemma
        yield Mention(start, end, lemma, _surface(tokens, start, end))


def _directed(types: Sequence[RelationType], kind: str) -> Iterator[int]:
    for number, relation in enumerate(types):
        forward, backward = kind in relation.questions, f"~{kind}" in relation.questions
        if forward or (backward and relation.symmetric):
            yield number
        if backward or (forward and relation.symmetric):
            yield len(types) + number


def _pattern_items(text: str) -> tuple[str, ...]:
    items: list[str] = []
    for part in text.replace("{", " {").replace("}", "} ").split():
        slot = part if part in _SLOTS else None
        items.extend([slot] if slot else [token.key for token in tokenise(part)])
    return tuple(items)


def _relation_words(pack: LanguagePack) -> tuple[tuple[tuple[str, ...], int], ...]:
    """Return the phrases that name relations with the relation's index, longest first."""
    numbers = {relation.relation: number for number, relation in enumerate(pack.relation_types)}
    phrases = [
        (tuple(token.key for token in tokenise(template.text)), numbers[template.key])
        for template in pack.templates
        if template.kind == "relation_word" and template.key in numbers
    ]
    return tuple(sorted(phrases, key=lambda entry: -len(entry[0])))


def _surface(tokens: Sequence[Token], start: int, end: int) -> str:
    return " ".join(token.surface for token in tokens[start:end])


def _key(word: str) -> str:
    return " ".join(token.key for token in tokenise(word))
