"""The two prompts of each arm, editable Markdown with `${PATTERNS}` and, for the amend arm alone, `${CONSTITUTION}`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from engine.instruments.files import FileFault, read_text
from engine.instruments.render import fill, placeholders
from engine.instruments.resources import packaged

Arm: TypeAlias = Literal["shadow", "amend"]

_NAMES: Mapping[str, frozenset[str]] = {
    "shadow": frozenset({"PATTERNS"}),
    "amend": frozenset({"PATTERNS", "CONSTITUTION"}),
}


class PromptFault(Exception):
    """A prompt is missing, empty, or has other placeholders than its arm fills; the text is one line."""


@dataclass(frozen=True)
class Templates:
    """The user prompt's template and the system prompt, which takes no values."""

    prompt: str
    system: str

    def render(self, values: Mapping[str, str]) -> str:
        """Return the user prompt with its placeholders filled."""
        return fill(self.prompt, values)


def load_templates(arm: Arm, folder: str | os.PathLike[str] | None = None) -> Templates:
    """Return the templates `<arm>.md` and `<arm>-system.md` of `folder` (default: the shipped ones).

    Raises `PromptFault`. The shadow arm's prompt is refused if it asks for `${CONSTITUTION}`.
    """
    prompt, system = _read(f"{arm}.md", folder), _read(f"{arm}-system.md", folder)
    if placeholders(prompt) != _NAMES[arm] or placeholders(system):
        wanted = " and ".join(f"${{{name}}}" for name in sorted(_NAMES[arm]))
        raise PromptFault(f"the {arm} prompt must hold {wanted}, its system prompt nothing of the kind")
    return Templates(prompt, system)


def _read(name: str, folder: str | os.PathLike[str] | None) -> str:
    try:
        if folder is None:
            text = packaged("prompts", "instrument", name).read_text(encoding="utf-8")
        else:
            text = read_text(Path(folder) / name)
    except (FileFault, OSError) as error:
        raise PromptFault(f"prompt {name}: {error}") from None
    if not text.strip():
        raise PromptFault(f"prompt {name} is empty")
    return text.strip()
