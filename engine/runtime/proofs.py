"""`no_hot_path_repair` at start-up: programs that move or keep field states, traced and analysed once a process."""

from collections.abc import Mapping
from functools import cache

import jax.numpy as jnp

from engine.algebra import identity_motor
from engine.field.blocks import BLOCK
from engine.field.propagate import COMPOSITIONS, blocks_program, parallel_program, propagate_program
from engine.field.state import FieldState
from engine.safety.hotpath import HotPathReport, prove_traced
from engine.vault.vault import Vault, store_program

_SAMPLES, _STEPS = 2, 3


@cache
def startup_proofs() -> Mapping[str, HotPathReport]:
    """Return the proofs of propagate in its three forms and of the vault's store. The walk's come with its programs."""
    state, versors = FieldState(identity_motor((_SAMPLES,))), identity_motor((_STEPS, _SAMPLES))
    motors = identity_motor((_SAMPLES,))
    codes = jnp.zeros(_SAMPLES, jnp.int64)
    stored = store_program.trace(Vault.empty(_SAMPLES), motors, jnp.zeros((_SAMPLES, 3)), codes, codes)
    return {
        "propagate": prove_traced(
            propagate_program.trace(state, versors),
            state=lambda arguments: arguments[0].motor,
            operators=lambda arguments: arguments[1],
            outputs=lambda result: result[0].motor,
        ),
        "propagate_blocks": prove_traced(
            blocks_program.trace(state, identity_motor((BLOCK + 9, 1))),
            state=lambda arguments: arguments[0].motor,
            operators=lambda arguments: arguments[1],
            outputs=lambda result: result[0].motor,
            steps=2,
            compositions=COMPOSITIONS,
        ),
        "propagate_parallel": prove_traced(
            parallel_program.trace(state, versors),
            state=lambda arguments: arguments[0].motor,
            operators=lambda arguments: arguments[1],
            outputs=lambda result: result[0].motor,
            compositions=COMPOSITIONS,
        ),
        "vault_store": prove_traced(
            stored,
            state=lambda arguments: (arguments[0].motors, arguments[1]),
            operators=lambda arguments: (),
            outputs=lambda result: result.motors,
            steps=0,
        ),
    }
