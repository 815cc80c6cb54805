"""A pack under ratification, composed from its bytes by a path that nothing but formation uses.

Neither seal, pin nor hatch plays a part here: what is ratified is exactly the bytes that were read, with schema, bounds
and floor checked as the loaders check them. Nothing composed here says that it is ratified.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.formation.course import Course, Kind, identity_course, safety_course
from engine.runtime import Composition, Runtime, runtime_from
from engine.runtime.compose import compose_manifold
from packs import strict_json
from packs.files import read_once
from packs.identity import loader as identity_loader
from packs.identity.loader import IdentityPack
from packs.language.model import LanguagePack
from packs.safety import loader as safety_loader
from packs.safety.loader import SafetyPack


@dataclass(frozen=True)
class Candidate:
    """A pack's file and bytes, and the other packs that it is run with."""

    kind: Kind
    path: Path
    data: bytes
    value: Mapping[str, Any]
    identity: IdentityPack
    safety: SafetyPack
    language: LanguagePack

    @property
    def pack_id(self) -> str:
        """Id of the pack under ratification."""
        return str(self.value["pack_id"])

    def course(self) -> Course:
        """Return the course that this pack is asked."""
        return safety_course(self.value) if self.kind == "safety" else identity_course(self.value)

    def compose(self) -> Runtime:
        """Return a new runtime of this candidate, the same engine that a user runs.

        Raises the typed errors of the loaders and of `engine.runtime.Runtime.load`.
        """
        manifold = compose_manifold(self.identity, self.safety)
        return runtime_from(Composition(self.identity, self.safety, self.language, manifold, lambda: self.safety))


def safety_candidate(path: Path, *, identity_path: Path, language: LanguagePack) -> Candidate:
    """Return the safety pack in the file `path` as a candidate, run with the identity pack in `identity_path`.

    Raises `PackFormatError` for bytes, schema, bounds or floor that do not hold.
    """
    data = read_once(path, safety_loader.MAX_PACK_BYTES)
    identity = identity_loader.candidate(identity_path.stem, _read_identity(identity_path))
    return Candidate(
        kind="safety",
        path=path,
        data=data,
        value=strict_json.loads(data, source=path.name),
        identity=identity,
        safety=safety_loader.candidate(path.stem, data),
        language=language,
    )


def identity_candidate(path: Path, *, safety_path: Path, language: LanguagePack) -> Candidate:
    """Return the identity pack in the file `path` as a candidate, run with the safety pack in `safety_path`.

    Raises `PackFormatError` for bytes, schema, bounds or floor that do not hold.
    """
    data = _read_identity(path)
    safety = safety_loader.candidate(safety_path.stem, read_once(safety_path, safety_loader.MAX_PACK_BYTES))
    return Candidate(
        kind="identity",
        path=path,
        data=data,
        value=strict_json.loads(data, source=path.name),
        identity=identity_loader.candidate(path.stem, data),
        safety=safety,
        language=language,
    )


def _read_identity(path: Path) -> bytes:
    return read_once(path, identity_loader.MAX_PACK_BYTES)
