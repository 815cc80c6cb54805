"""`core chat`: one question with `--once`, otherwise a terminal session; and light listings that need no engine."""

import argparse
import json
import sys
from typing import Any

from engine.cli.commands import one_line


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `core chat`."""
    parser = commands.add_parser(
        "chat",
        help="ask questions under an identity, in a language",
        description="Ask questions under an identity pack, in the words and sources of a language pack.",
        allow_abbrev=False,
    )
    parser.add_argument("--identity", metavar="ID", default=None, help="identity pack (default: default_general_v1)")
    language = parser.add_mutually_exclusive_group()
    language.add_argument("--language", metavar="L", default="en", help="language pack: en, he, grc or your own")
    language.add_argument("--pack", metavar="L", dest="language", default="en", help="the same as --language")
    parser.add_argument("--packs-path", metavar="DIR", default=None, help="folder with your own packs")
    parser.add_argument("--once", metavar="TEXT", default=None, help="answer TEXT and exit")
    parser.add_argument("--json", action="store_true", help="with --once and the listings: JSON on stdout")
    parser.add_argument("--verdicts", action="store_true", help="show the safety verdicts of every turn")
    parser.add_argument("--cite", action="store_true", help="show the cited sentences of every turn")
    parser.add_argument("--visual", action="store_true", help="reorder right-to-left text for terminals that do not")
    parser.add_argument("--log", metavar="FILE", default=None, help="append every turn to an audit log")
    listing = parser.add_mutually_exclusive_group()
    listing.add_argument("--list-identity-packs", action="store_true", help="list the identity packs and exit")
    listing.add_argument("--show-safety-pack", action="store_true", help="show the safety pack and exit")
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Run `core chat` and return its exit code: 1 where `--once` is refused or a turn could not be recorded."""
    if arguments.list_identity_packs:
        return _list_identity_packs(arguments)
    if arguments.show_safety_pack:
        return _show_safety_pack(arguments)
    if arguments.once is not None:
        return _once(arguments)
    if arguments.json:
        print("core chat: --json needs --once or a listing", file=sys.stderr)
        return 2
    from engine.cli.repl import Session

    return Session.start(arguments).loop()


def _list_identity_packs(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from engine.cli.pack_views import identity_list, list_text

    own = Path(arguments.packs_path, "identity") if arguments.packs_path else None
    documents = identity_list([str(own)] if own is not None and own.is_dir() else None)
    print(json.dumps(documents, ensure_ascii=False, indent=2) if arguments.json else list_text(documents))
    return int(any("error" in document for document in documents))


def _show_safety_pack(arguments: argparse.Namespace) -> int:
    from engine.cli.pack_views import safety_document, safety_text
    from packs.safety.loader import load_safety_pack

    pack = load_safety_pack()
    print(json.dumps(safety_document(pack), ensure_ascii=False, indent=2) if arguments.json else safety_text(pack))
    return 0


def _once(arguments: argparse.Namespace) -> int:
    from engine.cli.turn import record_turn, render_turn

    chat = load_chat(arguments.identity, arguments.language, arguments.packs_path)
    response = chat.chat(arguments.once)
    if arguments.json:
        print(json.dumps(response.as_dict(), ensure_ascii=False, indent=2))
    else:
        print(render_turn(response, arguments, direction=chat.runtime.composition.language.manifest.direction))
    if response.refusal is not None:
        print(f"core chat: refused: {one_line(response.refusal.reason)}", file=sys.stderr)
    recorded = record_turn(arguments.log, arguments.once, response)
    return int(response.refusal is not None or not recorded)


def load_chat(identity: str | None, language: str, packs_path: str | None) -> Any:
    """Switch to 64-bit types and return a `ChatRuntime`; this is the command's entry point to the engine."""
    from engine.base.precision import enable_x64

    enable_x64()
    from engine.runtime.chat import ChatRuntime

    return ChatRuntime.load(identity, language, packs_path=packs_path)
