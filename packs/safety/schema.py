"""The schema of a safety pack: boundaries with descriptions, and nothing that could be weighed against them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from packs.errors import PackFormatError
from packs.ids import parse_version, require_id, require_sha256, shown
from packs.seal import SCHEMA_VERSION, SEAL_FIELD, require_fields
from packs.text import require_ids, require_text

FIELDS = frozenset(
    {
        "pack_id",
        "version",
        "description",
        "schema_version",
        "mastery_report_sha256",
        "boundary_ids",
        "boundary_descriptions",
    }
)


@dataclass(frozen=True)
class SafetyBody:
    """The checked content of a safety pack, before seal, pin and floor."""

    pack_id: str
    version: str
    description: str
    boundary_ids: frozenset[str]
    boundary_descriptions: Mapping[str, str]


def parse_body(value: Mapping[str, Any], *, stem: str, sealed: bool = True) -> SafetyBody:
    """Return the checked content of the parsed pack file whose name without ending is `stem`.

    Args:
      value: the parsed JSON object.
      stem: the file's name without `.json`; the pack's id must equal it.
      sealed: whether the seal field must hold a digest (a draft's may be empty).

    Raises:
      PackFormatError: one line that says what is wrong.
    """
    require_fields(value, FIELDS, name=stem)
    pack_id = require_id(value["pack_id"], what=f"{stem}: pack_id")
    if pack_id != stem:
        raise PackFormatError(f"{stem}: the pack in this file is {pack_id}; the two names must be equal")
    if value["schema_version"] != SCHEMA_VERSION:
        raise PackFormatError(f"{stem}: schema_version {shown(value['schema_version'])} is not {SCHEMA_VERSION}")
    parse_version(value["version"], what=f"{stem}: version")
    require_text(value["description"], what=f"{stem}: description")
    if sealed or value[SEAL_FIELD] != "":
        require_sha256(value[SEAL_FIELD], what=f"{stem}: {SEAL_FIELD}")
    boundary_ids = require_ids(value["boundary_ids"], what=f"{stem}: boundary_ids")
    descriptions = _parse_descriptions(value["boundary_descriptions"], boundary_ids, stem)
    return SafetyBody(
        pack_id=pack_id,
        version=value["version"],
        description=value["description"],
        boundary_ids=frozenset(boundary_ids),
        boundary_descriptions=descriptions,
    )


def _parse_descriptions(value: object, boundary_ids: tuple[str, ...], stem: str) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise PackFormatError(f"{stem}: boundary_descriptions is not an object")
    require_fields(value, frozenset(boundary_ids), name=f"{stem}: boundary_descriptions")
    for name, text in value.items():
        require_text(text, what=f"{stem}: description of {name}")
    return MappingProxyType({name: value[name] for name in sorted(value)})
