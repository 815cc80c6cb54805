"""The schema of a safety pack: boundaries with descriptions, and nothing that could be weighed against them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from packs.errors import PackFormatError
from packs.header import HEADER_FIELDS, require_header
from packs.seal import require_fields
from packs.text import require_text

FIELDS = HEADER_FIELDS | {"boundary_descriptions"}


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
    boundary_ids = require_header(value, FIELDS, stem=stem, sealed=sealed)
    descriptions = _parse_descriptions(value["boundary_descriptions"], boundary_ids, stem)
    return SafetyBody(
        pack_id=stem,
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
