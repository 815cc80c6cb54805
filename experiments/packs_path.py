"""Which packs a sweep can name: the shipped ones and, with `packs_path=DIR`, a user's own. Standard library only."""

import os
from pathlib import Path

from engine.base.errors import ConfigError
from experiments.values import PACK_ID
from packs.identity.loader import load_identity_manifold
from packs.language.loader import load_language_pack

GROUPS = ("identity", "language")
_SHIPPED = Path(__file__).resolve().parent.parent / "packs"
MANIFEST = "manifest.json"


def search_paths(group: str, packs_path: str | None) -> tuple[str, ...] | None:
    """Return the folders that a user's packs of `group` are looked for in, or None where there is none."""
    if packs_path is None:
        return None
    folder = os.path.join(packs_path, "identity") if group == "identity" else packs_path
    return (folder,) if os.path.isdir(folder) else None


def pack_sha256(group: str, name: str, packs_path: str | None) -> str:
    """Load a pack and return its digest. Raises `IdentityPackError` or `LanguagePackError`."""
    paths = search_paths(group, packs_path)
    if group == "identity":
        return load_identity_manifold(name, search_paths=paths).sha256
    return load_language_pack(name, search_paths=paths).sha256


def user_ids(group: str, packs_path: str | None) -> tuple[str, ...]:
    """Return the ids in a user's folder; whether they are sound packs is for the loaders to say.

    Raises `ConfigError` where `packs_path` is no folder.
    """
    if packs_path is None:
        return ()
    root = Path(packs_path)
    if not root.is_dir():
        raise ConfigError(f"packs_path={packs_path} is no folder")
    return _ids_in(root, group)


def installed_ids(group: str, packs_path: str | None) -> tuple[str, ...]:
    """Return every id that a glob in `group` can find, sorted."""
    return tuple(sorted({*_ids_in(_SHIPPED, group), *user_ids(group, packs_path)}))


def new_ids(group: str, packs_path: str | None) -> tuple[str, ...]:
    """Return the user's ids that are not shipped. Raises `ConfigError` where one of them bears a shipped name."""
    shipped = set(_ids_in(_SHIPPED, group))
    mine = user_ids(group, packs_path)
    taken = sorted(shipped & set(mine))
    if taken:
        raise ConfigError(f"packs_path holds {group} {', '.join(taken)}, the name of a shipped pack: rename it")
    return mine


def _ids_in(root: Path, group: str) -> tuple[str, ...]:
    try:
        if group == "identity":
            folder = root / "identity"
            files = folder.glob("*.json") if folder.is_dir() else ()
            names = [path.stem for path in files if not path.name.endswith(".mastery_report.json")]
        else:
            names = [path.parent.name for path in root.glob(f"*/{MANIFEST}")]
    except OSError as error:
        raise ConfigError(f"{root} cannot be listed: {error.strerror}") from error
    return tuple(sorted(name for name in names if PACK_ID.fullmatch(name)))
