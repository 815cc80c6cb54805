"""Small programs for the hot-path proof: honest ones, and one for each way of hiding a repair.

The product is a stand-in with the shape of the real one: a bilinear map given by a constant table. The proof on the
engine's own programs is in test_hotpath_engine.py.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

TABLE = np.random.default_rng(7).standard_normal((4, 4, 4))
SIGNS = np.array([1.0, 1.0, -1.0, -1.0])
TOLERANCE = 1e-6


def product(a, b):
    return jnp.einsum("i,j,ijk->k", a, b, TABLE)


def sandwich(v, f):
    return product(product(v, f), v * SIGNS)


def residual(f):
    f = lax.stop_gradient(f)
    return jnp.sqrt(jnp.sum((product(f, f * SIGNS) - jnp.array([1.0, 0.0, 0.0, 0.0])) ** 2))


def looped(repair: Callable) -> Callable:
    """A propagation with `repair(versor, state)` applied in the scan body."""

    def program(state, versors):
        def body(carry, versor):
            return repair(versor, sandwich(versor, carry)), residual(carry)

        return lax.scan(body, state, versors)

    return program


@jax.jit
def hidden(state):
    """A repair in a called function."""
    return state * lax.rsqrt(jnp.sum(state * state))


@jax.custom_jvp
def disguised(state):
    return state / jnp.sum(state * state)


disguised.defjvp(lambda primals, tangents: (disguised(*primals), tangents[0]))


@jax.custom_vjp
def disguised_backwards(state):
    return state / jnp.sum(state * state)


disguised_backwards.defvjp(lambda state: (disguised_backwards(state), None), lambda _, cotangent: (cotangent,))

CORRECTIONS = np.linspace(0.9, 1.1, 5)


def corrected_by_constants(versor, state):
    index = jnp.argmin(jnp.abs(jnp.asarray(CORRECTIONS) - residual(state)))
    return state * jnp.asarray(CORRECTIONS)[index]


def called_back(versor, state):
    return jax.pure_callback(lambda x: np.asarray(x), jax.ShapeDtypeStruct((4,), np.float64), state)


def repaired_until_good(versor, state):
    return lax.while_loop(lambda f: residual(f) > TOLERANCE, lambda f: 0.5 * f, state)


def repaired_a_counted_number_of_times(versor, state):
    def body(carry):
        return carry[0] + 1, carry[1] - 0.5 * carry[1] * (jnp.sum(carry[1] * carry[1]) - 1.0)

    return lax.while_loop(lambda carry: carry[0] < 3, body, (0, state))[1]


def sorted_entries(versor, state):
    return lax.sort(state)


REPAIRS: dict[str, tuple[Callable, str]] = {
    "division": (lambda v, f: f / residual(f), "div"),
    "division by a constant": (lambda v, f: f / 2.0, "div"),
    "square root": (lambda v, f: f * jnp.sqrt(f[0]), "sqrt"),
    "reciprocal square root": (lambda v, f: f * lax.rsqrt(f[0]), "rsqrt"),
    "norm": (lambda v, f: f / jnp.linalg.norm(f), "sqrt"),
    "power": (lambda v, f: f * jnp.sum(f * f) ** -1, "integer_pow"),
    "square": (lambda v, f: f * lax.square(f[0]), "square"),
    "clamp": (lambda v, f: jnp.clip(f, -1.0, 1.0), "max"),
    "lax clamp": (lambda v, f: lax.clamp(-1.0, f, 1.0), "clamp"),
    "maximum": (lambda v, f: jnp.maximum(f, 0.0), "max"),
    "rounding": (lambda v, f: jnp.round(f, 12), "round"),
    "reduced precision": (lambda v, f: lax.reduce_precision(f, 8, 23), "reduce_precision"),
    "cast": (lambda v, f: f.astype(jnp.float32).astype(jnp.float64), "convert_element_type"),
    "bit cast": (
        lambda v, f: lax.bitcast_convert_type(lax.bitcast_convert_type(f, jnp.int64), jnp.float64),
        "bitcast_convert_type",
    ),
    "select": (lambda v, f: jnp.where(residual(f) < TOLERANCE, f, 0.5 * f), "select_n"),
    "select of the factor": (lambda v, f: f * jnp.where(residual(f) < TOLERANCE, 1.0, 0.5), "select_n"),
    "select the identity operator by value": (
        lambda v, f: sandwich(jnp.where(residual(f) < TOLERANCE, v, jnp.array([1.0, 0, 0, 0])), f),
        "select_n",
    ),
    "Newton-Schulz": (lambda v, f: 0.5 * (3.0 * f - product(product(f, f * SIGNS), f)), "sub"),
    "Newton-Schulz without a sum": (lambda v, f: product(product(f, f * SIGNS), f), "scan"),
    "Newton-Schulz on the operator": (lambda v, f: f * jnp.sum(3.0 - v * v), "sub"),
    "operator cubed": (lambda v, f: f * jnp.sum(v * v), "output"),
    "adding a constant": (lambda v, f: f + 1e-9, "add"),
    "adding the operator": (lambda v, f: f + v, "add"),
    "writing a constant": (lambda v, f: f.at[0].set(1.0), "scatter"),
    "overwriting": (lambda v, f: jnp.concatenate([jnp.ones(1), f[1:]]), "concatenate"),
    "table of corrections": (corrected_by_constants, "dynamic_slice"),
    "state read by its own index": (lambda v, f: 0.5 * f + 0.5 * f[jnp.argmax(f)], "dynamic_slice"),
    "written where the state says": (lambda v, f: f.at[jnp.argmax(f)].add(f[0]), "scatter-add"),
    "sort": (sorted_entries, "sort"),
    "called function": (lambda v, f: hidden(f), "rsqrt"),
    "rematerialised function": (jax.checkpoint(lambda v, f: f / f[0]), "div"),
    "custom_jvp": (lambda v, f: disguised(f), "div"),
    "custom_vjp": (lambda v, f: disguised_backwards(f), "div"),
    "callback": (called_back, "pure_callback"),
    "while until good": (repaired_until_good, "while"),
    "while a counted number of times": (repaired_a_counted_number_of_times, "sub"),
    "branch on the state": (
        lambda v, f: lax.cond(residual(f) < TOLERANCE, lambda g: g, lambda g: 0.5 * g, f),
        "cond",
    ),
    "repair in a branch": (
        lambda v, f: lax.cond(jnp.sum(jnp.ones(3)) > 2, lambda g: g, lambda g: g / g[0], f),
        "div",
    ),
    "vmapped repair": (lambda v, f: jax.vmap(lambda x: x / (1.0 + x * x))(f), "div"),
    "product over entries": (lambda v, f: f * jnp.prod(f), "reduce_prod"),
    "fill outside": (lambda v, f: f.at[jnp.arange(4) + 1].get(mode="fill", fill_value=1.0), "gather"),
}
"""What each plants in a scan body, and the primitive that a finding must name."""
