"""`core packs`: list, show, verify and ratify packs. Verification is a diagnosis and needs no operative safety pack."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `core packs` to the command line."""
    parser = subparsers.add_parser("packs", help="list, show, verify or ratify packs", allow_abbrev=False)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="every pack that can be asked for", allow_abbrev=False)
    showing = actions.add_parser("show", help="one pack in full", allow_abbrev=False)
    showing.add_argument("pack_id", metavar="ID", help="a pack id, such as precision_first_v1 or en")
    for action in (listing, showing):
        action.add_argument("--json", action="store_true", help="print one JSON document")
        action.add_argument("--packs-path", metavar="DIR", help="folder of your own packs (identity/ and languages)")
    listing.set_defaults(handler=_list)
    showing.set_defaults(handler=_show)
    verifying = actions.add_parser("verify", help="check a pack file or folder: parse, seal, floor", allow_abbrev=False)
    verifying.add_argument("path", metavar="PATH", type=Path)
    verifying.set_defaults(handler=_verify, diagnoses=True)
    ratifying = actions.add_parser("ratify", help="ratify your own identity or language pack", allow_abbrev=False)
    ratifying.add_argument("path", metavar="PATH", type=Path)
    ratifying.set_defaults(handler=_ratify)


def _list(arguments: argparse.Namespace) -> int:
    from engine.cli import pack_views
    from packs.safety.loader import load_safety_pack

    documents = [pack_views.safety_document(load_safety_pack())]
    documents += pack_views.identity_list(_identity_paths(arguments.packs_path))
    documents += _language_list(arguments.packs_path)
    _print(documents if arguments.json else pack_views.list_text(documents))
    return 1 if any("error" in document for document in documents) else 0


def _show(arguments: argparse.Namespace) -> int:
    from engine.cli import pack_views
    from packs.identity.loader import load_identity_manifold
    from packs.safety.loader import load_safety_pack

    safety = load_safety_pack()
    if arguments.pack_id == safety.pack_id:
        _print(pack_views.safety_document(safety) if arguments.json else pack_views.safety_text(safety))
    elif arguments.pack_id in _language_ids(arguments.packs_path):
        document = _language_document(arguments.pack_id, arguments.packs_path)
        _print(document if arguments.json else pack_views.list_text([document]))
    else:
        pack = load_identity_manifold(arguments.pack_id, search_paths=_identity_paths(arguments.packs_path))
        _print(pack_views.identity_document(pack) if arguments.json else pack_views.identity_text(pack))
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    from packs.verify import verify_path

    for verified in verify_path(arguments.path):
        _print(verified.line())
    return 0


def _ratify(arguments: argparse.Namespace) -> int:
    from engine.cli.ratify import ratify_path

    for line in ratify_path(arguments.path):
        _print(line)
    return 0


def _identity_paths(packs_path: str | None) -> tuple[str, ...] | None:
    return None if packs_path is None else (str(Path(packs_path) / "identity"),)


def _language_ids(packs_path: str | None) -> tuple[str, ...]:
    from packs.language.loader import available_language_packs

    return available_language_packs(None if packs_path is None else (packs_path,))


def _language_document(pack_id: str, packs_path: str | None) -> dict[str, Any]:
    from packs.language.loader import load_language_pack

    pack = load_language_pack(pack_id, search_paths=None if packs_path is None else (packs_path,))
    return {
        "kind": "language",
        "pack_id": pack.pack_id,
        "version": pack.manifest.version,
        "sha256": pack.sha256,
        "ratified": pack.ratified,
        "lemmas": len(pack.lexicon),
        "relations": len(pack.relations),
    }


def _language_list(packs_path: str | None) -> list[dict[str, Any]]:
    from packs.errors import LanguagePackError

    documents: list[dict[str, Any]] = []
    for pack_id in _language_ids(packs_path):
        try:
            documents.append(_language_document(pack_id, packs_path))
        except LanguagePackError as error:
            documents.append({"kind": "language", "pack_id": pack_id, "error": str(error)})
    return documents


def _print(content: object) -> None:
    text = content if isinstance(content, str) else json.dumps(content, indent=2, ensure_ascii=False)
    sys.stdout.write(text + "\n")
