"""The words by which a language asks: cues that name a relation and the side of it that the asked concept stands on.

A table a language (`questions/*.tsv`, data, read once) holds the cues and the frame words that questions are wrapped in
(`remind me`, `exactly`). It belongs to the language and not to a pack, so that a user's own English pack is asked in
English too; a pack whose function words are of none of these languages has no table.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources

from packs.language.model import LanguagePack
from packs.language.text import tokenise, word_key

LANGUAGES = ("en", "he", "grc")

LONGEST_GAP = 12
"""Words that a gap in a cue may hold."""

BEFORE, INSIDE, AFTER = range(3)
GAP = "*"
_NOTHING = "."
REFUSE = "refuse"
"""The section of words that ask for what no pack has; its cues are words alone."""

_SECTIONS = (REFUSE, "specific", "general")


@dataclass(frozen=True)
class Cue:
    """Words that ask, each a set of look-up keys or a gap, and what is asked of a concept before, inside and after.

    An entry of `asks` is `r>` (the concept is the head of relation r), `r<` (its tail), `r=` (either) or `?kind` (the
    relations that answer that kind of question), best first. Cues of the section `refuse` ask nothing of a concept.
    """

    section: str
    items: tuple[frozenset[str] | None, ...]
    asks: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]

    @property
    def literals(self) -> int:
        """How many words the cue names."""
        return sum(item is not None for item in self.items)


@dataclass(frozen=True)
class Questions:
    """The table of one language, by look-up keys.

    `markers` are function words that tell the language, `classifiers` question words whose next noun says what kind of
    answer is wanted (`which animal`), `prefixes` what may be written before a frame word, `frame` words that questions
    are wrapped in; `cues` stand in the order in which they are tried.
    """

    markers: frozenset[str]
    classifiers: frozenset[str]
    prefixes: frozenset[str]
    frame: frozenset[str]
    cues: tuple[Cue, ...]

    def is_frame(self, key: str) -> bool:
        """Whether a word says no more than that somebody asks."""
        return key in self.frame or any(
            key.startswith(prefix) and key[len(prefix) :] in self.frame for prefix in self.prefixes
        )


@dataclass(frozen=True)
class Found:
    """A cue in a text: the places of its words, and the places of its gap (empty where it has none)."""

    cue: Cue
    words: tuple[int, ...]
    gap: range

    def side(self, start: int, end: int) -> int:
        """Return where a run of words stands: before the cue, in its gap, or after it."""
        if end <= self.words[0]:
            return BEFORE
        return INSIDE if self.gap and self.gap.start <= start and end <= self.gap.stop else AFTER


def questions_of(pack: LanguagePack) -> Questions | None:
    """Return the table of the language that a pack speaks, by its function words, or None."""
    words = {word_key(word.word) for word in pack.function_words}
    for language in LANGUAGES:
        table = load_questions(language)
        if table.markers <= words:
            return table
    return None


@functools.cache
def load_questions(language: str) -> Questions:
    """Return the table of a language in `LANGUAGES`. Raises `ValueError` at a line that is no cue: a fault of ours."""
    text = (resources.files(__package__) / "questions" / f"{language}.tsv").read_text("utf-8")
    section, cues = "", list[Cue]()
    words: dict[str, set[str]] = {"language": set(), "classifier": set(), "prefix": set(), "frame": set()}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith("["):
            section = line.strip("[]")
        elif section in words:
            words[section].update(token.key for token in tokenise(line))
        elif section in _SECTIONS:
            cues.append(_cue(section, line, f"{language}.tsv:{number}"))
        else:
            raise ValueError(f"{language}.tsv:{number}: no section of this name: {section}")
    # Sections in their order, then the cues that name most words; `sorted` keeps the table's order among equals.
    ranked = sorted(cues, key=lambda cue: (_SECTIONS.index(cue.section), -cue.literals))
    return Questions(
        markers=frozenset(words["language"]),
        classifiers=frozenset(words["classifier"]),
        prefixes=frozenset(words["prefix"]),
        frame=frozenset(words["frame"]),
        cues=tuple(ranked),
    )


def find(cue: Cue, keys: Sequence[str]) -> Iterator[Found]:
    """Yield each place in a text where a cue stands, from left to right, with the shortest gap first."""
    if any(item is not None and item.isdisjoint(keys) for item in cue.items):
        return
    for at in range(len(keys)):
        yield from _found_at(cue, keys, at, 0, (), range(0))


def _found_at(cue: Cue, keys: Sequence[str], at: int, item: int, words: tuple[int, ...], gap: range) -> Iterator[Found]:
    if item == len(cue.items):
        yield Found(cue, words, gap)
        return
    wanted = cue.items[item]
    if wanted is None:
        for end in range(at + 1, min(at + LONGEST_GAP, len(keys)) + 1):
            yield from _found_at(cue, keys, end, item + 1, words, range(at, end))
    elif at < len(keys) and keys[at] in wanted:
        yield from _found_at(cue, keys, at + 1, item + 1, (*words, at), gap)


def _cue(section: str, line: str, where: str) -> Cue:
    words, *columns = line.split("\t")
    if len(columns) != (0 if section == REFUSE else 3):
        raise ValueError(f"{where}: a cue has three columns behind its words, one that refuses none")
    items = [None if word == GAP else frozenset(map(word_key, word.split("|"))) for word in words.split()]
    if not items or items[0] is None:
        raise ValueError(f"{where}: a cue begins with a word")
    asks = [tuple(ask for ask in column.split(",") if ask != _NOTHING) for column in columns] or [(), (), ()]
    for ask in itertools.chain(*asks):
        if not ask.startswith("?") and ask[-1] not in "<>=":
            raise ValueError(f"{where}: {ask} asks for nothing")
    return Cue(section, tuple(items), (asks[0], asks[1], asks[2]))
