"""Which concept of a prompt a cue asks about, and for which relations of it."""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.generate import cues
from engine.generate.cues import AFTER, BEFORE, INSIDE, Found
from packs.language.lookup import Match
from packs.language.model import LanguagePack
from packs.language.text import Token

OPEN = "open"
"""The kind of a prompt that asks for no particular relation."""

RELATION_CHECK = "relation"
"""The kind of a question whether, or how, two words are related."""

Span = tuple[int, int, int]
"""First token, token after the last, and number of the lemma."""

ABOUT = "?about"
"""Any relation will do."""

LONGEST_QUESTION = 96
"""Words of a prompt that is searched for cues: the search is quadratic, and nobody asks one thing in more."""

CHECKING_ROLES = frozenset({"auxiliary", "copula"})
"""Roles of the words that a question for yes or no begins with."""

QUESTION_MARKS = frozenset("?;\u037e")
"""The Greek one looks like a semicolon, and is one after normalisation."""

_QUESTION = "question_"
_CLAUSE_ENDS = re.compile(r"[,:;.?!·—–()]")


@dataclass(frozen=True)
class CueReading:
    """What a cue asks: the fields of an `Intent`, with spans for its mentions."""

    kind: str
    head: Span
    tail: Span | None
    tiers: tuple[frozenset[int], ...]
    relation: str | None
    unknown: tuple[str, ...]
    specific: bool
    words: tuple[int, ...]

    @property
    def literals(self) -> int:
        """How many words the cue names."""
        return len(self.words)


