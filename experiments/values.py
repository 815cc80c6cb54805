"""The grammar of override values. Standard library only: it runs before Hydra is imported.

Every accepted value is expanded to the plain values it stands for; Hydra later receives only text written from
these, never the user's own characters. `glob(*)` is expanded over the pack ids that are installed.
"""

import fnmatch
import itertools
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.base.errors import ConfigError
from packs.errors import SafetyOverrideError

PACK_ID = re.compile(r"[a-z][a-z0-9_]{0,63}")
INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
NUMBER = re.compile(r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}:[0-9]{1,5}")
GLOB_PATTERN = re.compile(r"[a-z0-9_*?]{1,64}")
CALL = re.compile(r"([a-z_]+)\((.*)\)", re.DOTALL)
MAX_VALUES = 10_000
"""More values than this in one sweep dimension is taken for a slip of the finger."""


@dataclass(frozen=True)
class Value:
    """The plain values one override stands for, and whether it was written as a sweep."""

    items: tuple[str, ...]
    is_sweep: bool


def parse_integers(key: str, text: str) -> Value:
    """Return the integers of `7`, `1,2,3`, `choice(1,2)` or `range(0,8[,step])`."""
    return _expand(key, text, _integer, _integer_range)


def parse_numbers(key: str, text: str) -> Value:
    """Return the finite numbers of `0.5`, `0.1,0.2`, `choice(...)` or `range(start,stop,step)`."""
    return _expand(key, text, _number, _number_range)


def parse_words(key: str, text: str, words: Sequence[str]) -> Value:
    """Return the values of `cpu`, `cpu,gpu` or `choice(...)`, each one of `words`."""

    def word(name: str, item: str) -> str:
        if item not in words:
            raise ConfigError(f"{name}={item}: expected one of {', '.join(words)}")
        return item

    return _expand(key, text, word, None)


def parse_name(key: str, text: str) -> Value:
    """Return one plain name (letters, digits, `_`, `.`, `-`), as clusters give to queues and accounts."""
    if not NAME.fullmatch(text):
        raise ConfigError(f"{key}={text}: expected a name of letters, digits, '_', '.' and '-'")
    return Value((text,), is_sweep=False)


def parse_address(key: str, text: str) -> Value:
    """Return one HOST:PORT, a host name or an IPv4 address and a port."""
    if not ADDRESS.fullmatch(text):
        raise ConfigError(f"{key}={text}: expected HOST:PORT")
    return Value((text,), is_sweep=False)


def parse_pack_ids(key: str, text: str, installed: Sequence[str]) -> Value:
    """Return the ids of `id`, `a,b`, `choice(a,b)`, `glob(pattern)` or `glob(pattern,exclude=pattern)`.

    Whether an id exists is checked by the pack loaders; only the grammar, and that a glob finds something, is here.
    """
    call = CALL.fullmatch(text)
    if call and call[1] == "glob":
        return Value(_glob(key, call[2], installed), is_sweep=True)
    return _expand(key, text, _pack_id, None)


def parse_path(key: str, text: str) -> Value:
    """Return one path, absolute. `..`, `~`, control characters and both kinds of quote at once are refused."""
    path = text
    if len(path) >= 2 and path[0] == path[-1] and path[0] in "'\"":
        path = path[1:-1]
    if not path:
        raise ConfigError(f"{key}= needs a path")
    if ".." in path.replace("\\", "/").split("/"):
        raise SafetyOverrideError(f"{key}: '..' is refused in a path; write the absolute path")
    if not path.isprintable() or "\\" in path or ("'" in path and '"' in path):
        raise ConfigError(f"{key}: the path holds a character that is not supported")
    if path.startswith("~"):
        raise ConfigError(f"{key}: '~' is not expanded; write the absolute path")
    return Value((os.path.abspath(path),), is_sweep=False)


def _expand(
    key: str, text: str, one: Callable[[str, str], str], span: Callable[[str, list[str]], tuple[str, ...]] | None
) -> Value:
    call = CALL.fullmatch(text)
    if call is None:
        parts = _split(text)
        return Value(_unique(key, [one(key, part) for part in parts]), is_sweep=len(parts) > 1)
    if call[1] == "choice":
        return Value(_unique(key, [one(key, part) for part in _split(call[2])]), is_sweep=True)
    if call[1] == "range" and span is not None:
        return Value(span(key, _split(call[2])), is_sweep=True)
    raise ConfigError(f"{key}: {call[1]}(...) is not supported here")


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",", MAX_VALUES)]


