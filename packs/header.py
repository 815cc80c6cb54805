"""The fields that every kind of pack begins with, checked in one place."""

from collections.abc import Mapping
from typing import Any

from packs.errors import PackFormatError
from packs.ids import parse_version, require_id, require_sha256, shown
from packs.seal import SCHEMA_VERSION, SEAL_FIELD, require_fields
from packs.text import require_ids, require_text

HEADER_FIELDS = frozenset(
    {"pack_id", "version", "description", "schema_version", "mastery_report_sha256", "boundary_ids"}
)


def require_header(value: Mapping[str, Any], fields: frozenset[str], *, stem: str, sealed: bool) -> tuple[str, ...]:
    """Check the names of all fields and the content of the common ones, and return the boundary ids in their order.

    Args:
      value: the parsed JSON object.
      fields: the names that must be there, and no others.
      stem: the file's name without `.json`; the pack's id must equal it.
      sealed: whether the seal field must hold a digest (a draft's may be empty).

    Raises:
      PackFormatError: one line that says what is wrong.
    """
    require_fields(value, fields, name=stem)
    pack_id = require_id(value["pack_id"], what=f"{stem}: pack_id")
    if pack_id != stem:
        raise PackFormatError(f"{stem}: the pack in this file is {pack_id}; the two names must be equal")
    if value["schema_version"] != SCHEMA_VERSION:
        raise PackFormatError(f"{stem}: schema_version {shown(value['schema_version'])} is not {SCHEMA_VERSION}")
    parse_version(value["version"], what=f"{stem}: version")
    require_text(value["description"], what=f"{stem}: description")
    if sealed or value[SEAL_FIELD] != "":
        require_sha256(value[SEAL_FIELD], what=f"{stem}: {SEAL_FIELD}")
    return require_ids(value["boundary_ids"], what=f"{stem}: boundary_ids")