class CueReader:
    """Reads prompts by the cues of the pack's language; reads nothing where the language has no table."""

    def __init__(
        self, pack: LanguagePack, roles: Mapping[str, str], answering: Callable[[str], tuple[frozenset[int], ...]]
    ) -> None:
        self._table = cues.questions_of(pack)
        self._roles = roles
        self._answering = answering
        self._strict = pack.manifest.oov_policy == "refuse"
        self._verbs = frozenset(number for number, word in enumerate(pack.lexicon) if word.pos == "verb")
        self._numbers = {kind.relation: number for number, kind in enumerate(pack.relation_types)}

    def refusal(self, tokens: Sequence[Token]) -> str | None:
        """Return the words that ask for what no pack has (`how much`), if there are any."""
        keys = [token.key for token in tokens]
        for found in self._found(keys, refused=True):
            return " ".join(tokens[place].surface for place in found.words)
        return None

    def is_frame(self, token: Token) -> bool:
        """Whether a word says no more than that somebody asks."""
        return self._table is not None and self._table.is_frame(token.key)

    def read(self, text: str, tokens: Sequence[Token], matches: Sequence[Match]) -> CueReading | None:
        """Return what the first cue asks about a concept beside it, one that leaves no word unread before others."""
        keys = [token.key for token in tokens]
        best: CueReading | None = None
        for found in self._found(keys, refused=False):
            concepts = self._concepts(found, keys, matches)
            chosen = self._chosen(found, concepts, keys, text)
            if chosen is not None:
                reading = self._reading(found, *chosen, text, tokens, matches)
                if not reading.unknown:
                    return reading
                best = best or reading
        return best

    def _found(self, keys: Sequence[str], *, refused: bool) -> Iterator[Found]:
        if self._table is not None and len(keys) <= LONGEST_QUESTION:
            for cue in self._table.cues:
                if (cue.section == cues.REFUSE) == refused:
                    yield from cues.find(cue, keys)

    def _concepts(self, found: Found, keys: Sequence[str], matches: Sequence[Match]) -> list[Span]:
        """Return the words of the vocabulary that the question can be about, in order.

        Words of the cue are not; frame words (`reason`, `place`), the noun of `what animal` and verbs beside a noun
        are only where nothing else is.
        """
        assert self._table is not None
        known = [
            (match.start, match.end, match.reading.lemma)
            for match in matches
            if match.reading is not None and not set(range(match.start, match.end)) & set(found.words)
        ]
        told = [span for span in known if not all(map(self._table.is_frame, keys[span[0] : span[1]]))]
        classifiers = self._table.classifiers
        named = [span for span in told if span[0] == 0 or keys[span[0] - 1] not in classifiers]
        named = named or told or known
        nouns = [span for span in named if span[2] not in self._verbs]
        return nouns if len(nouns) > self._checks(keys) else named

    def _chosen(
        self, found: Found, concepts: Sequence[Span], keys: Sequence[str], text: str
    ) -> tuple[Span, Span | None, tuple[str, ...]] | None:
        """Return head, tail and what is asked of the head; None where the cue asks nothing of any concept."""
        asks = found.cue.asks
        sides = [found.side(span[0], span[1]) for span in concepts]
        usable = [(span, side) for span, side in zip(concepts, sides, strict=True) if asks[side]]
        if not usable:
            return None
        if len(concepts) >= 2 and (self._checks(keys) or self._states(found, sides, keys, text)):
            span, side = usable[0]
            others = [other for other in concepts if other is not span]
            after = [other for other in others if other[0] > span[0]]
            return span, (after or others)[0], asks[side]
        for side in (INSIDE, AFTER, BEFORE):
            held = [span for span, place in usable if place == side]
            if held:
                head = held[-1] if side == BEFORE else held[0]
                symmetric = all(ask.endswith("=") for ask in asks[side])
                rest = [span for span in concepts if span[0] > head[0]] or [s for s in concepts if s[0] < head[0]]
                return head, (rest[0] if symmetric and rest else None), asks[side]
        return None

    def _checks(self, keys: Sequence[str]) -> bool:
        """Whether a prompt asks for yes or no: it begins with a verb or a particle of asking, and no question word."""
        roles = [self._roles.get(key, "") for key in keys]
        return bool(roles) and roles[0] in CHECKING_ROLES and not any(role.startswith(_QUESTION) for role in roles)

    def _states(self, found: Found, sides: Sequence[int], keys: Sequence[str], text: str) -> bool:
        """Whether a prompt without a question word states something of two concepts: `X is part of Y, isn't it?`

        The cue stands between them, or, where word order is free, anywhere in a text that ends with a question mark.
        """
        roles = (self._roles.get(key, "") for key in keys)
        asked = any(role.startswith(_QUESTION) for role in roles)
        states = {BEFORE, AFTER} <= set(sides) or text.rstrip()[-1:] in QUESTION_MARKS
        return not asked and found.cue.section == "specific" and states

    def _reading(
        self,
        found: Found,
        head: Span,
        tail: Span | None,
        asks: Sequence[str],
        text: str,
        tokens: Sequence[Token],
        matches: Sequence[Match],
    ) -> CueReading:
        unknown = self._unknown(found, head, text, tokens, matches)
        named = [ask for ask in asks if not ask.startswith("?")]
        relation = named[0][:-1] if named and named[0][:-1] in self._numbers else None
        specific = found.cue.section == "specific"
        if tail is not None:
            every = self._every()
            compared: tuple[frozenset[int], ...] = (self._union(named) if named else every,)
            if named and all(ask.endswith("=") for ask in named):
                # Two words are compared by whatever stands between them, the named relation first.
                compared = (*compared, every)
            elif named:
                # Word order is free in Greek and Hebrew: what is stated the other way round is said as it is stated.
                compared = (*compared, self._union([f"{ask[:-1]}=" for ask in named]))
            return CueReading(RELATION_CHECK, head, tail, compared, relation, unknown, specific, found.words)
        tiers = tuple(tier for ask in asks for tier in self._tiers(ask) if tier)
        kind = next((ask[1:] for ask in asks if ask.startswith("?")), relation or OPEN)
        return CueReading(kind, head, None, tiers, relation, unknown, specific, found.words)

    def _tiers(self, ask: str) -> tuple[frozenset[int], ...]:
        if ask == ABOUT:
            return (self._every(),)
        return self._answering(ask[1:]) if ask.startswith("?") else (self._tier(ask),)

    def _tier(self, ask: str) -> frozenset[int]:
        number = self._numbers.get(ask[:-1])
        if number is None:
            return frozenset()
        forward, backward = number, len(self._numbers) + number
        return {">": frozenset({forward}), "<": frozenset({backward}), "=": frozenset({forward, backward})}[ask[-1]]

    def _union(self, asks: Sequence[str]) -> frozenset[int]:
        return frozenset[int]().union(*map(self._tier, asks))

    def _every(self) -> frozenset[int]:
        return frozenset(range(2 * len(self._numbers)))

    def _unknown(
        self, found: Found, head: Span, text: str, tokens: Sequence[Token], matches: Sequence[Match]
    ) -> tuple[str, ...]:
        """Return the unknown words of the clauses that ask, frame words left out; of all clauses where they refuse."""
        assert self._table is not None
        clauses = [0]
        for left, right in itertools.pairwise(tokens):
            clauses.append(clauses[-1] + bool(_CLAUSE_ENDS.search(text, left.end, right.start)))
        # Where unknown words refuse, they do so wherever they stand: an order may follow a question.
        asked = set(clauses) if self._strict else {clauses[place] for place in (*found.words, head[0])}
        return tuple(
            tokens[match.start].surface
            for match in matches
            if match.reading is None
            and match.function_word is None
            and match.start not in found.words
            and clauses[match.start] in asked
            and not self._table.is_frame(tokens[match.start].key)
        )
