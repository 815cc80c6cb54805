"""The eight gates of a language pack, each a measurement on the compiled pack that can fail.

Seven are the share of their checks that hold and must be 1; alignment is an AUC. A gate reads the pack and its
vocabulary as they are handed in, so that a fault planted in either shows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from engine.algebra import apply, closure_residual, embed_point, point_coordinates
from engine.base.errors import PromptRefusedError
from engine.language import rigid
from engine.language.compile import compile_vocabulary
from engine.language.digest import vocabulary_digest
from engine.language.encode import Step, encode_text, form_motor
from engine.language.geometry import area_under_curve, motor_distances
from engine.language.placement import PITCH
from engine.language.vocabulary import Vocabulary
from packs.language.authoring import geometry_digest
from packs.language.gates import REQUIRED_LANGUAGE_GATES
from packs.language.model import LanguagePack
from packs.seal import Gate

CLOSURE_TOLERANCE = 1e-6
READBACK_TOLERANCE = 1e-9
"""Coordinates are below 4 and motors have 16 coefficients, so that rounding stays below 1e-13."""


@dataclass(frozen=True)
class Candidate:
    """A pack on its way to ratification, and what it is measured against.

    Attributes:
      pack, vocabulary: the pack and what it compiled to.
      anchors: the packs it is aligned to, with their vocabularies, by language.
      is_reproducible: whether the files came out byte-identical when they were written again.
    """

    pack: LanguagePack
    vocabulary: Vocabulary
    anchors: Mapping[str, tuple[LanguagePack, Vocabulary]]
    is_reproducible: bool


def measure_gates(candidate: Candidate) -> tuple[Gate, ...]:
    """Return all eight gates, measured. The candidate's pack has been loaded, which is what `schema` says."""
    return tuple(
        Gate(name=name, measurement=float(_GATES[name](candidate)), threshold=threshold)
        for name, threshold in REQUIRED_LANGUAGE_GATES.items()
    )


def failed_gates(reason: str) -> tuple[tuple[Gate, ...], tuple[str, ...]]:
    """Return gates that all fail, and the reason, for a pack that does not load."""
    gates = tuple(Gate(name=name, measurement=0.0, threshold=t) for name, t in REQUIRED_LANGUAGE_GATES.items())
    return gates, (reason,)


def measure_schema(candidate: Candidate) -> float:
    """Return the share of the pack's counts that the vocabulary kept: words, edges, operators, function words."""
    pack, vocabulary = candidate.pack, candidate.vocabulary
    kept = (
        vocabulary.lemmas == pack.lemmas,
        len(vocabulary.motors) == len(pack.lexicon),
        set(np.asarray(vocabulary.edge_relations).tolist()) == set(range(len(pack.relations))),
        len(vocabulary.operator_motors) == len(pack.operators),
        len(vocabulary.function_motors) == len(pack.function_words),
    )
    return _share(np.array(kept))


def measure_lexical(candidate: Candidate) -> float:
    """Return the share of lemmas and function words that, typed as a prompt, are read as themselves."""
    pack = candidate.pack
    lemmas = [_reads_as(candidate, lemma, Step(number)) for number, lemma in enumerate(pack.lemmas)]
    grammar = [
        _reads_as(candidate, entry.word, Step(number, is_function_word=True))
        for number, entry in enumerate(pack.function_words)
    ]
    return _share(np.array(lemmas + grammar))


def measure_morphology(candidate: Candidate) -> float:
    """Return the share of forms that trace to their lemma and stand at its point, turned by operators in order."""
    pack, vocabulary = candidate.pack, candidate.vocabulary
    numbers = {lemma: number for number, lemma in enumerate(pack.lemmas)}
    checks = []
    for form in pack.forms:
        number = numbers[form.lemma]
        steps = _steps(candidate, form.form)
        traced = len(steps) == 1 and steps[0].number == number and not steps[0].is_function_word
        place = rigid.translation_vectors(form_motor(vocabulary, number, form.operators))
        drift = np.abs(place - np.asarray(vocabulary.points)[number]).max()
        checks.append(traced and bool(drift < READBACK_TOLERANCE))
    return _share(np.array(checks))


def measure_lift(candidate: Candidate) -> float:
    """Return the share of motors that are versors, of words with a point of their own, and of relations whose way back
    is the reverse of the way there."""
    vocabulary = candidate.vocabulary
    tables = (
        vocabulary.motors,
        vocabulary.relation_motors,
        vocabulary.operator_motors,
        vocabulary.root_motors,
        vocabulary.function_motors,
    )
    closed = [np.asarray(closure_residual(table)) < CLOSURE_TOLERANCE for table in tables if len(table)]
    return _share(np.concatenate([*closed, _is_apart(candidate.vocabulary), _returns(candidate)]))


def measure_readback(candidate: Candidate) -> float:
    """Return the share of words whose motor carries the origin to their point and whose coordinates read back."""
    vocabulary = candidate.vocabulary
    origin = embed_point(jnp.zeros((vocabulary.size, 3)))
    reached = np.asarray(point_coordinates(apply(vocabulary.motors, origin)))
    at_point = np.abs(reached - np.asarray(vocabulary.points)).max(axis=1) < READBACK_TOLERANCE
    read = rigid.coordinates_from_motors(np.asarray(vocabulary.motors))
    same = np.abs(read - np.asarray(vocabulary.coordinates)).max(axis=1) < READBACK_TOLERANCE
    return _share(at_point & same & (_nearest(reached, vocabulary) == np.arange(vocabulary.size)))


