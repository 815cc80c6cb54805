"""Compose packs into what a runtime stands on: identity, then safety, then the union of their boundaries (DESIGN §6).

The safety pack has no parameter anywhere: it is loaded by code. Axes, threshold and preferences are the identity
pack's, unchanged; boundaries can only be added.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.base.errors import ConfigError
from engine.identity import IdentityManifold, manifold_from_pack
from packs.errors import IdentityPackError, LanguagePackError, PackFormatError, SafetyPackError
from packs.identity.loader import DEFAULT_PACK, IdentityPack, load_identity_manifold
from packs.identity.lookalike import refuse_lookalikes
from packs.language.loader import load_language_pack
from packs.language.model import LanguagePack
from packs.safety.loader import REQUIRED_BOUNDARIES, SafetyPack, load_safety_pack

_ABSENT = (None, "", "null", "none", "None")


@dataclass(frozen=True)
class Composition:
    """The three packs of a runtime and the manifold that identity and safety compose to.

    `reload` reads the safety pack again when a run starts and ends. It is the installation's loader; only formation,
    which runs a candidate that is not installed yet, composes with another.
    """

    identity: IdentityPack
    safety: SafetyPack
    language: LanguagePack
    manifold: IdentityManifold
    reload: Callable[[], SafetyPack] = load_safety_pack

    @property
    def ratified(self) -> bool:
        """True unless a pack was loaded with its seal unchecked."""
        return self.identity.ratified and self.safety.ratified and self.language.ratified


def compose(
    identity: str | None, language: str | None, *, packs_path: str | os.PathLike[str] | None = None
) -> Composition:
    """Load and compose packs by id. An absent identity means the default pack; a language is always needed.

    `packs_path` is a user's folder with `identity/` and language folders in it; there is no such door for safety.
    Raises `IdentityPackError`, `SafetyPackError`, `LanguagePackError`, and `ConfigError` for a `packs_path` that is no
    folder.
    """
    identity_paths, language_paths = _search_paths(packs_path)
    chosen = DEFAULT_PACK if identity in _ABSENT else str(identity)
    identity_pack = load_identity_manifold(chosen, search_paths=identity_paths)
    safety_pack = load_safety_pack()
    manifold = compose_manifold(identity_pack, safety_pack)
    if language in _ABSENT:
        raise LanguagePackError("no language pack: an identity needs at least one (en, he, grc or your own)")
    language_pack = load_language_pack(language, search_paths=language_paths)
    return Composition(identity_pack, safety_pack, language_pack, manifold)


def compose_manifold(identity: IdentityPack, safety: SafetyPack) -> IdentityManifold:
    """Return the identity's manifold with the union of both packs' boundaries; nothing else of it changes.

    Raises `IdentityPackError` for a boundary that imitates one of the safety pack's, which may be stricter than the
    floor that the identity's loader knows.
    """
    try:
        refuse_lookalikes(identity.boundary_ids, safety.boundary_ids, pack_id=identity.pack_id)
    except PackFormatError as error:
        raise IdentityPackError(f"identity pack: {error}") from None
    manifold = manifold_from_pack(identity, added_boundaries=safety.boundary_ids)
    missing = sorted(REQUIRED_BOUNDARIES - manifold.boundary_ids)
    if missing:
        raise SafetyPackError(f"composed without the boundary {', '.join(missing)}, which nothing may drop")
    return manifold


def recheck_safety(composition: Composition) -> None:
    """Load the safety pack again and raise `SafetyPackError` if it is not the one in force."""
    expected, found = composition.safety, composition.reload()
    if (found.sha256, found.boundary_ids) != (expected.sha256, expected.boundary_ids):
        raise SafetyPackError(
            f"the safety pack changed while the engine ran: {expected.sha256[:12]} was loaded, "
            f"{found.sha256[:12]} is installed now"
        )


def _search_paths(packs_path: str | os.PathLike[str] | None) -> tuple[list[Path] | None, list[Path] | None]:
    if packs_path is None:
        return None, None
    root = Path(packs_path)
    if not root.is_dir():
        raise ConfigError(f"packs_path {root} is no folder")
    identities = root / "identity"
    return ([identities] if identities.is_dir() else None), [root]
