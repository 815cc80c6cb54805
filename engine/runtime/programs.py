"""The compiled programs of an evaluation, one per shape bucket, and the proof that comes with the walk.

The walk is traced once per bucket; that very trace is analysed (`no_hot_path_repair`) and compiled. Packs, prompts,
seeds and swept numbers are arrays, so that none of them traces anything again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from engine.algebra.product import even_product_kernel, sandwich_kernel
from engine.algebra.rigid import rigid_motor, rigid_power_kernel, rotor_about
from engine.field.holonomy import there_and_back
from engine.generate.walk import WalkResult, walk
from engine.identity import IdentityReading, ValueAxes, read_identity
from engine.safety.hotpath import HotPathReport, prove_traced


@jax.jit
def encode_prompts(words: Float[Array, "prompts length 16"], alpha: Float[Array, ""]) -> Float[Array, "prompts 16"]:
    """Return the holonomy motors of prompts given by their words' rigid motors, padded with the identity.

    `engine.field.holonomy` for rigid words: the same product, with the powers of the way back in closed form, which
    compiles in a fraction of the time that the general power takes.
    """
    return there_and_back(words, rigid_power_kernel(words, jnp.broadcast_to(1.0 - alpha, words.shape[:-1])))


@jax.jit
def start_motors(
    prompts: Float[Array, "prompts 16"],
    personas: Float[Array, "identities 16"],
    prompt: Int[Array, "rows"],
    identity: Int[Array, "rows"],
    keys: UInt32[Array, "rows 2"],
    perturb: Float[Array, ""],
) -> Float[Array, "rows 16"]:
    """Return each row's initial state: the prompt's motor, moved by a random motor, under the persona.

    `keys` are (seed, prompt) pairs, so that a row's perturbation does not depend on the batch it is in. The random
    motor turns and shifts along a random unit vector of six components: a turn of up to `perturb` radians and a shift
    of up to `perturb`. At `perturb` = 0 it is 1 exactly and the seed has no effect.
    """
    moved = even_product_kernel(random_motors(keys, perturb), prompts[prompt])
    return sandwich_kernel(personas[identity], moved)


def random_motors(keys: UInt32[Array, "rows 2"], size: Float[Array, ""]) -> Float[Array, "rows 16"]:
    """Return one random rigid motor `T R` of the given size per (seed, prompt) pair; 1 exactly at size 0."""

    def draw(pair: UInt32[Array, "2"]) -> Float[Array, "6"]:
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(0), pair[0]), pair[1])
        vector = jax.random.normal(key, (6,), jnp.float64)
        return vector / jnp.sqrt(jnp.sum(vector * vector))

    directions = jax.vmap(draw)(keys)
    turn = directions[:, :3]
    length = jnp.sqrt(jnp.sum(turn * turn, axis=-1))
    return rigid_motor(size * directions[:, 3:], rotor_about(turn / length[:, None], size * length))


@jax.jit
def read_motors(axes: ValueAxes, identity: Int[Array, "rows"], motors: Float[Array, "rows 16"]) -> IdentityReading:
    """Read each row's motor against its identity's axes."""
    return read_identity(jax.tree.map(lambda leaf: leaf[identity], axes), motors)


@dataclass(frozen=True)
class ProvenWalk:
    """A compiled walk of one shape bucket and the proof of the trace it was compiled from."""

    report: HotPathReport
    compiled: Callable[..., WalkResult]


@dataclass
class WalkPrograms:
    """Compiled walks by shape bucket. `traces` counts them: it grows by one per bucket and by nothing else."""

    _programs: dict[Any, ProvenWalk] = field(default_factory=dict)
    _jitted: Any = field(default_factory=lambda: jax.jit(walk))

    @property
    def traces(self) -> int:
        """Number of walks traced so far."""
        return len(self._programs)

    def get(self, *arguments: Any) -> ProvenWalk:
        """Return the walk for arguments of these shapes, dtypes and placements; trace, prove and compile it once."""
        leaves, structure = jax.tree.flatten(arguments)
        key = (structure, tuple((leaf.shape, leaf.dtype, leaf.sharding) for leaf in leaves))
        found = self._programs.get(key)
        if found is None:
            traced = self._jitted.trace(*arguments)
            report = prove_walk(traced)
            found = ProvenWalk(report, traced.lower().compile())
            self._programs[key] = found
        return found


def prove_walk(traced: Any) -> HotPathReport:
    """Prove that a traced walk never repairs its state (`engine.safety.hotpath`)."""
    return prove_traced(
        traced,
        state=lambda arguments: arguments[0].motor,
        operators=lambda arguments: arguments[1],
        outputs=lambda result: result.motor,
    )


WALKS = WalkPrograms()
"""The process's compiled walks; every runtime shares them."""