def measure_determinism(candidate: Candidate) -> float:
    """Return 1 if the files rebuild byte for byte and a second compilation equals the first bit for bit, else 0."""
    again = vocabulary_digest(compile_vocabulary(candidate.pack)) == vocabulary_digest(candidate.vocabulary)
    return float(again and candidate.is_reproducible)


def measure_alignment(candidate: Candidate) -> float:
    """Return the AUC of aligned against unaligned pairs of words, nearer being better; 1 for a pack without alignment.

    0 if a language it is aligned to is not there, or is no longer the one that the targets were taken from.
    """
    pack = candidate.pack
    if not pack.alignment:
        return 1.0
    for language, digest in pack.manifest.anchors.items():
        if language not in candidate.anchors or geometry_digest(candidate.anchors[language][0].manifest) != digest:
            return 0.0
    return min(alignment_auc(candidate, language) for language in pack.manifest.anchors)


def alignment_auc(candidate: Candidate, language: str) -> float:
    """Return the AUC of the pack's pairs aligned to `language` against all other pairs of the same words."""
    pack, vocabulary = candidate.pack, candidate.vocabulary
    other = candidate.anchors[language][1]
    here = {lemma: number for number, lemma in enumerate(pack.lemmas)}
    there = {lemma: number for number, lemma in enumerate(other.lemmas)}
    pairs = np.array([(here[e.lemma], there[e.other]) for e in pack.alignment if e.language == language])
    distances = motor_distances(
        np.asarray(vocabulary.motors)[pairs[:, 0]], np.asarray(other.motors), vocabulary.rotation_weight
    )
    aligned = np.zeros(distances.shape, dtype=bool)
    aligned[np.arange(len(pairs)), pairs[:, 1]] = True
    return area_under_curve(-distances[aligned], -distances[~aligned])


def measure_coverage(candidate: Candidate) -> float:
    """Return the least of: share of words with a relation, of relation types in use and with a statement."""
    pack = candidate.pack
    if pack.manifest.geometry == "projection":
        return float(all(lexeme.coordinates is not None for lexeme in pack.lexicon))
    related = {end for relation in pack.relations for end in (relation.head, relation.tail)}
    used = {relation.relation for relation in pack.relations}
    stated = {template.key for template in pack.templates if template.kind == "statement"}
    kinds = [kind.relation for kind in pack.relation_types]
    return min(
        _share(np.array([lemma in related for lemma in pack.lemmas])),
        _share(np.array([kind in used for kind in kinds])),
        _share(np.array([kind in stated for kind in kinds])),
    )


_GATES: Mapping[str, Callable[[Candidate], float]] = {
    "schema": measure_schema,
    "lexical": measure_lexical,
    "morphology": measure_morphology,
    "lift": measure_lift,
    "readback": measure_readback,
    "determinism": measure_determinism,
    "alignment": measure_alignment,
    "coverage": measure_coverage,
}


def _share(checks: Bool[ndarray, " n"]) -> float:
    return float(np.mean(checks)) if len(checks) else 1.0


def _steps(candidate: Candidate, text: str) -> tuple[Step, ...]:
    try:
        return encode_text(candidate.vocabulary, candidate.pack, text).steps
    except PromptRefusedError:
        # A word that the door refuses can never be asked about: it is counted as not read.
        return ()


def _reads_as(candidate: Candidate, text: str, step: Step) -> bool:
    return _steps(candidate, text) == (step,)


def _is_apart(vocabulary: Vocabulary) -> Bool[ndarray, " words"]:
    """Return for each word whether no earlier one stands in its grid cell."""
    cells = np.rint(np.asarray(vocabulary.points) / PITCH).astype(np.int64)
    _, first = np.unique(cells, axis=0, return_index=True)
    apart = np.zeros(len(cells), dtype=bool)
    apart[first] = True
    return apart


def _returns(candidate: Candidate) -> Bool[ndarray, " types"]:
    """Return for each relation type whether G times the rotor of its way back is a motion that moves nothing."""
    motors = np.asarray(candidate.vocabulary.relation_motors)
    number_of = {name: number for number, name in enumerate(candidate.vocabulary.relation_types)}
    checks = []
    for kind in candidate.pack.relation_types:
        if kind.symmetric or kind.inverse:
            there, back = number_of[kind.relation], number_of[kind.inverse or kind.relation]
            loop = rigid.multiply(motors[there], motors[back])
            checks.append(abs(abs(loop[0]) - 1.0) < READBACK_TOLERANCE)
    return np.array(checks, dtype=bool)


def _nearest(points: ndarray, vocabulary: Vocabulary, block: int = 512) -> ndarray:
    """Return the number of the word nearest to each point; ties go to the lowest number."""
    words = np.asarray(vocabulary.points)
    nearest = []
    for start in range(0, len(points), block):
        squared = ((points[start : start + block, None, :] - words[None, :, :]) ** 2).sum(axis=-1)
        nearest.append(squared.argmin(axis=1))
    return np.concatenate(nearest)
