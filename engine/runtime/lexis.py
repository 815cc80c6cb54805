"""A language pack as a runtime uses it: vocabulary, walk tables, intent parser, speaker. Built once and shared."""

from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from engine.algebra import even_reverse
from engine.base.errors import NotAVersorError
from engine.generate.admissibility import UNCONSTRAINED, Region, RegionTable, lower_regions
from engine.generate.intent import IntentParser
from engine.generate.surface import Speaker, Step
from engine.generate.tables import StepMotors, WalkTables, build_tables
from engine.language.encode import Encoding, encode_text, prompt_motors
from engine.language.vocabulary import Vocabulary
from packs.language.model import LanguagePack

RIGID_TOLERANCE = 1e-9
"""Coefficients that vanish for a rigid motor may be this large: rounding is near 1e-15, a dilation far above."""


@dataclass(frozen=True)
class Lexis:
    """One language at run time.

    Directed relations are numbered r for the pack's relation type r read from head to tail, and types + r read from
    tail to head; every relation can be walked from both of its ends. `sources` maps a row of the walk tables to
    (relation of the pack, backward).
    """

    pack: LanguagePack
    vocabulary: Vocabulary
    tables: WalkTables
    motors: StepMotors
    sources: NDArray[np.int64]
    parser: IntentParser
    speaker: Speaker

    @property
    def lemmas(self) -> tuple[str, ...]:
        """The words, by number."""
        return self.vocabulary.lemmas

    @property
    def script(self) -> str:
        """The script that the pack reads; `Common` reads any."""
        return self.pack.manifest.script

    @property
    def refuses_unknown(self) -> bool:
        """True where a text with an unknown content word is refused."""
        return self.pack.manifest.oov_policy == "refuse"

    @cached_property
    def _neighbours(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        starts, degrees = np.asarray(self.tables.starts), np.asarray(self.tables.degrees)
        kinds, tails = np.asarray(self.tables.edge_relations), np.asarray(self.tables.edge_tails)
        return tuple(
            tuple((int(kinds[row]), int(tails[row])) for row in range(start, start + degree))
            for start, degree in zip(starts[: len(self.lemmas)], degrees, strict=False)
        )

    def edges_of(self, word: int) -> tuple[tuple[int, int], ...]:
        """Return the (directed relation, other word) pairs of a word."""
        return self._neighbours[word]

    def encode(self, text: str) -> Encoding:
        """Return how a text reads. Raises `PromptRefusedError` for a text that is refused as such."""
        return encode_text(self.vocabulary, self.pack, text)

    def motors_of(self, encoding: Encoding) -> NDArray[np.float64]:
        """Return the motors (steps, 16) of a text's known words and function words, in order."""
        return prompt_motors(self.vocabulary, encoding)

    def step(self, row: int) -> Step:
        """Return the relation behind a row of the walk tables."""
        relation, backward = self.sources[row]
        return Step(int(relation), bool(backward))

    def lower(self, regions: list[Region]) -> RegionTable:
        """Return regions as arrays of this language's sizes; row 0 is the unconstrained region."""
        return lower_regions([UNCONSTRAINED, *regions], self.tables.points.shape[0], self.motors.relations.shape[0])


def build_lexis(pack: LanguagePack, vocabulary: Vocabulary) -> Lexis:
    """Return the run-time form of a pack and its compiled vocabulary.

    Raises `NotAVersorError` where a word is no rigid motion: prompts are encoded with rigid powers.
    """
    _require_rigid(np.asarray(vocabulary.motors), vocabulary.lemmas)
    number = {lemma: index for index, lemma in enumerate(vocabulary.lemmas)}
    kind_number = {kind.relation: index for index, kind in enumerate(pack.relation_types)}
    count = len(kind_number)
    forward = [(number[r.head], kind_number[r.relation], number[r.tail]) for r in pack.relations]
    edges = np.array([[(h, r, t), (t, count + r, h)] for h, r, t in forward], np.int64).reshape(-1, 3)
    turns = vocabulary.relation_motors[:count]
    symmetric = jnp.asarray(np.array([kind.symmetric for kind in pack.relation_types]))
    back = jnp.where(jnp.broadcast_to(symmetric[:, None], turns.shape), turns, even_reverse(turns))
    tables, motors, order = build_tables(
        np.asarray(vocabulary.motors),
        np.asarray(vocabulary.points),
        np.asarray(jnp.concatenate([turns, back])),
        edges,
    )
    return Lexis(
        pack=pack,
        vocabulary=vocabulary,
        tables=tables,
        motors=motors,
        sources=np.stack([order // 2, order % 2], axis=1),
        parser=IntentParser(pack, vocabulary.index),
        speaker=Speaker(pack),
    )


def _require_rigid(motors: NDArray[np.float64], lemmas: tuple[str, ...]) -> None:
    """Rigid: e4 and e5 only occur as n_inf, so that e_i4 = e_i5, e1234 = e1235, and e45 and e_ij45 vanish."""
    paired = motors[:, [3, 6, 8, 11]] - motors[:, [4, 7, 9, 12]]
    strange = np.abs(np.concatenate([paired, motors[:, [10, 13, 14, 15]]], axis=1)).max(axis=1)
    if not np.all(strange < RIGID_TOLERANCE):
        raise NotAVersorError(f"the word {lemmas[int(np.argmax(~(strange < RIGID_TOLERANCE)))]} is no rigid motion")
