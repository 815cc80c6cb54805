"""Prompt files: text (one prompt a line) or JSONL (`{"id": ..., "text": ...}` a line), UTF-8. Standard library only."""

import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from engine.base.errors import ConfigError
from packs import strict_json
from packs.errors import PackFormatError

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_PROMPT_CHARACTERS = 4096
PROMPT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Prompt:
    """One prompt: its id, unique in its file, and its text."""

    prompt_id: str
    text: str


def load_prompts(path: str | None, language: str, limit: int | None = None) -> tuple[Prompt, ...]:
    """Return the prompts of `path`, or the questions shipped for `language`; the first `limit` of them.

    In a text file blank lines and lines that begin with `#` are skipped, and a prompt's id is its number, from `0001`.
    Raises `ConfigError` where the file is missing, too large, not UTF-8, malformed or without a prompt.
    """
    source, data = _read_shipped(language) if path is None else _read_file(Path(path))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source} is not UTF-8: byte {error.start} cannot be read") from error
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    prompts = _parse_jsonl(lines, source) if source.lower().endswith((".jsonl", ".ndjson")) else _parse_text(lines)
    if not prompts:
        raise ConfigError(f"{source} holds no prompt")
    for prompt in prompts:
        if len(prompt.text) > MAX_PROMPT_CHARACTERS:
            raise ConfigError(f"{source}: prompt {prompt.prompt_id} is longer than {MAX_PROMPT_CHARACTERS} characters")
    return tuple(prompts if limit is None else prompts[:limit])


def _read_file(path: Path) -> tuple[str, bytes]:
    try:
        if not path.is_file():
            raise ConfigError(f"prompt file {path} {'is no regular file' if path.exists() else 'does not exist'}")
        with open(path, "rb") as handle:
            data = handle.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"prompt file {path} cannot be read: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"prompt file {path} is larger than {MAX_FILE_BYTES} bytes")
    return str(path), data


def _read_shipped(language: str) -> tuple[str, bytes]:
    name = "questions.txt" if language == "en" else f"questions_{language}.txt"
    shipped = resources.files("configs") / "prompts" / name
    if not shipped.is_file():
        raise ConfigError(f"no questions ship for language {language}: give prompts=FILE")
    return f"configs/prompts/{name}", shipped.read_bytes()


def _parse_text(lines: list[str]) -> list[Prompt]:
    texts = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return [Prompt(f"{number:04d}", text) for number, text in enumerate(texts, start=1)]


def _parse_jsonl(lines: list[str], source: str) -> list[Prompt]:
    prompts: dict[str, Prompt] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{source}, line {number}"
        try:
            row = strict_json.loads(line.encode("utf-8"), source=where)
        except PackFormatError as error:
            raise ConfigError(str(error)) from error
        prompt_id, text = row.get("id"), row.get("text")
        if set(row) != {"id", "text"} or not isinstance(prompt_id, str) or not isinstance(text, str):
            raise ConfigError(f'{where}: expected {{"id": "...", "text": "..."}}')
        if not PROMPT_ID.fullmatch(prompt_id):
            raise ConfigError(f"{where}: an id is a letter or digit, then letters, digits, '.', '_', '-' (at most 64)")
        if prompt_id in prompts:
            raise ConfigError(f"{where}: id {prompt_id} is used twice")
        if not text.strip():
            raise ConfigError(f"{where}: the text is empty")
        prompts[prompt_id] = Prompt(prompt_id, text.strip())
    return list(prompts.values())
