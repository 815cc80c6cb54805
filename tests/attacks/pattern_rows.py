"""Rows for pattern files: bytes that are no pattern file, and texts that try to leave their line."""

import functools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from engine.base.errors import PatternFileError
from engine.instruments.patterns import read_patterns
from engine.instruments.render import clean, find_control_tokens, parse_rendered, render_patterns
from tests.attacks.rows import Row

TABLE = "patterns"

_TOKENS = (
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|start_header_id|>", "<|eot_id|>", "<|assistant|>", "<|user|>",
    "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<s>", "</s>", "<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>",
    "<think>", "</think>", "<tool_call>", "[TOOL_CALLS]", "[SYSTEM_PROMPT]", "<｜User｜>", "<｜end▁of▁sentence｜>",
    "<unused12>", "<reserved_special>", "<|fim_prefix|>", "<|reserved_special_token_9|>",
)  # fmt: skip
_HIDDEN = ("\u200b", "\u200d", "\u2060", "\ufeff", "\u202e", "\u2066", "\u00ad", "\x00", "\x1b[0m", "\x9b31m", "\x7f")


def rows() -> Iterator[Row]:
    """Yield the attacks on pattern files and on the prompt that they end in."""
    for name, data in _files().items():
        yield Row(TABLE, name, PatternFileError, _reads(data))
    for name, make in _places().items():
        yield Row(
            TABLE, name, PatternFileError, functools.partial(lambda make, folder: read_patterns(make(folder)), make)
        )
    for token in _TOKENS:
        half = len(token) // 2
        yield _harmless(f"{token} plain", f"a {token} b")
        for depth in (1, 3, 50):
            yield _harmless(f"{token} nested {depth}", token[:half] * depth + token + token[half:] * depth)
        for other in _TOKENS[:6]:
            yield _harmless(f"{token} around {other}", token[:half] + other + token[half:])
        for hidden in _HIDDEN:
            yield _harmless(f"{token} split by {hidden!a}", token[:half] + hidden + token[half:])
    for separator in ("\n", "\r", "\r\n", "\u2028", "\u2029", "\x0b", "\x0c", "\x85", "\x1c", "\x1d", "\x1e"):
        yield _harmless(f"forged line after {separator!a}", f"one{separator}7. forged")
    for name, text in {
        "lone surrogates": "\ud800 a \udfff",
        "placeholder": "${CONSTITUTION} ${PATTERNS} {0} %s",
        "markdown heading": '# Heading\n- "clause"',
        "a long run of brackets": "<|" * 4000,
        "a megabyte": "x" * 2**20,
        "combining marks": "a" + "\u0301" * 5000,
    }.items():
        yield _harmless(name, text)


def _harmless(name: str, text: str) -> Row:
    return Row(TABLE, name, None, functools.partial(_carry, text))


def _carry(text: str, folder: Path) -> None:
    path = folder / "patterns.json"
    path.write_text(json.dumps([{"pattern": "before"}, {"pattern": text}, {"pattern": "after"}]))
    patterns = read_patterns(path).patterns
    rendered = render_patterns([pattern.text for pattern in patterns])
    assert parse_rendered(rendered) == tuple(pattern.text for pattern in patterns)
    assert rendered.count("\n") == len(patterns) - 1
    assert not find_control_tokens(rendered)
    assert all(line.isprintable() for line in rendered.split("\n"))
    assert all(clean(pattern.text) == pattern.text for pattern in patterns)
    rendered.encode("utf-8")


def _files() -> dict[str, bytes]:
    good = b'{"pattern": "a"}'
    return {
        "cut list": b"[" + good,
        "cut object": good[:-1],
        "cut in a later line": good + b"\n" + good[:-2],
        "trailing comma": b"[" + good + b",]",
        "two lists": b"[" + good + b"][" + good + b"]",
        "text behind a list": b"[" + good + b"] x",
        "objects on one line": good + good,
        "a number": b"5",
        "a text": b'"pattern"',
        "null": b"null",
        "prose": b"these are my patterns",
        "a list of texts": b'["a", "b"]',
        "a list in a list": b"[[" + good + b"]]",
        "no pattern": b'[{"text": "a"}]',
        "pattern is a number": b'[{"pattern": 5}]',
        "pattern is null": b'[{"pattern": null}]',
        "pattern is a list": b'[{"pattern": ["a"]}]',
        "pattern is a truth": b'[{"pattern": true}]',
        "repeated key": b'[{"pattern": "a", "pattern": "b"}]',
        "repeated key inside": b'[{"pattern": "a", "provenance": {"x": 1, "x": 2}}]',
        "NaN": b'[{"pattern": "a", "w": NaN}]',
        "minus infinity": b'[{"pattern": "a", "w": -Infinity}]',
        "huge integer": b'[{"pattern": "a", "w": ' + b"9" * 5000 + b"}]",
        "deep list": b"[" * 200_000,
        "deep object": b'{"pattern": ' * 100_000,
        "single quotes": b"[{'pattern': 'a'}]",
        "comment": b'// mine\n[{"pattern": "a"}]',
        "control character in a text": b'[{"pattern": "a\x01b"}]',
        "bad escape": b'[{"pattern": "\\x41"}]',
        "not UTF-8": b'[{"pattern": "caf\xe9"}]',
        "raw surrogate": b'[{"pattern": "\xed\xa0\x80"}]',
        "UTF-16": '[{"pattern": "a"}]'.encode("utf-16"),
        "UTF-32": '[{"pattern": "a"}]'.encode("utf-32"),
        "NUL bytes": b"\0" * 100,
        "pickle": b"\x80\x04\x95.",
        "gzip": b"\x1f\x8b\x08\x00",
    }


def _reads(data: bytes) -> Callable[[Path], object]:
    def act(folder: Path) -> object:
        (folder / "patterns.json").write_bytes(data)
        return read_patterns(folder / "patterns.json")

    return act


def _places() -> dict[str, Callable[[Path], Path]]:
    def fifo(folder: Path) -> Path:
        os.mkfifo(folder / "pipe")
        return folder / "pipe"

    def loop(folder: Path) -> Path:
        (folder / "a").symlink_to(folder / "b")
        (folder / "b").symlink_to(folder / "a")
        return folder / "a"

    def huge(folder: Path) -> Path:
        with open(folder / "huge", "wb") as stream:
            stream.truncate(2**40)
        return folder / "huge"

    return {
        "absent": lambda folder: folder / "absent",
        "a folder": lambda folder: folder,
        "a pipe": fifo,
        "an endless device": lambda folder: Path("/dev/zero"),
        "links in a circle": loop,
        "a terabyte": huge,
        "a NUL in the name": lambda folder: folder / "a\0b",
    }
