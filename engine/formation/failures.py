"""The failures that boundaries guard against, made for real: each has to make the engine's own check fire."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from engine.algebra import identity_motor, rotor, sandwich
from engine.field import FieldState, propagate
from engine.formation.bench import Bench
from engine.safety.account import Account
from engine.safety.check import ClosureEvidence, Evidence
from engine.safety.citations import CitedClaim
from engine.safety.hotpath import prove_no_repair

_PLANE_COEFFICIENTS = ((0, 0, 1), (1, 0, 2), (4, 1, 2))
"""Where e12, e13 and e23 stand among the ten bivector coefficients, and the two directions each of them spans."""


def broken_closure(bench: Bench) -> Evidence:
    """Propagate a field by an operator that is no versor and hand over what the traced check measured."""
    _, closure = propagate(FieldState(identity_motor((1,))), 1.01 * identity_motor((2, 1)))
    return Evidence(
        closure=ClosureEvidence(float(closure.max_residual[0]), int(closure.first_violation[0]), bool(closure.ok[0]))
    )


def fabricated_source(bench: Bench) -> Evidence:
    """Claim a real relation of the language pack with a citation that holds one letter of its sentence."""
    relation = bench.candidate.language.relations[0]
    citation = replace(relation.citation, start=relation.citation.start + 1, end=relation.citation.start + 2)
    return Evidence(claims=[CitedClaim("a claim", bench.candidate.language.pack_id, relation, citation)])


def overridden_identity(bench: Bench) -> Evidence:
    """Swap two operators of the running engine and take its digests again."""
    changed = replace(bench.runtime, operators=bench.runtime.operators.at[0].set(bench.runtime.operators[1]))
    return Evidence(digests_before=bench.runtime.digests, digests_after=changed.current_digests())


def silent_correction(bench: Bench) -> Evidence:
    """Enter a fallback into the account that no result shows."""
    account = Account()
    account.fallback("formation", "a default was used in place of what was asked for", shown_in="")
    return Evidence(incidents=account.incidents, expected=1, returned=1)


def hot_path_repair(bench: Bench) -> Evidence:
    """Trace a propagation that normalises its state after every step, and analyse it."""

    def repaired(state: Float[Array, "16"], operators: Float[Array, "steps 16"]) -> Float[Array, "16"]:
        def step(carry: Array, operator: Array) -> tuple[Array, None]:
            moved = sandwich(operator, carry)
            return moved / jnp.sqrt(jnp.sum(moved * moved)), None

        return jax.lax.scan(step, state, operators)[0]

    traced = jax.make_jaxpr(repaired)(identity_motor(), identity_motor((3,)))
    report = prove_no_repair(traced, state_inputs=[0], operator_inputs=[1], state_outputs=[0])
    return Evidence(proofs={"propagate": report, "vault_store": report, "walk": report})


FAILURES: Mapping[str, Callable[[Bench], Evidence]] = {
    "no_fabricated_source": fabricated_source,
    "no_hot_path_repair": hot_path_repair,
    "no_identity_override": overridden_identity,
    "no_silent_correction": silent_correction,
    "preserve_versor_closure": broken_closure,
}


def half_turn(direction: tuple[float, float, float]) -> Float[Array, "16"]:
    """Return the rotor by pi that turns `direction` into its opposite."""
    axis = np.asarray(direction) / math.hypot(*direction)
    other = np.eye(3)[int(np.argmin(np.abs(axis)))]
    other -= axis * (axis @ other)
    other /= np.linalg.norm(other)
    plane = np.zeros(10)
    for slot, i, j in _PLANE_COEFFICIENTS:
        plane[slot] = axis[i] * other[j] - axis[j] * other[i]
    return rotor(jnp.asarray(plane), jnp.asarray(math.pi))
