"""The eight gates of a language pack's mastery report, each with its threshold. The engine measures them."""

from collections.abc import Mapping
from types import MappingProxyType

REQUIRED_LANGUAGE_GATES: Mapping[str, float] = MappingProxyType(
    {
        "schema": 1.0,
        "lexical": 1.0,
        "morphology": 1.0,
        "lift": 1.0,
        "readback": 1.0,
        "determinism": 1.0,
        "alignment": 0.9,
        "coverage": 1.0,
    }
)
"""Seven are shares of checks that hold; `alignment` is the AUC of aligned against unaligned pairs of words."""