def _unique(key: str, items: list[str]) -> tuple[str, ...]:
    if len(items) > MAX_VALUES:
        raise ConfigError(f"{key}: more than {MAX_VALUES} values")
    if len(set(items)) != len(items):
        raise ConfigError(f"{key}: a value is given twice")
    return tuple(items)


def _integer(key: str, item: str) -> str:
    if not INTEGER.fullmatch(item):
        raise ConfigError(f"{key}={item}: expected a whole number")
    return str(int(item))


def _number(key: str, item: str) -> str:
    if not NUMBER.fullmatch(item) or not math.isfinite(float(item)):
        raise ConfigError(f"{key}={item}: expected a finite number")
    return repr(float(item))


def _pack_id(key: str, item: str) -> str:
    if "/" in item or ".." in item or "\\" in item:
        raise SafetyOverrideError(f"{key}={item}: a pack id is a name and never a path")
    if not PACK_ID.fullmatch(item):
        raise ConfigError(f"{key}={item}: a pack id is a lower-case letter, then letters, digits and '_' (at most 64)")
    return item


def _glob(key: str, arguments: str, installed: Sequence[str]) -> tuple[str, ...]:
    parts = _split(arguments)
    exclude = None
    if len(parts) == 2 and parts[1].startswith("exclude="):
        exclude = parts.pop().removeprefix("exclude=")
    patterns = [pattern for pattern in [*parts, exclude] if pattern is not None]
    if len(parts) != 1:
        raise ConfigError(f"{key}: expected glob(pattern) or glob(pattern,exclude=pattern)")
    for pattern in patterns:
        if "/" in pattern or ".." in pattern:
            raise SafetyOverrideError(f"{key}: a glob matches pack ids and never paths")
        if not GLOB_PATTERN.fullmatch(pattern):
            raise ConfigError(f"{key}: a glob pattern holds a-z, 0-9, '_', '*' and '?' only")
    found = tuple(
        name
        for name in sorted(installed)
        if fnmatch.fnmatchcase(name, parts[0]) and not (exclude and fnmatch.fnmatchcase(name, exclude))
    )
    if not found:
        raise ConfigError(f"{key}=glob({arguments}) matches none of {', '.join(sorted(installed))}")
    return found


def _named(key: str, parts: list[str]) -> list[str]:
    """Return range arguments in order, from `0,8`, `0,8,2` or `start=0,stop=8,step=2`."""
    names = ("start", "stop", "step")
    values: dict[str, str] = {}
    for position, part in enumerate(parts):
        name, equals, value = part.partition("=")
        if not equals:
            name, value = (names[position] if position < 3 else "", part)
        if name not in names or name in values:
            raise ConfigError(f"{key}: expected range(start,stop) or range(start,stop,step)")
        values[name] = value
    if "stop" not in values and len(parts) == 1:
        values = {"start": "0", "stop": values["start"]}
    if "stop" not in values:
        raise ConfigError(f"{key}: a range needs its stop")
    return [values.get("start", "0"), values["stop"], values.get("step", "1")]


def _integer_range(key: str, parts: list[str]) -> tuple[str, ...]:
    start, stop, step = (int(_integer(key, part)) for part in _named(key, parts))
    if step == 0:
        raise ConfigError(f"{key}: a range with step 0 has no end")
    span = range(start, stop, step)
    if not 0 < len(span) <= MAX_VALUES:
        raise ConfigError(f"{key}: the range holds {len(span)} values; expected 1 to {MAX_VALUES}")
    return tuple(str(value) for value in span)


def _number_range(key: str, parts: list[str]) -> tuple[str, ...]:
    start, stop, step = (float(_number(key, part)) for part in _named(key, parts))
    if step == 0 or not 0 < (stop - start) / step <= MAX_VALUES:
        raise ConfigError(f"{key}: the range is empty, endless or longer than {MAX_VALUES} values")
    values = (start + index * step for index in itertools.count())
    inside = itertools.takewhile(lambda value: value < stop if step > 0 else value > stop, values)
    return tuple(repr(value) for value in inside)
