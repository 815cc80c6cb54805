"""The terminal session of `core chat`: history, Ctrl-C and Ctrl-D, and slash commands.

Changing the identity or the language makes a new runtime from the packs; it never changes the one in use.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.cli.chat import load_chat
from engine.cli.commands import one_line
from engine.cli.turn import citation_lines, record_turn, render_turn, verdict_lines
from packs.errors import CoreError

HELP = """\
  /identity ID    talk under another identity pack (makes a new runtime)
  /language L     talk in another language pack (makes a new runtime)
  /verdicts       show or hide the safety verdicts of every turn
  /cite           show the cited sentences of the last answer
  /save FILE      write the conversation so far to a new JSON Lines file
  /help  /quit    this text; leave (also Ctrl-D)"""


@dataclass
class Session:
    """One conversation. `turns` are the (text, response) pairs so far."""

    chat: Any
    options: argparse.Namespace
    turns: list[tuple[str, Any]] = field(default_factory=list)
    recorded: bool = True

    @classmethod
    def start(cls, options: argparse.Namespace) -> "Session":
        """Load the runtime and return a session."""
        return cls(load_chat(options.identity, options.language, options.packs_path), options)

    def loop(self) -> int:
        """Read lines until the end of input. Returns 1 where a turn could not be recorded, else 0."""
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import InMemoryHistory

        self._say(self._headline())
        if not sys.stdin.isatty():
            return self._read_all(sys.stdin)
        session: PromptSession[str] = PromptSession(history=InMemoryHistory())
        while True:
            try:
                if not self.handle(session.prompt("> ")):
                    return int(not self.recorded)
            except KeyboardInterrupt:
                self._say("  (interrupted; Ctrl-D leaves)")  # the line, or the turn that was being answered
            except EOFError:
                return int(not self.recorded)

    def _read_all(self, lines: Any) -> int:
        for line in lines:
            if not self.handle(line.rstrip("\n")):
                break
        return int(not self.recorded)

    def handle(self, line: str) -> bool:
        """Handle one line, a question or a command; return False to leave. A typed error is told and survived."""
        text = line.strip()
        if not text:
            return True
        try:
            return self._command(text) if text.startswith("/") else self._ask(text)
        except CoreError as error:
            if _is_fatal(error):
                raise
            self._say(f"  {type(error).__name__}: {one_line(error)}")
            return True

    def _ask(self, text: str) -> bool:
        response = self.chat.chat(text)
        self.turns.append((text, response))
        self._say(render_turn(response, self.options, direction=self._direction))
        self.recorded = record_turn(self.options.log, text, response) and self.recorded
        return True

    def _command(self, text: str) -> bool:
        name, _, argument = text[1:].partition(" ")
        if name in ("quit", "exit"):
            return False
        commands: dict[str, Callable[[str], None]] = {
            "identity": lambda value: self._switch(identity=value),
            "language": lambda value: self._switch(language=value),
            "verdicts": self._toggle_verdicts,
            "cite": self._cite,
            "save": self._save,
            "help": lambda _: self._say(HELP),
        }
        if name not in commands:
            self._say(f"  unknown command /{one_line(name)}; /help lists them")
        else:
            commands[name](argument.strip())
        return True

    def _switch(self, **change: str) -> None:
        if not all(change.values()):
            self._say(f"  /{next(iter(change))} needs the id of a pack")
            return
        runtime = self.chat.runtime
        wanted = {"identity": runtime.identity_id, "language": runtime.language_id, **change}
        self.chat = load_chat(wanted["identity"], wanted["language"], self.options.packs_path)
        self._say(self._headline())

    def _toggle_verdicts(self, _: str) -> None:
        self.options.verdicts = not self.options.verdicts
        if self.options.verdicts and self.turns:
            self._say("\n".join(verdict_lines(self.turns[-1][1])))
        else:
            self._say(f"  verdicts {'shown' if self.options.verdicts else 'hidden'}")

    def _cite(self, _: str) -> None:
        lines = citation_lines(self.turns[-1][1], self._direction, visual=self.options.visual) if self.turns else []
        self._say("\n".join(lines) if lines else "  nothing was cited")

    def _save(self, argument: str) -> None:
        if not argument:
            self._say("  /save needs a file name")
            return
        lines = [json.dumps({"text": text, **response.as_dict()}, ensure_ascii=False) for text, response in self.turns]
        try:
            # A new file only: a conversation never overwrites something.
            with open(Path(argument), "x", encoding="utf-8", opener=_private) as handle:
                handle.write("".join(line + "\n" for line in lines))
        except OSError as error:
            self._say(f"  not saved: {one_line(error.strerror or error)}")
            return
        self._say(f"  {len(lines)} turns saved to {one_line(argument)}")

    @property
    def _direction(self) -> str:
        return str(self.chat.runtime.composition.language.manifest.direction)

    def _headline(self) -> str:
        runtime = self.chat.runtime
        safety = runtime.composition.safety
        state = "" if runtime.composition.ratified else ", NOT RATIFIED"
        return (
            f"{runtime.identity_id} in {runtime.language_id}, safety {safety.pack_id} {safety.version}"
            f" ({safety.sha256[:12]}{state}); /help lists the commands"
        )

    def _say(self, text: str) -> None:
        print(text, flush=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _is_fatal(error: CoreError) -> bool:
    """A safety pack that is no longer to be trusted ends the session."""
    from packs.errors import SafetyPackError

    return isinstance(error, SafetyPackError)
