"""From a word as written to its lemma: exact forms first, then productive affixes. The index is built once per pack."""

from collections.abc import Sequence
from dataclasses import dataclass

from packs.errors import LanguagePackError
from packs.language.model import OPERATOR_CLASSES, Form, FunctionWord, Lexeme, Operator
from packs.language.text import Token, fold, word_key

MAX_AFFIXES = 2
SHORTEST_STEM = 2
"""Letters that must be left when an affix is stripped; single letters are affixes themselves."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a word: the lemma's index in the lexicon and the operators that made the form, in class order."""

    lemma: int
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """Tokens `start` to `end` (exclusive) of a text, read as a lemma, a function word (its number), or neither."""

    start: int
    end: int
    reading: Reading | None
    function_word: int | None

    @property
    def is_function_word(self) -> bool:
        """Is this a function word of the language?"""
        return self.function_word is not None


class FormIndex:
    """Look-up of words in a pack. Refuses a pack in which a spelling could mean two lemmas."""

    def __init__(
        self,
        lexicon: Sequence[Lexeme],
        forms: Sequence[Form],
        operators: Sequence[Operator],
        function_words: Sequence[FunctionWord],
    ) -> None:
        self._rank = {operator.operator: OPERATOR_CLASSES.index(operator.operator_class) for operator in operators}
        self._readings: dict[str, Reading] = {}
        lemma_numbers = self._add_lemmas(lexicon)
        self._add_forms(forms, lemma_numbers, lexicon)
        self._function_words = self._function_keys(function_words, lexicon)
        self._affixes = [_affix(operator) for operator in operators if operator.productive]
        self._longest = max(key.count(" ") + 1 for key in (*self._readings, *self._function_words))

    def read(self, key: str) -> Reading | None:
        """Return the first reading of a look-up key: as listed, else by stripping the fewest, longest affixes."""
        direct = self._readings.get(key)
        if direct is not None or key in self._function_words:
            return direct
        stripped = self._stripped(key)
        return stripped[0] if stripped else None

    def reads_as(self, key: str, lemma: int) -> bool:
        """Can the key be read as this lemma, in any of its readings?"""
        direct = self._readings.get(key)
        if direct is not None and direct.lemma == lemma:
            return True
        return any(reading.lemma == lemma for reading in self._stripped(key))

    def is_function_word(self, key: str) -> bool:
        """Is the key a function word of this language?"""
        return key in self._function_words

    def scan(self, tokens: Sequence[Token]) -> tuple[Match, ...]:
        """Read a text from left to right, the longest known run of words first."""
        matches: list[Match] = []
        start = 0
        while start < len(tokens):
            match = self._longest_match(tokens, start)
            matches.append(match)
            start = match.end
        return tuple(matches)

    def positions(self, tokens: Sequence[Token], lemma: int, form: str | None = None) -> tuple[tuple[int, int], ...]:
        """Return all runs of tokens that can be read as the lemma (and, where given, are spelled like `form`)."""
        wanted = None if form is None else word_key(form)
        found = []
        for start, token in enumerate(tokens):
            if wanted is not None and not wanted.startswith(token.key):
                continue
            for end in range(start + 1, min(start + self._longest, len(tokens)) + 1):
                key = _joined(tokens, start, end)
                if (wanted is None or key == wanted) and self.reads_as(key, lemma):
                    found.append((start, end))
        return tuple(found)

    def _longest_match(self, tokens: Sequence[Token], start: int) -> Match:
        for end in range(min(start + self._longest, len(tokens)), start, -1):
            key = _joined(tokens, start, end)
            if key in self._readings:
                return Match(start, end, self._readings[key], None)
            if key in self._function_words:
                return Match(start, end, None, self._function_words[key])
        key = tokens[start].key
        reading = self.read(key)
        return Match(start, start + 1, reading, self._stripped_function_word(key) if reading is None else None)

    def _stripped_function_word(self, key: str) -> int | None:
        """Return the function word under one productive affix (a conjunction written as a prefix of another word)."""
        for text, is_prefix, _ in self._affixes:
            if key.startswith(text) if is_prefix else key.endswith(text):
                stem = key[len(text) :] if is_prefix else key[: -len(text)]
                if len(stem) >= SHORTEST_STEM and stem in self._function_words:
                    return self._function_words[stem]
        return None

    def _stripped(self, key: str, depth: int = MAX_AFFIXES) -> list[Reading]:
        """Return the readings left when up to `depth` productive affixes are taken off, fewest affixes first."""
        near: list[Reading] = []
        far: list[Reading] = []
        for text, is_prefix, operator in self._affixes:
            if not (key.startswith(text) if is_prefix else key.endswith(text)):
                continue
            stem = fold(key[len(text) :] if is_prefix else key[: -len(text)])
            if len(stem) < SHORTEST_STEM:
                continue
            direct = self._readings.get(stem)
            if direct is not None:
                near.append(self._with_operator(direct, operator))
            if depth > 1:
                far.extend(self._with_operator(reading, operator) for reading in self._stripped(stem, depth - 1))
        return near + far

    def _with_operator(self, reading: Reading, operator: str) -> Reading:
        operators = sorted((*reading.operators, operator), key=self._rank.__getitem__)
        return Reading(reading.lemma, tuple(operators))

    def _add_lemmas(self, lexicon: Sequence[Lexeme]) -> dict[str, int]:
        numbers: dict[str, int] = {}
        for number, lexeme in enumerate(lexicon):
            if lexeme.lemma in numbers:
                raise LanguagePackError(f"lexicon.json: duplicate lemma {lexeme.lemma}")
            key = word_key(lexeme.lemma)
            if key in self._readings:
                other = lexicon[self._readings[key].lemma].lemma
                raise LanguagePackError(f"lexicon.json: duplicate lemma: {lexeme.lemma} and {other} fold to {key}")
            numbers[lexeme.lemma] = number
            self._readings[key] = Reading(number, ())
        return numbers

    def _add_forms(self, forms: Sequence[Form], numbers: dict[str, int], lexicon: Sequence[Lexeme]) -> None:
        for form in forms:
            if form.lemma not in numbers:
                raise LanguagePackError(f"morphology.json: form {form.form} belongs to no lemma: {form.lemma}")
            self._check_operators(form)
            number, key = numbers[form.lemma], word_key(form.form)
            known = self._readings.get(key)
            if known is not None and known.lemma != number:
                other = lexicon[known.lemma].lemma
                raise LanguagePackError(f"morphology.json: form {form.form} of {form.lemma} already means {other}")
            self._readings.setdefault(key, Reading(number, form.operators))

    def _check_operators(self, form: Form) -> None:
        unknown = [name for name in form.operators if name not in self._rank]
        if unknown:
            raise LanguagePackError(f"morphology.json: form {form.form} uses the unknown operator {unknown[0]}")
        ranks = [self._rank[name] for name in form.operators]
        if ranks != sorted(ranks):
            raise LanguagePackError(
                f"morphology.json: operators of {form.form} are not in the order {', '.join(OPERATOR_CLASSES)}"
            )

    def _function_keys(self, function_words: Sequence[FunctionWord], lexicon: Sequence[Lexeme]) -> dict[str, int]:
        keys: dict[str, int] = {}
        for number, entry in enumerate(function_words):
            key = word_key(entry.word)
            known = self._readings.get(key)
            if known is not None:
                raise LanguagePackError(
                    f"lexicon.json: function word {entry.word} is a form of {lexicon[known.lemma].lemma}"
                )
            if key in keys:
                raise LanguagePackError(f"lexicon.json: function word {entry.word} stands twice")
            keys[key] = number
        return keys


def _affix(operator: Operator) -> tuple[str, bool, str]:
    is_prefix = operator.surface.endswith("-")
    text = fold(operator.surface[:-1] if is_prefix else operator.surface[1:])
    if not text:
        raise LanguagePackError(f"morphology.json: surface of {operator.operator} folds to nothing")
    return text, is_prefix, operator.operator


def _joined(tokens: Sequence[Token], start: int, end: int) -> str:
    return " ".join(token.key for token in tokens[start:end])
