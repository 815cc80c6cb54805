"""The grammar of every id of a pack, boundary or axis: plain ASCII, so that no two ids can look alike by font."""

import re

from packs.errors import PackFormatError

_ID = re.compile(r"[a-z][a-z0-9_]{0,63}")
_SEMVER = re.compile(r"(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def is_id(value: object) -> bool:
    """Return whether `value` is a string of the id grammar `[a-z][a-z0-9_]{0,63}`."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def require_id(value: object, *, what: str) -> str:
    """Return `value` if it is an id, else raise `PackFormatError` that names `what`."""
    if isinstance(value, str) and _ID.fullmatch(value) is not None:
        return value
    raise PackFormatError(f"{what}: {shown(value)} is not an id of the form [a-z][a-z0-9_]{{0,63}}")


def parse_version(value: object, *, what: str) -> tuple[int, int, int]:
    """Return the three numbers of a `major.minor.patch` version, else raise `PackFormatError` that names `what`."""
    match = _SEMVER.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise PackFormatError(f"{what}: {shown(value)} is not a version of the form major.minor.patch")
    major, minor, patch = (int(part) for part in match.groups())
    return (major, minor, patch)


def require_sha256(value: object, *, what: str) -> str:
    """Return `value` if it is a lower-case SHA-256 in hexadecimal, else raise `PackFormatError` that names `what`."""
    if isinstance(value, str) and _SHA256.fullmatch(value) is not None:
        return value
    raise PackFormatError(f"{what}: {shown(value)} is not a SHA-256 in lower-case hexadecimal")


def shown(value: object) -> str:
    """Return a short ASCII form of an untrusted value, fit for one line of an error message."""
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
