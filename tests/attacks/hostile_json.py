"""Hostile bytes in the place of a JSON object, written by us: none may be taken for a pack."""

from collections.abc import Iterator


def hostile_bytes(good: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield name and bytes of each hostile file, made from the good object `good` (as a file lies on disk)."""
    yield from _encodings(good)
    yield from _roots()
    yield from _structure(good)
    yield from _values(good)
    yield from _bombs(good)


def _encodings(good: bytes) -> Iterator[tuple[str, bytes]]:
    text = good.decode()
    yield "empty", b""
    yield "white space only", b" \n\t\r\n"
    yield "one NUL", b"\0"
    yield "UTF-8 byte order mark", b"\xef\xbb\xbf" + good
    yield "UTF-16 with mark", text.encode("utf-16")
    yield "UTF-16 little-endian without mark", text.encode("utf-16-le")
    yield "UTF-16 big-endian without mark", text.encode("utf-16-be")
    yield "UTF-32", text.encode("utf-32")
    yield "UTF-7", text.encode("utf-7").replace(b"{", b"+AHs-", 1)
    yield "Latin-1 byte", good.replace(b"boundaries", b"boundari\xe9s", 1).replace(b"Precision", b"Pr\xe9cision", 1)
    yield "overlong encoding", good.replace(b"{", b"\xc1\xbb", 1)
    yield "raw surrogate", good.replace(b'n": "', b'n": "\xed\xa0\x80', 1)
    yield "byte 0xFF", good + b"\xff"
    yield "cut inside a character", good[:-3] + b"\xe2\x82"
    for name, escape in (
        ("high surrogate", rb"\ud800"),
        ("low surrogate", rb"\udfff"),
        ("surrogates in the wrong order", rb"\udc00\ud800"),
        ("surrogate at the end", rb"x\uD83D"),
    ):
        yield f"escaped {name}", good.replace(b'n": "', b'n": "' + escape, 1)
        yield f"escaped {name} in a key", good.replace(b"{\n", b'{\n  "' + escape + b'": 1,\n', 1)


def _roots() -> Iterator[tuple[str, bytes]]:
    for text in ("null", "true", "0", "1.5", '"text"', "[]", "[{}]", "{}", "NaN", "Infinity", "-Infinity"):
        yield f"root {text}", text.encode()


def _structure(good: bytes) -> Iterator[tuple[str, bytes]]:
    end = good.rstrip()[:-1]
    yield "trailing comma in an object", end.rstrip() + b",\n}\n"
    yield (
        "trailing comma in a list",
        good.replace(b'"\n  ]', b'",\n  ]', 1).replace(b"0.0\n      ]", b"0.0,\n      ]", 1),
    )
    yield "trailing letter", good + b"x"
    yield "trailing object", good + b"{}"
    yield "trailing NUL", good + b"\0"
    yield "trailing bracket", good + b"}"
    yield "two documents", good + good
    yield "leading letter", b"x" + good
    yield "leading NUL", b"\0" + good
    yield "leading form feed", b"\x0c" + good
    yield "leading no-break space", b"\xc2\xa0" + good
    yield "leading line separator", b"\xe2\x80\xa8" + good
    yield "line comment", b"// comment\n" + good
    yield "block comment", b"/* comment */" + good
    yield "hash comment", b"# comment\n" + good
    yield "XSSI prefix", b")]}'\n" + good
    yield "no closing brace", end
    yield "no opening brace", good[1:]
    yield "single quotes", good.replace(b'"', b"'")
    yield "unquoted key", good.replace(b'"version"', b"version", 1)
    yield "missing colon", good.replace(b'"version":', b'"version"', 1)
    yield "missing comma", good.replace(b'",\n  "', b'"\n  "', 1)
    yield "doubled comma", good.replace(b'",\n  "', b'",,\n  "', 1)
    yield "key is a number", good.replace(b"{\n", b"{\n  1: 2,\n", 1)
    yield "key is null", good.replace(b"{\n", b"{\n  null: 2,\n", 1)
    version = good[good.index(b'"version"') : good.index(b"\n", good.index(b'"version"'))].rstrip(b",")
    yield "repeated key, same value", good.replace(b"{\n", b"{\n  " + version + b",\n", 1)
    yield "repeated key, other value first", good.replace(b"{\n", b'{\n  "version": "9.9.9",\n', 1)
    yield "repeated key, other value last", end.rstrip() + b',\n  "version": "9.9.9"\n}\n'
    yield "repeated key behind an escape", good.replace(b"{\n", b'{\n  "ver\\u0073ion": "9.9.9",\n', 1)
    yield "repeated boundary_ids, empty last", end.rstrip() + b',\n  "boundary_ids": []\n}\n'
    yield "repeated unknown key in a nested object", good.replace(b"{\n", b'{\n  "x": {"a": 1, "a": 1},\n', 1)
    yield "__proto__", good.replace(b"{\n", b'{\n  "__proto__": {},\n', 1)
    yield "empty key", good.replace(b"{\n", b'{\n  "": 1,\n', 1)


def _values(good: bytes) -> Iterator[tuple[str, bytes]]:
    texts = (
        "NaN Infinity -Infinity +Infinity nan 1e999 -1e999 1e-999 -1e-400 +1 01 00 -01 1. .5 -.5 1.e3 1e 1e+ - -- "
        "0x10 0b1 1_000 True False None undefined TRUE"
    )
    for text in texts.split():
        yield f"value {text}", good.replace(b'"1.0.0"', text.encode(), 1)
    for digits in (17, 30, 400, 5000):
        yield f"integer of {digits} digits", good.replace(b'"1.0.0"', b"9" * digits, 1)
    yield "raw newline in a string", good.replace(b'n": "', b'n": "\n', 1)
    yield "raw tab in a string", good.replace(b'n": "', b'n": "\t', 1)
    yield "raw NUL in a string", good.replace(b'n": "', b'n": "\0', 1)
    yield "escape \\x", good.replace(b'n": "', b'n": "\\x41', 1)
    yield "escape \\0", good.replace(b'n": "', b'n": "\\0', 1)
    yield "escape \\u12", good.replace(b'n": "', b'n": "\\u12 ', 1)
    yield "escaped NUL", good.replace(b'n": "', b'n": "\\u0000', 1)
    yield "escaped newline", good.replace(b'n": "', b'n": "\\n', 1)
    yield "escaped zero-width space", good.replace(b'n": "', b'n": "\\u200b', 1)
    yield "escaped right-to-left override", good.replace(b'n": "', b'n": "\\u202e', 1)
    yield "backslash at the end", good.rstrip()[:-2] + b"\\"


def _bombs(good: bytes) -> Iterator[tuple[str, bytes]]:
    def planted(value: bytes) -> bytes:
        return good.replace(b"{\n", b'{\n  "x": ' + value + b",\n", 1)

    yield "17 levels of lists", planted(b"[" * 17 + b"]" * 17)
    yield "lists nested 20,000 deep", planted(b"[" * 20_000 + b"]" * 20_000)
    yield "objects nested 8,000 deep", planted(b'{"a":' * 8_000 + b"1" + b"}" * 8_000)
    yield "unclosed lists", b"[" * 60_000
    yield "unclosed objects", b'{"a":' * 12_000
    yield "only closing brackets", b"]" * 60_000
    yield "30,000 escaped quotes outside a string", b'\\"' * 30_000
    yield "60,000 quotes", b'"' * 60_000
    yield "60,000 backslashes in a string", b'{"a": "' + b"\\" * 60_000
    yield "5,000 different unknown keys", planted(b"{" + b",".join(b'"k%d":1' % i for i in range(5_000)) + b"}")
    yield "60,000 spaces", good + b" " * 60_000
