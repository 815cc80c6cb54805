"""From text to motors: words are looked up through the pack's morphology, composed, and padded to a few lengths."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpy import ndarray

from engine.base.errors import PromptRefusedError
from engine.language import rigid
from engine.language.text import clean_text
from engine.language.vocabulary import Vocabulary
from packs.language.model import LanguagePack
from packs.language.text import tokenise

BUCKETS = (8, 16, 32, 64, 128, 256, 512)
"""Lengths that prompts are padded to, so that few programs serve all of them."""

MAX_PROMPT_WORDS = BUCKETS[-1]


@dataclass(frozen=True, slots=True)
class Step:
    """A word of a prompt that has a motor: a lemma with the operators of its form, or a function word by number."""

    number: int
    operators: tuple[str, ...] = ()
    is_function_word: bool = False


@dataclass(frozen=True, slots=True)
class Encoding:
    """A prompt, read.

    Attributes:
      text: the text in NFC.
      steps: the words that have a motor, in the order of the text, function words included.
      token_ids: number of each word of the vocabulary, in order.
      tokens: each of these words as written.
      unknown: words that are neither vocabulary nor function words, as written; they have no motor.
      function_words: keys of the function words as written, in order.
    """

    text: str
    steps: tuple[Step, ...]
    token_ids: tuple[int, ...]
    tokens: tuple[str, ...]
    unknown: tuple[str, ...]
    function_words: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class PromptBatch:
    """Prompts of one shape. Beyond a prompt's length stand identity motors, which change no product.

    `lengths` counts steps; `token_ids` holds the words of the vocabulary only, then -1.
    """

    motors: Float[Array, "batch length 16"]
    token_ids: Int[Array, "batch length"]
    lengths: Int[Array, " batch"]


def encode_text(vocabulary: Vocabulary, pack: LanguagePack, text: str) -> Encoding:
    """Return how `text` reads in the vocabulary. Unknown words are kept by name, whatever the pack's policy.

    Raises:
      PromptRefusedError: the text itself is refused (see `engine.language.text`), or has more than 512 known words.
    """
    clean = clean_text(text, pack)
    tokens = tokenise(clean)
    steps: list[Step] = []
    known: list[tuple[int, str]] = []
    unknown: list[str] = []
    function_words: list[str] = []
    for match in vocabulary.index.scan(tokens):
        run = tokens[match.start : match.end]
        if match.reading is not None:
            steps.append(Step(match.reading.lemma, match.reading.operators))
            known.append((match.reading.lemma, clean[run[0].start : run[-1].end]))
        elif match.function_word is not None:
            steps.append(Step(match.function_word, is_function_word=True))
            function_words.append(" ".join(token.key for token in run))
        else:
            unknown.extend(token.surface for token in run)
    if len(steps) > MAX_PROMPT_WORDS:
        raise PromptRefusedError(
            f"the prompt has {len(steps)} known words, more than {MAX_PROMPT_WORDS}", reason="too_many_words"
        )
    return Encoding(
        text=clean,
        steps=tuple(steps),
        token_ids=tuple(lemma for lemma, _ in known),
        tokens=tuple(surface for _, surface in known),
        unknown=tuple(unknown),
        function_words=tuple(function_words),
    )


def require_known(encoding: Encoding, pack: LanguagePack) -> Encoding:
    """Return the encoding if the pack's policy lets it through.

    Raises:
      PromptRefusedError: `no_known_word`, or `unknown_word` where the pack refuses words that it does not have.
    """
    if encoding.unknown and pack.manifest.oov_policy == "refuse":
        words = ", ".join(encoding.unknown[:5])
        raise PromptRefusedError(f"not in the {pack.pack_id} vocabulary: {words}", reason="unknown_word")
    if not encoding.token_ids:
        words = ", ".join(encoding.unknown[:5]) or "only function words"
        raise PromptRefusedError(
            f"no word of the {pack.pack_id} vocabulary in the prompt ({words})", reason="no_known_word"
        )
    return encoding


def form_motor(vocabulary: Vocabulary, lemma: int, operators: Sequence[str] = ()) -> Float[ndarray, " 16"]:
    """Return the motor of a form, composed in the order root, stem, inflection, affix.

    The root's motor is that of its words' centre and the stem what is left from there to the lemma; a lemma without a
    root is its own stem. Operators are rotors, so that a form stands at its lemma's point and is turned.
    """
    return _form_motor(vocabulary, lemma, tuple(operators))


@functools.lru_cache(maxsize=65_536)
def _form_motor(vocabulary: Vocabulary, lemma: int, operators: tuple[str, ...]) -> Float[ndarray, " 16"]:
    motor = np.asarray(vocabulary.motors)[lemma]
    root = int(np.asarray(vocabulary.roots)[lemma])
    if root >= 0:
        root_motor = np.asarray(vocabulary.root_motors)[root]
        stem = rigid.multiply(rigid.reverse(root_motor), motor)
        motor = rigid.multiply(root_motor, stem)
    operator_motors = np.asarray(vocabulary.operator_motors)
    for name in operators:
        motor = rigid.multiply(motor, operator_motors[vocabulary.operators.index(name)])
    motor.setflags(write=False)
    return motor


def prompt_motors(vocabulary: Vocabulary, encoding: Encoding) -> Float[ndarray, "words 16"]:
    """Return the motor of each step of a prompt, in order: forms of words, and the rotors of function words."""
    functions = np.asarray(vocabulary.function_motors)
    motors = [
        functions[step.number] if step.is_function_word else form_motor(vocabulary, step.number, step.operators)
        for step in encoding.steps
    ]
    return np.array(motors).reshape(-1, 16)


def bucket_length(longest: int, buckets: Sequence[int] = BUCKETS) -> int:
    """Return the smallest bucket that holds `longest` words.

    Raises:
      PromptRefusedError: longer than the largest bucket.
    """
    for bucket in buckets:
        if longest <= bucket:
            return bucket
    raise PromptRefusedError(f"{longest} words do not fit the largest bucket, {buckets[-1]}", reason="too_many_words")


def pad_prompts(vocabulary: Vocabulary, encodings: Sequence[Encoding], buckets: Sequence[int] = BUCKETS) -> PromptBatch:
    """Return the prompts as one batch, padded to the bucket of the longest; `token_ids` are padded with -1."""
    longest = max((len(encoding.steps) for encoding in encodings), default=0)
    length = bucket_length(longest, buckets)
    motors = np.zeros((len(encodings), length, 16))
    motors[..., 0] = 1.0
    token_ids = np.full((len(encodings), length), -1, dtype=np.int64)
    for row, encoding in enumerate(encodings):
        motors[row, : len(encoding.steps)] = prompt_motors(vocabulary, encoding)
        token_ids[row, : len(encoding.token_ids)] = encoding.token_ids
    lengths = np.array([len(encoding.steps) for encoding in encodings], dtype=np.int64)
    return PromptBatch(motors=jnp.asarray(motors), token_ids=jnp.asarray(token_ids), lengths=jnp.asarray(lengths))
