"""Cleaning of untrusted text and the one renderer that both arms use to put patterns into a prompt.

A pattern may hold anything: chat-control tokens nested so that removing one builds another, escape sequences,
characters that reorder or hide text, lone surrogates. `clean` removes them until nothing is left to remove.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence

# Tokens by which chat templates mark turns, roles, tools and thinking (ChatML, Llama 2 and 3, Gemma, Mistral, Phi,
# DeepSeek with its full-width bars, Qwen). Inside a bracket neither bracket may stand: the innermost goes first.
_CONTROL_TOKEN = re.compile(
    r"""
      <[|｜][^<>|｜]{0,64}[|｜]>
    | </?(?:s|bos|eos|pad|unk|mask|think|thinking|system|user|assistant|tool|tool_call|tool_response|tools|
        start_of_turn|end_of_turn|start_of_image|unused\d{1,4}|reserved_\w{1,16}|begin_of_text|end_of_text)>
    | \[/?(?:INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|THINK)\]
    | <</?SYS>>
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|[@-Z\\-_])|\x9b[0-?]*[ -/]*[@-~]")
_PASSES = 32
_BRACKETS = str.maketrans("", "", "<>[]|｜")


def find_control_tokens(text: str) -> tuple[str, ...]:
    """Return the chat-control tokens that stand in `text`, in order; hidden characters between their letters count
    too."""
    return tuple(match.group() for match in _CONTROL_TOKEN.finditer(_visible(text)))


def clean(text: str) -> str:
    """Return `text` on one line without escape sequences, control, format or surrogate characters and chat-control
    tokens.

    Stripping goes on until the text no longer changes. Text nested deeper than any writer would nest it loses its
    brackets instead, so that hostile input costs a bounded number of passes and the result is still free of tokens.
    """
    text = " ".join(_visible(text).split())
    for _ in range(_PASSES):
        stripped = " ".join(_CONTROL_TOKEN.sub("", text).split())
        if stripped == text:
            return text
        text = stripped
    return " ".join(text.translate(_BRACKETS).split())


def _visible(text: str) -> str:
    text = _ANSI.sub("", text)
    return "".join(_visible_character(character) for character in text)


def _visible_character(character: str) -> str:
    if character in "\n\t\r\x0b\x0c\x85\u2028\u2029":
        return "\n"
    category = unicodedata.category(character)
    if category == "Cs":
        return "\ufffd"
    return "" if category in ("Cc", "Cf") else character


def render_patterns(texts: Sequence[str]) -> str:
    """Return cleaned pattern texts as a numbered list, one a line; a line break inside a text cannot forge a line."""
    return "\n".join(f"{number}. {clean(text)}" for number, text in enumerate(texts, start=1))


def parse_rendered(text: str) -> tuple[str, ...]:
    """Return the texts of the numbered lines in `text`: the inverse of `render_patterns`, also inside a prompt."""
    return tuple(re.findall(r"^\d+\. (.*)$", text, flags=re.MULTILINE))


_PLACEHOLDER = re.compile(r"\$\{([A-Z_]+)\}")


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return `template` with each `${NAME}` replaced in one pass, so that a value that looks like a name stays as it
    is.

    Raises `KeyError` with the name of a placeholder that has no value.
    """
    return _PLACEHOLDER.sub(lambda match: values[match.group(1)], template)


def placeholders(template: str) -> frozenset[str]:
    """Return the names that stand as `${NAME}` in `template`."""
    return frozenset(_PLACEHOLDER.findall(template))
