"""Find, check and load identity packs: shipped ones by id, users' own through one sanctioned door (`search_paths`).

Every failure is an `IdentityPackError`. An identity pack can add boundaries; it cannot drop one, since composition is a
union with the safety pack.
"""

import difflib
import functools
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packs import strict_json
from packs.errors import IdentityPackError as IdentityPackError
from packs.errors import PackFormatError
from packs.files import list_folder, open_folder, read_once
from packs.identity.schema import AxisHedge as AxisHedge
from packs.identity.schema import IdentityBody, parse_body
from packs.identity.schema import SurfacePreferences as SurfacePreferences
from packs.identity.schema import ValueAxis as ValueAxis
from packs.ids import is_id, shown
from packs.seal import MAX_REPORT_BYTES, REPORT_ENDING, sha256_hex, verify_seal

DEFAULT_PACK = "default_general_v1"
MAX_PACK_BYTES = 256 * 1024
UNRATIFIED_VARIABLE = "CORE_ALLOW_UNRATIFIED_IDENTITY"
INSTALLED_FOLDER = Path(os.path.abspath(__file__)).parent


@dataclass(frozen=True)
class IdentityPack:
    """A checked identity pack; `sha256` is the digest of its file's raw bytes.

    `ratified` is False only under `CORE_ALLOW_UNRATIFIED_IDENTITY=1`.
    """

    pack_id: str
    version: str
    description: str
    alignment_threshold: float
    boundary_ids: tuple[str, ...]
    value_axes: tuple[ValueAxis, ...]
    surface_preferences: SurfacePreferences | None
    sha256: str
    ratified: bool


def load_identity_manifold(
    pack_id: str, *, search_paths: Sequence[str | os.PathLike[str]] | None = None
) -> IdentityPack:
    """Return the identity pack `pack_id`.

    Args:
      pack_id: an id, never a path.
      search_paths: folders with users' own packs, `<id>.json` beside its report. They add ids; an id that is also a
        shipped one is refused, so that no folder can stand in for a shipped pack.

    Raises:
      IdentityPackError: unknown (with the nearest names), malformed, out of bounds, unsealed or altered.
    """
    try:
        folders = _folders(search_paths)
        if not is_id(pack_id):
            raise PackFormatError(f"{shown(pack_id)} is not a pack id; ids are not paths")
        folder = _find(pack_id, folders)
        return load_file(folder / f"{pack_id}.json", unratified=os.environ.get(UNRATIFIED_VARIABLE) == "1")
    except (PackFormatError, OSError, RecursionError) as error:
        raise IdentityPackError(f"identity pack: {error}") from None


def available_packs(*, search_paths: Sequence[str | os.PathLike[str]] | None = None) -> tuple[str, ...]:
    """Return the sorted ids of the identity packs that can be asked for; their content is not read.

    Raises `IdentityPackError` if a folder cannot be listed.
    """
    try:
        return tuple(sorted({name for folder in _folders(search_paths) for name in _ids_in(folder)}))
    except PackFormatError as error:
        raise IdentityPackError(f"identity packs: {error}") from None


def load_file(path: Path, *, unratified: bool = False) -> IdentityPack:
    """Return the identity pack in the file `path`, checked against the report beside it.

    Raises `PackFormatError`. With `unratified` the seal is not checked, and the result says so.
    """
    stem = path.name[: -len(".json")]
    with open_folder(path.parent, follow=True) as descriptor:
        pack_bytes = read_once(path.name, MAX_PACK_BYTES, folder=descriptor)
        value = strict_json.loads(pack_bytes, source=path.name)
        body = parse_body(value, stem=stem, sealed=not unratified)
        if not unratified:
            verify_seal(value, pack_bytes, read_once(f"{stem}{REPORT_ENDING}", MAX_REPORT_BYTES, folder=descriptor))
    if unratified:
        _warn(f"{UNRATIFIED_VARIABLE}=1: the seal of identity pack {stem} is NOT checked")
    return _operative(body, pack_bytes, ratified=not unratified)


def candidate(stem: str, data: bytes) -> IdentityPack:
    """Return the bytes of a pack under ratification, with schema and bounds checked and `ratified` False.

    For formation only: nothing that serves a user may start from what this returns. Raises `PackFormatError`.
    """
    return _operative(
        parse_body(strict_json.loads(data, source=f"{stem}.json"), stem=stem, sealed=False), data, ratified=False
    )


def _folders(search_paths: Sequence[str | os.PathLike[str]] | None) -> tuple[Path, ...]:
    if isinstance(search_paths, str | os.PathLike):
        raise PackFormatError("search_paths is a list of folders, not one path")
    # A user's packs_path may hold languages only; whatever is there but is no folder is refused on opening.
    return (INSTALLED_FOLDER, *(Path(path) for path in search_paths or () if os.path.lexists(path)))


def _ids_in(folder: Path) -> tuple[str, ...]:
    with open_folder(folder, follow=True) as descriptor:
        names = [
            name for name in list_folder(descriptor) if name.endswith(".json") and not name.endswith(REPORT_ENDING)
        ]
    return tuple(name[: -len(".json")] for name in names if is_id(name[: -len(".json")]))


def _find(pack_id: str, folders: tuple[Path, ...]) -> Path:
    listed = {folder: _ids_in(folder) for folder in folders}
    holders = [folder for folder, names in listed.items() if pack_id in names]
    if len(holders) > 1:
        raise PackFormatError(f"{pack_id} is in more than one folder; give your own pack an id of its own")
    if holders:
        return holders[0]
    known = sorted({name for names in listed.values() for name in names})
    nearest = difflib.get_close_matches(pack_id, known, n=3, cutoff=0.3) or known
    raise PackFormatError(f"there is no {pack_id}; nearest: {', '.join(nearest) or 'none'}")


def _operative(body: IdentityBody, pack_bytes: bytes, *, ratified: bool) -> IdentityPack:
    return IdentityPack(
        pack_id=body.pack_id,
        version=body.version,
        description=body.description,
        alignment_threshold=body.alignment_threshold,
        boundary_ids=body.boundary_ids,
        value_axes=body.value_axes,
        surface_preferences=body.surface_preferences,
        sha256=sha256_hex(pack_bytes),
        ratified=ratified,
    )


@functools.cache
def _warn(text: str) -> None:
    """Say it once a process: a sweep loads its packs many times."""
    sys.stderr.write(f"WARNING: {text}\n")
