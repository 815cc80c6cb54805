"""What a walk reads: word points, adjacency in compressed rows, step rotors, and the operator table.

The operator of edge e (A -r-> B) for identity i is `W_B G_r reverse(W_A) M_i`. The table holds it for every edge and
identity plus one last row per identity, the identity motor, for stopped and padded rows. It is built outside the walk
and handed in as an argument, so that inside the loop every operator is one gathered row with no arithmetic of its own.
It takes 128 bytes an edge and identity: 50,000 words with 400,000 directed edges are 51 MB an identity. Gathering W_B,
G_r, W_A and M instead and multiplying at each step would save that memory at three more products a step; with many
identities on a large vocabulary, evaluate them in blocks.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from engine.algebra import even_reverse
from engine.algebra.product import even_product_kernel
from engine.base.errors import ShapeError
from engine.generate.admissibility import padded_size


class WalkTables(eqx.Module):
    """Adjacency of a vocabulary, independent of identity. Edges are sorted by (head, tail, relation).

    `width` (static) bounds the edges of one head; `edge_*` have one more row than there are edges, the row of staying.
    Words and edges are padded, so that packs of similar size share a compiled program.
    """

    points: Float[Array, "words 3"]
    starts: Int[Array, "words"]
    degrees: Int[Array, "words"]
    edge_heads: Int[Array, "edges"]
    edge_tails: Int[Array, "edges"]
    edge_relations: Int[Array, "edges"]
    edge_rotors: Float[Array, "edges 4"]
    width: int = eqx.field(static=True)

    @property
    def stay(self) -> int:
        """Index of the row that moves nothing."""
        return self.edge_tails.shape[0] - 1


class StepMotors(eqx.Module):
    """What the operator table is made from: motors of words and directed relations, and the edges between them."""

    words: Float[Array, "words 16"]
    relations: Float[Array, "relations 16"]
    heads: Int[Array, "edges"]
    tails: Int[Array, "edges"]
    kinds: Int[Array, "edges"]
    real: Bool[Array, "edges"]


def build_tables(
    word_motors: np.ndarray, word_points: np.ndarray, relation_motors: np.ndarray, edges: np.ndarray
) -> tuple[WalkTables, StepMotors, np.ndarray]:
    """Return the tables of a vocabulary, and which of `edges` each row of them is.

    Shapes: `word_motors` (words, 16), `word_points` (words, 3), `relation_motors` (directed relations, 16), `edges`
    (edges, 3) as (head, relation, tail), one row per direction that may be walked. Raises `ShapeError` where an edge
    names a word or relation that is not there.
    """
    edges = np.asarray(edges, np.int64).reshape(-1, 3)
    words, relations = word_motors.shape[0], relation_motors.shape[0]
    limits = np.array([words, relations, words])
    if edges.size and not np.all((edges >= 0) & (edges < limits)):
        raise ShapeError(f"an edge names a word or relation outside {words} words and {relations} relations")
    order = np.lexsort((edges[:, 1], edges[:, 2], edges[:, 0]))
    edges = edges[order]
    padded_words = padded_size(words, least=256)
    rows = padded_size(len(edges) + 1, least=1024)
    degrees = np.bincount(edges[:, 0], minlength=padded_words).astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(degrees)[:-1]]).astype(np.int32)
    heads, kinds, tails = (_pad(edges[:, column], rows) for column in range(3))
    real = np.arange(rows) < len(edges)
    identity = np.zeros(16)
    identity[0] = 1.0
    motors = StepMotors(
        jnp.asarray(_pad_rows(word_motors, padded_words, identity)),
        jnp.asarray(_pad_rows(relation_motors, padded_size(relations, least=32), identity)),
        jnp.asarray(heads),
        jnp.asarray(tails),
        jnp.asarray(kinds),
        jnp.asarray(real),
    )
    transitions = edge_transitions(motors)
    tables = WalkTables(
        points=jnp.asarray(_pad_rows(word_points, padded_words, np.zeros(3))),
        starts=jnp.asarray(starts),
        degrees=jnp.asarray(degrees),
        edge_heads=jnp.asarray(heads),
        edge_tails=jnp.asarray(tails),
        edge_relations=jnp.asarray(kinds),
        edge_rotors=transitions[:, jnp.asarray([0, 1, 2, 5])],
        width=padded_size(max(int(degrees.max(initial=0)), 1), least=16),
    )
    return tables, motors, order


@jax.jit
def edge_transitions(motors: StepMotors) -> Float[Array, "edges 16"]:
    """Return `W_B G_r reverse(W_A)` for every edge and the identity motor on padded rows."""
    onto = even_product_kernel(motors.words[motors.tails], motors.relations[motors.kinds])
    steps = even_product_kernel(onto, even_reverse(motors.words[motors.heads]))
    identity = jnp.zeros_like(steps).at[:, 0].set(1.0)
    return jnp.where(motors.real[:, None], steps, identity)


@jax.jit
def step_operators(motors: StepMotors, personas: Float[Array, "identities 16"]) -> Float[Array, "rows 16"]:
    """Return the operator table, flat over (identity, edge): `V M` on edges, the identity motor on padded rows."""
    steps = edge_transitions(motors)
    shape = (personas.shape[0], *steps.shape)
    moved = even_product_kernel(jnp.broadcast_to(steps, shape), jnp.broadcast_to(personas[:, None, :], shape))
    rest = jnp.broadcast_to(steps, shape)
    table = jnp.where(jnp.broadcast_to(motors.real[:, None], shape), moved, rest)
    return table.reshape(-1, 16)


def _pad(column: np.ndarray, rows: int) -> np.ndarray:
    return np.concatenate([column, np.zeros(rows - len(column))]).astype(np.int32)


def _pad_rows(values: np.ndarray, rows: int, filler: np.ndarray) -> np.ndarray:
    padded = np.broadcast_to(filler, (rows, len(filler))).copy()
    padded[: len(values)] = values
    return padded
