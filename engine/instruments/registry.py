"""Names to factories: how an embedder or generator named on the command line becomes an object."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from engine.base.errors import UsageError


def load_registered(registry: Mapping[str, str], spec: str, kind: str) -> Any:
    """Return what the factory registered under the name in `spec` (`name` or `name:argument`) makes of the argument.

    Raises `UsageError` for an unknown name; modules are imported only when their name is asked for.
    """
    name, _, argument = spec.partition(":")
    if name not in registry:
        raise UsageError(f"unknown {kind} {name!r}: choose one of {', '.join(sorted(registry))}")
    module, _, attribute = registry[name].partition(":")
    factory: Callable[[str | None], Any] = getattr(importlib.import_module(module), attribute)
    return factory(argument or None)
