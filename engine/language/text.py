"""The door that a user's text comes in by: size, characters, scripts. What passes is in NFC and otherwise unchanged."""

import unicodedata

from engine.base.errors import PromptRefusedError
from packs.language.model import LanguagePack
from packs.language.text import BIDI_CONTROLS, describe_character, find_forbidden_character, scripts_of, tokenise

MAX_TEXT_BYTES = 64 * 1024

REFUSALS = (
    "not_text",
    "empty_text",
    "text_too_long",
    "control_character",
    "bidi_character",
    "mixed_scripts",
    "foreign_script",
    "too_many_words",
    "no_known_word",
    "unknown_word",
)
"""Reason codes of `PromptRefusedError`."""


def clean_text(text: str, pack: LanguagePack) -> str:
    """Return the text in NFC, stripped, if it may be encoded in the language of `pack`.

    Line feeds and tabs count as spaces. Refused, with a reason code: no text or no word in it, more than 64 KiB of
    UTF-8, control, format and bidirectional characters (shown by code point, never printed raw), a word of two
    scripts (look-alike letters), letters of a script that is not the pack's.

    Raises:
      PromptRefusedError
    """
    if not isinstance(text, str):
        raise PromptRefusedError(f"a prompt is text, not {type(text).__name__}", reason="not_text")
    _check_size(text)
    spaced = text.replace("\r\n", "\n").replace("\n", " ").replace("\t", " ").replace("\u00a0", " ")
    _check_characters(spaced)
    normal = unicodedata.normalize("NFC", spaced).strip()
    if not tokenise(normal):
        raise PromptRefusedError("the prompt holds no word", reason="empty_text")
    _check_scripts(normal, pack.manifest.script)
    return normal


def _check_size(text: str) -> None:
    # A code point is at least one byte: the cheap test first, so that a huge text is not even encoded.
    if len(text) > MAX_TEXT_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        raise PromptRefusedError(
            f"the prompt is longer than {MAX_TEXT_BYTES // 1024} KiB ({len(text)} characters)", reason="text_too_long"
        )


def _check_characters(text: str) -> None:
    fault = find_forbidden_character(text)
    if fault is None:
        return
    offset, kind = fault
    character = text[offset]
    reason = "bidi_character" if character in BIDI_CONTROLS else "control_character"
    raise PromptRefusedError(
        f"the prompt holds a {kind}, {describe_character(character)}, at character {offset}", reason=reason
    )


def _check_scripts(text: str, script: str) -> None:
    for token in tokenise(text):
        found = scripts_of(token.surface)
        if len(found) > 1:
            raise PromptRefusedError(
                f"the word {token.surface!a} mixes letters of {' and '.join(sorted(found))}", reason="mixed_scripts"
            )
    foreign = sorted(scripts_of(text) - {script}) if script != "Common" else []
    if foreign and script in scripts_of(text):
        raise PromptRefusedError(f"the prompt mixes {script} and {foreign[0]} words", reason="mixed_scripts")
    if foreign:
        raise PromptRefusedError(
            f"the prompt is written in {foreign[0]} letters, the pack in {script}", reason="foreign_script"
        )
