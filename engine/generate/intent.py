"""What a prompt asks: which concept, which kind of relation, and about which other word.

The question patterns, relation words and question words are data of the language pack, cues are data of the language;
this module only matches them on look-up keys. The asked relation becomes an admissibility region for the first step of
the walk, so that the answer is a relation that was really walked and not a sentence chosen beside it.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from engine.generate.admissibility import UNCONSTRAINED, Region
from engine.generate.readings import CHECKING_ROLES, QUESTION_MARKS, CueReader, CueReading
from engine.generate.readings import OPEN as OPEN
from engine.generate.readings import RELATION_CHECK as RELATION_CHECK
from packs.language.lookup import FormIndex, Match
from packs.language.model import LanguagePack
from packs.language.text import Token, tokenise, word_key

MAX_SKIPPED = 8
"""Function words that may be left out at either end of a question (`I would like to know`)."""

LONGEST_LEMMA = 8
"""Words of a text that are looked at for one concept."""

EdgesOf = Callable[[int], Sequence[tuple[int, int]]]
"""From a word to the pairs (directed relation, other word) that start there."""

_SLOTS = ("{head}", "{tail}", "{relation}")
_SKIPPED_IN_SLOTS = frozenset({"article", "particle"})
_KEPT_OUTSIDE = frozenset({"negation"})
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
    """What is asked.

    `head` is the asked concept and `tail` the second word of a relation check or comparison. `tiers` are sets of
    directed relations (r forward, types + r backward) that answer, best first: the first one that the head has an edge
    of is asked for. No tier asks for any relation. `relation` is the relation that was named, `pattern` the question
    pattern that matched, `unknown` the content words outside the vocabulary. `unanswerable` holds the words that ask
    for what no relation of any pack can say (`how much`).
    """

    kind: str
    head: Mention | None
    tail: Mention | None = None
    tiers: tuple[frozenset[int], ...] = ()
    relation: str | None = None
    pattern: str | None = None
    unknown: tuple[str, ...] = ()
    unanswerable: str | None = None

    def region(self, edges: Iterable[tuple[int, int]], lemmas: Sequence[str]) -> Region:
        """Return the region of the first step, given the (relation, tail) edges of the head; `lemmas` label it.

        Where no tier has an edge the last one is returned: the walk then ends there with its reason.
        """
        region = UNCONSTRAINED
        if self.tail is not None and self.tail.lemma is not None:
            region = region & Region(label=f"to {lemmas[self.tail.lemma]}", words=frozenset({self.tail.lemma}))
        if not self.tiers:
            return region
        reachable = {kind for kind, word in edges if region.words is None or word in region.words}
        asked = next((tier for tier in self.tiers if tier & reachable), self.tiers[-1])
        return region & Region(label=self.relation or self.kind, relations=asked)


@dataclass(frozen=True)
class _Pattern:
    kind: str
    items: tuple[str, ...]
    text: str

    @functools.cached_property
    def literals(self) -> frozenset[str]:
        """The words without which it covers no text."""
        return frozenset(self.items) - set(_SLOTS)

    @property
    def specificity(self) -> tuple[int, int]:
        literals = sum(item not in _SLOTS for item in self.items)
        return literals, len(self.items)


class IntentParser:
    """Reads prompts of one language pack. Built once per pack; patterns are tried most specific first."""

    def __init__(self, pack: LanguagePack, index: FormIndex) -> None:
        self._index = index
        self._types = pack.relation_types
        self._roles = {word_key(word.word): word.role for word in pack.function_words}
        patterns = [
            _Pattern(template.key, _pattern_items(template.text), template.text)
            for template in pack.templates
            if template.kind == "question"
        ]
        self._patterns = sorted(patterns, key=lambda pattern: pattern.specificity, reverse=True)
        self._relation_words = _relation_words(pack)
        self._tiers: dict[str, tuple[frozenset[int], ...]] = {}
        self._cues = CueReader(pack, self._roles, self.tiers_answering)

    def parse(self, text: str, edges_of: EdgesOf | None = None) -> Intent:
        """Return what a prompt asks. Never fails.

        Tried in turn: words that ask for what no pack has, the pack's question patterns, the language's cues, and at
        last the bare question word. `edges_of` gives the (directed relation, word) pairs of a word; with it, of two
        readings of one prompt the one that the pack can answer is taken.
        """
        tokens = tokenise(text)
        matches = self._index.scan(tokens)
        refused = self._cues.refusal(tokens)
        if refused is not None:
            return Intent(OPEN, None, unanswerable=refused)
        whole = self._whole(tokens)
        reading = self._cues.read(text, tokens, matches)
        if reading is None:
            return whole[0] if whole else self._from_words(text, tokens, matches)
        cued = self._from_cue(reading, tokens)
        if whole is None or self._wraps(whole[0], tokens):
            return cued
        intent, literals, left_out = whole
        if bool(cued.unknown) != bool(intent.unknown):
            return intent if cued.unknown else cued
        answers = (_answers(cued, edges_of), _answers(intent, edges_of))
        # A pattern that names one word at most, or passes over words that the cue names or that say more than that
        # somebody asks, has not read the whole question.
        unread = any(not self._cues.is_frame(tokens[place]) for place in left_out) or left_out & set(reading.words)
        if reading.specific and answers[0] and (literals <= 1 or unread or reading.literals > literals):
            return cued
        return cued if answers == (True, False) and intent.tail is None else intent

    def _wraps(self, intent: Intent, tokens: Sequence[Token]) -> bool:
        """Whether one of two words that a pattern compares only says what the other one is (`the word X`)."""
        if intent.head is None or intent.tail is None or intent.head.end != intent.tail.start:
            return False
        held = [tokens[mention.start : mention.end] for mention in (intent.head, intent.tail)]
        return any(all(map(self._cues.is_frame, words)) for words in held)

    def _whole(self, tokens: Sequence[Token]) -> tuple[Intent, int, frozenset[int]] | None:
        """Return what a question pattern asks that covers the prompt but for function words at its ends, if one does.

        With it, how many words the pattern names, and the places of the words that it passes over.
        """
        held_keys = {token.key for token in tokens}
        possible = [pattern for pattern in self._patterns if pattern.literals <= held_keys]
        for begin, end in self._cores(tokens):
            for pattern in possible:
                slots = next(self._match(pattern.items, tokens[:end], begin, {}), None)
                if slots is not None:
                    held = [slot for slot in slots.values() if isinstance(slot, Mention)]
                    read = {place for slot in held for place in range(slot.start, slot.end)}
                    left_out = frozenset(
                        place
                        for place, token in enumerate(tokens)
                        if place not in read and token.key not in pattern.items
                    )
                    return self._from_pattern(pattern, slots), pattern.specificity[0], left_out
        return None

    def _from_cue(self, reading: CueReading, tokens: Sequence[Token]) -> Intent:
        head, tail = (
            None if span is None else Mention(*span, _surface(tokens, span[0], span[1]))
            for span in (reading.head, reading.tail)
        )
        return Intent(reading.kind, head, tail, reading.tiers, reading.relation, None, reading.unknown)

    def tiers_answering(self, kind: str) -> tuple[frozenset[int], ...]:
        """Return the directed relations that answer a question kind, read from the asked concept's side.

        A relation type lists the kinds it answers, the one it answers best first; its place in that list is its tier.
        """
        if kind in self._tiers:
            return self._tiers[kind]
        ranked: dict[int, set[int]] = {}
        for number, relation in enumerate(self._types):
            for rank, question in enumerate(relation.questions):
                for name, directed in ((kind, number), (f"~{kind}", len(self._types) + number)):
                    if question == name:
                        both = {number, len(self._types) + number} if relation.symmetric else {directed}
                        ranked.setdefault(rank, set()).update(both)
        self._tiers[kind] = tuple(frozenset(ranked[rank]) for rank in sorted(ranked))
        return self._tiers[kind]

    def _cores(self, tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
        """Yield spans that leave out function words at both ends (`please`, `could you`), the whole text first."""
        spans = [
            (begin, end)
            for begin in range(self._edge_words(tokens) + 1)
            for end in range(len(tokens) - self._edge_words(tokens[::-1]), len(tokens) + 1)
            if begin < end
        ]
        yield from sorted(spans, key=lambda span: (span[0] + len(tokens) - span[1], span[0]))

    def _edge_words(self, tokens: Sequence[Token]) -> int:
        """Count the function words that a text begins with; a negation is never left out."""
        count = 0
        for token in tokens:
            role = self._roles.get(token.key)
            if role is None or role in _KEPT_OUTSIDE or count == MAX_SKIPPED:
                break
            count += 1
        return count

    def _from_pattern(self, pattern: _Pattern, slots: dict[str, Mention | int]) -> Intent:
        head, tail, named = slots.get("{head}"), slots.get("{tail}"), slots.get("{relation}")
        head = head if isinstance(head, Mention) else None
        tail = tail if isinstance(tail, Mention) else None
        unknown = tuple(mention.text for mention in (head, tail) if mention is not None and mention.lemma is None)
        relation: str | None = None
        tiers: tuple[frozenset[int], ...] = self.tiers_answering(pattern.kind)
        if isinstance(named, int):
            relation = self._types[named].relation
            backwards = tail is None and pattern.items.index("{relation}") < pattern.items.index("{head}")
            tiers = (self._named(named, backwards=backwards),)
        elif tail is not None:
            # Any stated relation between the two answers, the ones of the asked kind first.
            tiers = (*tiers, frozenset(range(2 * len(self._types))))
        return Intent(pattern.kind, head, tail, tiers, relation, pattern.text, unknown)

    def _from_words(self, text: str, tokens: Sequence[Token], matches: Sequence[Match]) -> Intent:
        """Read a prompt that fits no pattern: its concepts, the relation it names, its question word."""
        mentions = [
            Mention(match.start, match.end, match.reading.lemma, _surface(tokens, match.start, match.end))
            for match in matches
            if match.reading is not None
        ]
        named = self._named_relation(tokens, mentions)
        unknown = tuple(
            _surface(tokens, match.start, match.end)
            for match in matches
            if match.reading is None
            and match.function_word is None
            and not (named and match.start in named[1])
            and not self._cues.is_frame(tokens[match.start])
        )
        kind = next((_QUESTION_ROLES[role] for role in self._token_roles(tokens) if role in _QUESTION_ROLES), OPEN)
        if not mentions:
            return Intent(kind, None, unknown=unknown)
        relation = self._types[named[0]].relation if named else None
        tiers: tuple[frozenset[int], ...]
        asks = self._roles.get(tokens[0].key) in CHECKING_ROLES or (
            kind == OPEN and text.rstrip()[-1] in QUESTION_MARKS
        )
        if len(mentions) >= 2 and (asks or (named and kind == OPEN)):
            every = frozenset(range(2 * len(self._types)))
            # As in a cue's reading: what is stated the other way round is said as it is stated.
            tiers = (self._named(named[0], backwards=False), self._either(named[0])) if named else (every,)
            return Intent(RELATION_CHECK, mentions[0], mentions[1], tiers, relation, None, unknown)
        head = mentions[0]
        if named and kind != OPEN:
            tiers = (self._named(named[0], backwards=min(named[1]) < head.start), *self.tiers_answering(kind))
        else:
            tiers = self.tiers_answering(kind) if kind != OPEN else ()
        return Intent(kind, head, None, tiers, relation, None, unknown)

    def _token_roles(self, tokens: Sequence[Token]) -> Iterator[str]:
        return (self._roles.get(token.key, "") for token in tokens)

    def _named_relation(self, tokens: Sequence[Token], mentions: Sequence[Mention]) -> tuple[int, range] | None:
        """Return the first relation that a text names outside its concepts, longest phrase first, and where."""
        taken = {place for mention in mentions for place in range(mention.start, mention.end)}
        for words, number in self._relation_words:
            for at in range(len(tokens) - len(words) + 1):
                span = range(at, at + len(words))
                if not taken.intersection(span) and tuple(tokens[place].key for place in span) == words:
                    return number, span
        return None

    def _either(self, number: int) -> frozenset[int]:
        return frozenset({number, len(self._types) + number})

    def _named(self, number: int, *, backwards: bool) -> frozenset[int]:
        count = len(self._types)
        if self._types[number].symmetric:
            return self._either(number)
        return frozenset({count + number if backwards else number})

    def _match(
        self, items: Sequence[str], tokens: Sequence[Token], at: int, slots: dict[str, Mention | int]
    ) -> Iterator[dict[str, Mention | int]]:
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
            mention = self._mention_at(tokens, at)
            if mention is not None:
                yield from self._match(rest, tokens, mention.end, {**slots, item: mention})
        elif at < len(tokens) and tokens[at].key == item:
            yield from self._match(rest, tokens, at + 1, slots)

    def _mention_at(self, tokens: Sequence[Token], at: int) -> Mention | None:
        """Return what a slot holds at a token: a known concept or one unknown word, articles before it skipped."""
        start = at
        while start < len(tokens) and self._roles.get(tokens[start].key) in _SKIPPED_IN_SLOTS:
            start += 1
        if start >= len(tokens):
            return None
        match = self._index.scan(tokens[start : start + LONGEST_LEMMA])[0]
        if match.function_word is not None:
            return None
        lemma = None if match.reading is None else match.reading.lemma
        return Mention(start, start + match.end, lemma, _surface(tokens, start, start + match.end))


def _answers(intent: Intent, edges_of: EdgesOf | None) -> bool:
    """Whether the asked concept has an edge of an asked relation; true where that cannot be told."""
    if edges_of is None or intent.head is None or intent.head.lemma is None:
        return True
    edges = edges_of(intent.head.lemma)
    wanted = None if intent.tail is None else intent.tail.lemma
    kinds = {kind for kind, word in edges if wanted is None or word == wanted}
    return bool(kinds) and (not intent.tiers or any(tier & kinds for tier in intent.tiers))


def _pattern_items(text: str) -> tuple[str, ...]:
    items: list[str] = []
    for part in text.replace("{", " {").replace("}", "} ").split():
        items.extend([part] if part in _SLOTS else [token.key for token in tokenise(part)])
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
