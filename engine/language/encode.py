"""From text to motors: words are looked up through the pack's morphology, composed, and padded to a few lengths."""

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
from packs.language.text import Token, tokenise

BUCKETS = (8, 16, 32, 64, 128, 256, 512)
"""Lengths that prompts are padded to, so that few programs serve all of them."""

MAX_PROMPT_WORDS = BUCKETS[-1]


@dataclass(frozen=True, slots=True)
class Encoding:
    """A prompt, read.

    Attributes:
      text: the text in NFC.
      token_ids: number of each known word, in the order of the text.
      operators: for each known word, the names of the operators that made its form, in class order.
      tokens: each known word as written.
      unknown: words that are neither vocabulary nor function words, as written.
      function_words: keys of the function words, in order.
    """

    text: str
    token_ids: tuple[int, ...]
    operators: tuple[tuple[str, ...], ...]
    tokens: tuple[str, ...]
    unknown: tuple[str, ...]
    function_words: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class PromptBatch:
    """Prompts of one shape. Rows beyond a prompt's length hold the identity motor, which changes no product."""

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
    known: list[tuple[int, tuple[str, ...], str]] = []
    unknown: list[str] = []
    function_words: list[str] = []
    for match in vocabulary.index.scan(tokens):
        run = tokens[match.start : match.end]
        if match.reading is not None:
            known.append((match.reading.lemma, match.reading.operators, clean[run[0].start : run[-1].end]))
        elif match.is_function_word:
            function_words.append(_key(run))
        else:
            unknown.extend(token.surface for token in run)
    if len(known) > MAX_PROMPT_WORDS:
        raise PromptRefusedError(
            f"the prompt has {len(known)} known words, more than {MAX_PROMPT_WORDS}", reason="too_many_words"
        )
    return Encoding(
        text=clean,
        token_ids=tuple(lemma for lemma, _, _ in known),
        operators=tuple(operators for _, operators, _ in known),
        tokens=tuple(surface for _, _, surface in known),
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


def form_motor(vocabulary: Vocabulary, lemma: int, operators: Sequence[str]) -> Float[ndarray, " 16"]:
    """Return the motor of a form, composed in the order root, stem, inflection, affix.

    The root's motor is that of its words' centre and the stem what is left from there to the lemma; a lemma without a
    root is its own stem. Operators are rotors, so that a form stands at its lemma's point and is turned.
    """
    motor = np.asarray(vocabulary.motors[lemma])
    root = int(vocabulary.roots[lemma])
    if root >= 0:
        root_motor = np.asarray(vocabulary.root_motors[root])
        stem = rigid.multiply(rigid.reverse(root_motor), motor)
        motor = rigid.multiply(root_motor, stem)
    for name in operators:
        motor = rigid.multiply(motor, np.asarray(vocabulary.operator_motors[vocabulary.operators.index(name)]))
    return motor


def prompt_motors(vocabulary: Vocabulary, encoding: Encoding) -> Float[ndarray, "words 16"]:
    """Return the motor of each known word of a prompt, in order."""
    motors = [
        form_motor(vocabulary, lemma, operators)
        for lemma, operators in zip(encoding.token_ids, encoding.operators, strict=True)
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
    longest = max((len(encoding.token_ids) for encoding in encodings), default=0)
    length = bucket_length(longest, buckets)
    motors = np.zeros((len(encodings), length, 16))
    motors[..., 0] = 1.0
    token_ids = np.full((len(encodings), length), -1, dtype=np.int64)
    for row, encoding in enumerate(encodings):
        count = len(encoding.token_ids)
        motors[row, :count] = prompt_motors(vocabulary, encoding)
        token_ids[row, :count] = encoding.token_ids
    lengths = np.array([len(encoding.token_ids) for encoding in encodings], dtype=np.int64)
    return PromptBatch(motors=jnp.asarray(motors), token_ids=jnp.asarray(token_ids), lengths=jnp.asarray(lengths))


def _key(run: Sequence[Token]) -> str:
    return " ".join(token.key for token in run)
