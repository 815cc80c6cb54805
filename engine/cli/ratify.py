"""`core packs ratify PATH`: ratify a user's identity or language packs, also from an installed wheel.

There is no such door for safety: a stricter pack is ratified into the installation by `scripts/ratify_safety_pack.py`.
"""

from collections.abc import Iterator
from pathlib import Path

from engine.base.errors import RatificationError
from packs import strict_json
from packs.errors import PackFormatError
from packs.files import read_once
from packs.identity.loader import MAX_PACK_BYTES
from packs.seal import REPORT_ENDING

_MANIFEST = "manifest.json"


def ratify_path(path: Path) -> Iterator[str]:
    """Ratify the pack file, pack folder or folder of packs at `path`; yield one line for each pack when it is done.

    Raises `RatificationError` for a pack that does not pass, `PackFormatError` for a path that holds no pack, and the
    typed errors of loading and composing.
    """
    from engine.base.precision import enable_x64

    enable_x64()
    if (path / _MANIFEST).is_file() or path.name == _MANIFEST:
        yield _ratify_language(path if path.is_dir() else path.parent)
        return
    if path.is_dir():
        yield from _ratify_folder(path)
        return
    yield _ratify_file(path)


def _ratify_folder(path: Path) -> Iterator[str]:
    children = sorted(path.iterdir())
    if (path / "identity").is_dir():
        children += sorted((path / "identity").iterdir())
    done = 0
    for child in children:
        if (child / _MANIFEST).is_file():
            yield _ratify_language(child)
        elif child.name.endswith(".json") and not child.name.endswith(REPORT_ENDING):
            yield _ratify_file(child)
        else:
            continue
        done += 1
    if not done:
        raise PackFormatError(f"{path.name!a}: no pack in this folder")


def _ratify_file(path: Path) -> str:
    from engine.formation.ratify import ratify_identity

    if not path.name.endswith(".json") or path.name.endswith(REPORT_ENDING):
        raise PackFormatError(f"{path.name!a}: a pack file ends in .json and is no report")
    value = strict_json.loads(read_once(path, MAX_PACK_BYTES), source=path.name)
    if "boundary_descriptions" in value:
        raise RatificationError(
            f"{path.name}: a safety pack is ratified into the installation, by scripts/ratify_safety_pack.py"
        )
    return ratify_identity(path).line()


def _ratify_language(path: Path) -> str:
    from engine.language.ratify import ratify_language_folder

    outcome = ratify_language_folder(path)
    if not outcome.ratified:
        reasons = outcome.failure_reasons or [gate.name for gate in outcome.gates if not gate.passed]
        raise RatificationError(f"{outcome.pack_id}: not ratified: {'; '.join(reasons)}")
    state = "written" if outcome.written else "unchanged"
    return f"ratified: {outcome.pack_id}, {len(outcome.gates)} gates passed ({state})"
