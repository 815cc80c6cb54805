"""The identity-stripped baseline: the same engine, language and boundaries with nobody speaking through it.

It is the causal control of identity comparisons: the persona motor is the identity motor, so that only the words move
the field, and there are no surface preferences, so that nothing is hedged. Boundaries and safety stay as they are.
"""

import dataclasses

from engine.algebra import identity_motor
from engine.generate.tables import step_operators
from engine.runtime.runtime import Runtime


def identity_stripped(runtime: Runtime) -> Runtime:
    """Return a copy of `runtime` without persona and preferences; its digests are those of the copy."""
    persona = identity_motor()
    manifold = dataclasses.replace(runtime.manifold, surface_preferences=None)
    operators = step_operators(runtime.lexis.motors, persona[None])
    stripped = dataclasses.replace(runtime, manifold=manifold, persona=persona, operators=operators)
    return dataclasses.replace(stripped, digests=stripped.current_digests())
