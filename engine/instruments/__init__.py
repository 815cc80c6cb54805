"""Read-only measurements for a human: records, the shadow and amend arms, distances and their anchors.

Importing this package imports neither JAX nor the field. The two arms load when they are first asked for, each without
the other: the amend arm works where the shadow arm cannot even be imported.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.instruments.amend import amend_constitution as amend_constitution
    from engine.instruments.shadow import synthesize_shadow_constitution as synthesize_shadow_constitution

_HOMES = {
    "amend_constitution": "engine.instruments.amend",
    "synthesize_shadow_constitution": "engine.instruments.shadow",
}

__all__ = ["amend_constitution", "synthesize_shadow_constitution"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
