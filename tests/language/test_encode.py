"""Encoding: what is refused and why, how texts are read, and what the padded motors are."""

import dataclasses
import pickle

import jax.numpy as jnp
import numpy as np
import pytest

from engine.base.errors import PromptRefusedError
from engine.field import measure_closure
from engine.field.holonomy import holonomy
from engine.language import encode
from engine.language.encode import (
    Step,
    bucket_length,
    encode_text,
    form_motor,
    pad_prompts,
    prompt_motors,
    require_known,
)
from engine.language.text import MAX_TEXT_BYTES, REFUSALS
from engine.language.vocabulary import Vocabulary
from packs.language.model import LanguagePack
from packs.language.text import describe_character

REFUSED = [
    ("", "empty_text"),
    ("   \n\t ", "empty_text"),
    ("?!… 🙂", "empty_text"),
    ("rose" * (MAX_TEXT_BYTES // 4) + "s", "text_too_long"),
    ("é" * (MAX_TEXT_BYTES // 2 + 1), "text_too_long"),
    ("rose " * 250_000, "text_too_long"),
    ("a\x00rose", "control_character"),
    ("a\x1b[31mrose", "control_character"),
    ("ro\u200bse", "control_character"),
    ("rose\ud800", "control_character"),
    ("rose \u202egarden", "bidi_character"),
    ("\u2067rose\u2069", "bidi_character"),
    ("the rоse", "mixed_scripts"),
    ("the rose and the ורד", "mixed_scripts"),
    ("מה זה ורד", "foreign_script"),
    ("rose " * (encode.MAX_PROMPT_WORDS + 1), "too_many_words"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=[f"{reason}-{i}" for i, (_, reason) in enumerate(REFUSED)])
def test_texts_that_are_refused(tiny_vocabulary: Vocabulary, tiny_pack: LanguagePack, text: str, reason: str) -> None:
    with pytest.raises(PromptRefusedError) as caught:
        encode_text(tiny_vocabulary, tiny_pack, text)
    assert caught.value.reason == reason
    assert reason in REFUSALS
    line = str(caught.value)
    assert line.isprintable()
    assert len(line) < 300
    assert pickle.loads(pickle.dumps(caught.value)).reason == reason


def test_a_refused_character_is_shown_by_code_point(tiny_vocabulary: Vocabulary, tiny_pack: LanguagePack) -> None:
    with pytest.raises(PromptRefusedError, match=r"U\+202E RIGHT-TO-LEFT OVERRIDE, at character 5"):
        encode_text(tiny_vocabulary, tiny_pack, "rose \u202egarden")
    assert describe_character("\x07") == "U+0007 unnamed"


def test_a_text_is_read_into_words_grammar_and_unknowns(tiny_vocabulary: Vocabulary, tiny_pack: LanguagePack) -> None:
    encoding = encode_text(
        tiny_vocabulary, tiny_pack, "What is the Ship's non-garden, of the OPEN\nsea or roses & zorbs?"
    )
    names = [tiny_vocabulary.lemmas[number] for number in encoding.token_ids]
    assert names == ["ship", "garden", "open sea", "rose"]
    assert encoding.tokens == ("Ship's", "garden", "OPEN sea", "roses")
    assert encoding.function_words == ("what", "is", "the", "of", "the")
    assert encoding.unknown == ("non", "or", "zorbs")
    assert [step.operators for step in encoding.steps if not step.is_function_word] == [
        ("possessive",),
        (),
        (),
        ("plural",),
    ]


def test_decomposed_text_reads_as_composed_text(tiny_vocabulary: Vocabulary, tiny_pack: LanguagePack) -> None:
    composed = encode_text(tiny_vocabulary, tiny_pack, "Rosé")
    decomposed = encode_text(tiny_vocabulary, tiny_pack, "Rose\u0301")
    assert composed == decomposed
    assert composed.token_ids == (0,)


def test_the_packs_policy_decides_on_unknown_words(tiny_vocabulary: Vocabulary, tiny_pack: LanguagePack) -> None:
    strict = dataclasses.replace(tiny_pack, manifest=dataclasses.replace(tiny_pack.manifest, oov_policy="refuse"))
    mixed = encode_text(tiny_vocabulary, tiny_pack, "rose zorb")
    assert require_known(mixed, tiny_pack) is mixed
    with pytest.raises(PromptRefusedError, match="zorb") as unknown:
        require_known(mixed, strict)
    assert unknown.value.reason == "unknown_word"
    with pytest.raises(PromptRefusedError) as nothing:
        require_known(encode_text(tiny_vocabulary, tiny_pack, "what is the zorb"), tiny_pack)
    assert nothing.value.reason == "no_known_word"


def test_prompts_are_padded_to_buckets_with_identity_motors(
    tiny_vocabulary: Vocabulary, tiny_pack: LanguagePack
) -> None:
    texts = ["rose", "what is the garden of roses"]
    encodings = [encode_text(tiny_vocabulary, tiny_pack, text) for text in texts]
    batch = pad_prompts(tiny_vocabulary, encodings)
    assert batch.motors.shape == (2, 8, 16)
    assert batch.lengths.tolist() == [1, 6]
    assert batch.token_ids.tolist() == [[0] + [-1] * 7, [2, 0] + [-1] * 6]
    np.testing.assert_array_equal(batch.motors[0, 1:], np.broadcast_to(np.eye(16)[0], (7, 16)))
    np.testing.assert_array_equal(batch.motors[1, :6], prompt_motors(tiny_vocabulary, encodings[1]))
    np.testing.assert_array_equal(batch.motors[1, 5], form_motor(tiny_vocabulary, 0, encodings[1].steps[-1].operators))
    assert encodings[1].steps[0] == Step(3, is_function_word=True)


def test_an_empty_batch_has_a_shape(tiny_vocabulary: Vocabulary) -> None:
    batch = pad_prompts(tiny_vocabulary, [])
    assert batch.motors.shape == (0, 8, 16)


@pytest.mark.parametrize(("longest", "bucket"), [(0, 8), (8, 8), (9, 16), (512, 512)])
def test_the_smallest_bucket_that_fits(longest: int, bucket: int) -> None:
    assert bucket_length(longest) == bucket


def test_longer_than_every_bucket_is_refused() -> None:
    with pytest.raises(PromptRefusedError):
        bucket_length(513)


def test_encodings_are_versors_that_depend_on_order_and_damping(
    tiny_vocabulary: Vocabulary, tiny_pack: LanguagePack
) -> None:
    texts = ["garden harbour ship", "ship harbour garden", "what is ship harbour garden", "harbour harbour harbour"]
    motors = pad_prompts(tiny_vocabulary, [encode_text(tiny_vocabulary, tiny_pack, text) for text in texts]).motors
    half = holonomy(motors, jnp.asarray(0.5))
    assert bool(measure_closure(half).ok.all())
    differences = np.linalg.norm(np.asarray(half)[:, None] - np.asarray(half)[None, :], axis=-1) + np.eye(4)
    assert differences.min() > 1e-3
    assert np.abs(np.asarray(holonomy(motors, jnp.asarray(0.9)) - half)).max() > 1e-3
    np.testing.assert_allclose(holonomy(motors, jnp.asarray(0.0)), np.broadcast_to(np.eye(16)[0], (4, 16)), atol=1e-12)


@pytest.mark.slow
def test_the_longest_prompt_is_still_a_versor(tiny_vocabulary: Vocabulary, tiny_pack: LanguagePack) -> None:
    text = "rose storm ship garden " * (encode.MAX_PROMPT_WORDS // 4)
    motors = pad_prompts(tiny_vocabulary, [encode_text(tiny_vocabulary, tiny_pack, text)]).motors
    assert bool(measure_closure(holonomy(motors, jnp.asarray(0.5))).ok.all())
