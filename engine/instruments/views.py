"""Views: Markdown seeds that select patterns. The constitutional view is seeded by the live constitution.

A view file is front matter (`threshold`, `top_k`, optional `seed_from`) between two `---` lines, then the seed text.
`seed_from` is a glob in which `${CONSTITUTION_DIR}` stands for the folder in force; where it finds no text, the seed
text of the file stands in, so that a fault of the constitution is told as such by its own guard and not by this one.
"""

import glob
import os
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

from engine.instruments.constitution import join_texts
from engine.instruments.files import FileFault, read_text, text_sha256
from engine.instruments.resources import packaged

CONSTITUTIONAL_VIEW = "constitutional"
_FENCE = "---"


class ViewFault(Exception):
    """The view registry is absent, or a view in it is malformed; the text is one line."""


@dataclass(frozen=True)
class View:
    """A named selection: patterns with a cosine of at least `threshold` to the seed, the best `top_k` of them."""

    name: str
    threshold: float
    top_k: int
    seed_from: str | None
    seed: str
    sha256: str


def load_view(name: str = CONSTITUTIONAL_VIEW, folder: str | os.PathLike[str] | None = None) -> View:
    """Return the view `name` of the registry `folder` (default: the shipped one). Raises `ViewFault`."""
    root: Traversable = packaged("views") if folder is None else Path(folder)
    file = root / f"{name}.md"
    try:
        text = file.read_text(encoding="utf-8") if folder is None else read_text(Path(str(file)))
    except (FileFault, OSError) as error:
        raise ViewFault(f"the view registry has no view {name!r}: {error}") from None
    return parse_view(name, text)


def parse_view(name: str, text: str) -> View:
    """Return the view that `text` describes. Raises `ViewFault` for anything but the form above."""
    parts = text.strip().split("\n")
    if parts[0].strip() != _FENCE or _FENCE not in [line.strip() for line in parts[1:]]:
        raise ViewFault(f"view {name!r} has no front matter between two '---' lines")
    end = next(i for i, line in enumerate(parts[1:], start=1) if line.strip() == _FENCE)
    fields = _fields(name, parts[1:end])
    seed = "\n".join(parts[end + 1 :]).strip()
    if not seed:
        raise ViewFault(f"view {name!r} has no seed text")
    threshold, top_k = _numbers(name, fields)
    return View(name, threshold, top_k, fields.get("seed_from"), seed, text_sha256(text.strip()))


def seed_text(view: View, constitution_dir: str | os.PathLike[str] | None) -> str:
    """Return the text that the view's patterns are compared with."""
    if view.seed_from is None:
        return view.seed
    if "${CONSTITUTION_DIR}" in view.seed_from and constitution_dir is None:
        return view.seed
    # The folder's own name is escaped: a bracket in it is not a pattern.
    folder = glob.escape(os.fspath(constitution_dir)) if constitution_dir is not None else ""
    texts = []
    for path in sorted(glob.glob(view.seed_from.replace("${CONSTITUTION_DIR}", folder))):
        try:
            texts.append(read_text(path))
        except FileFault:
            return view.seed
    return join_texts(texts) or view.seed


def _fields(name: str, lines: list[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, colon, value = line.partition(":")
        key = key.strip()
        if not colon or key not in ("threshold", "top_k", "seed_from") or key in fields:
            raise ViewFault(f"view {name!r}: front matter line {line!a} is unknown, repeated or not 'key: value'")
        fields[key] = value.strip().strip("\"'")
    return fields


def _numbers(name: str, fields: dict[str, str]) -> tuple[float, int]:
    try:
        threshold, top_k = float(fields["threshold"]), int(fields["top_k"])
    except (KeyError, ValueError):
        raise ViewFault(f"view {name!r} needs a number 'threshold' and a whole number 'top_k'") from None
    if not -1.0 <= threshold <= 1.0 or not 1 <= top_k <= 10_000:
        raise ViewFault(f"view {name!r}: threshold must lie in [-1, 1] and top_k in [1, 10000]")
    return threshold, top_k
