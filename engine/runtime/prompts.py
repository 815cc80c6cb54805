"""From a prompt's text to what the walk needs, or to a typed reason why it is refused. Host side, prompt by prompt."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.base.errors import ConfigError, PromptRefusedError
from engine.generate.admissibility import UNCONSTRAINED, Region
from engine.generate.intent import OPEN, Intent
from engine.runtime.lexis import Lexis
from engine.safety.account import Account

NO_KNOWN_WORD = "no_known_word"
UNKNOWN_WORD = "unknown_word"
NOT_GROUNDED = "not_grounded"
"""Reason codes of the `refusal` column, beside those of `engine.language.text.REFUSALS` and `boundary:<ids>`."""


@dataclass(frozen=True)
class PreparedPrompt:
    """A prompt ready to walk: its words' motors, where the walk starts, and the region of its first step.

    With `refusal` set the rest is empty; `detail` then says what was found, safe to print.
    """

    prompt_id: str
    text: str
    motors: NDArray[np.float64]
    start: int
    region: Region
    intent: Intent
    refusal: str | None = None
    detail: str = ""

    @property
    def unknown(self) -> tuple[str, ...]:
        """Content words that are not in the vocabulary."""
        return self.intent.unknown


def named_prompts(prompts: Sequence[str | tuple[str, str]]) -> list[tuple[str, str]]:
    """Return (id, text) pairs; a bare text gets its number, from `0001`. Raises `ConfigError` for anything else."""
    named = []
    for number, prompt in enumerate(prompts, start=1):
        if isinstance(prompt, str):
            named.append((f"{number:04d}", prompt))
        elif len(prompt) == 2 and all(isinstance(part, str) for part in prompt):
            named.append((prompt[0], prompt[1]))
        else:
            raise ConfigError(f"prompt {number} is neither a text nor an (id, text) pair")
    if isinstance(prompts, str):
        raise ConfigError("prompts is one text; a list of prompts is needed")
    return named


def prepare(prompt_id: str, text: str, lexis: Lexis, account: Account) -> PreparedPrompt:
    """Read one prompt. A fault of the text becomes a refusal of this prompt, entered in `account`; none is mended."""
    try:
        encoding = lexis.encode(text)
    except PromptRefusedError as error:
        account.exception("language.encode", error, shown_in=f"prompt {prompt_id}: refusal")
        return _refused(prompt_id, text, error.reason, str(error))
    intent = lexis.parser.parse(encoding.text, lexis.edges_of)
    if intent.unanswerable is not None and encoding.token_ids:
        return _refused(prompt_id, text, NOT_GROUNDED, intent.unanswerable, intent)
    if not encoding.token_ids:
        return _refused(prompt_id, text, NO_KNOWN_WORD, ", ".join(encoding.unknown) or "only function words", intent)
    missing = _missing_word(intent, known=len(encoding.token_ids), refuses_unknown=lexis.refuses_unknown)
    if missing is not None:
        return _refused(prompt_id, text, UNKNOWN_WORD, missing, intent)
    if intent.head is None or intent.head.lemma is None:
        head, region = encoding.token_ids[0], UNCONSTRAINED
    else:
        head = intent.head.lemma
        region = intent.region(lexis.edges_of(head), lexis.lemmas)
    return PreparedPrompt(prompt_id, text, lexis.motors_of(encoding), head, region, intent)


def _missing_word(intent: Intent, *, known: int, refuses_unknown: bool) -> str | None:
    """Return the unknown word that stands in the way of an answer, if one does.

    A word that fills a slot of the question always does; others do in a question, or where the pack's policy is to
    refuse. A statement of which more is known than not is met with what is known, and its unknown words are named.
    """
    asked = [mention for mention in (intent.head, intent.tail) if mention is not None]
    missing = next((mention.text for mention in asked if mention.lemma is None), None)
    if missing is None and intent.unknown and (intent.kind != OPEN or refuses_unknown or len(intent.unknown) >= known):
        return intent.unknown[0]
    return missing


def _refused(prompt_id: str, text: str, reason: str, detail: str, intent: Intent | None = None) -> PreparedPrompt:
    nothing = np.zeros((0, 16))
    return PreparedPrompt(prompt_id, text, nothing, -1, UNCONSTRAINED, intent or Intent(OPEN, None), reason, detail)
