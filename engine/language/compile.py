"""Compile a language pack to a vocabulary of motors: graph, spectral coordinates, scale, grid, motors."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from engine.base.precision import require_x64
from engine.language import placement, rigid, spectral
from engine.language.alignment import pull_towards_anchors
from engine.language.graph import adjacency_matrix, pair_array, typed_edges
from engine.language.vocabulary import Vocabulary
from packs.language.lookup import FormIndex
from packs.language.model import LanguagePack


@dataclass(frozen=True)
class Geometry:
    """Scaled coordinates of a graph's words, not yet on the grid, and the weight of a radian in scene units."""

    coordinates: Float[ndarray, "words 6"]
    rotation_weight: float


def embed_graph(pairs: Int[ndarray, "pairs 2"], size: int) -> Geometry:
    """Return the geometry of an undirected graph over `size` words; see `spectral` for the method and the errors."""
    adjacency = adjacency_matrix(pairs, size)
    raw = spectral.diffusion_coordinates(adjacency)
    return scale_coordinates(raw, adjacency.sum(axis=1) > 0)


def scale_coordinates(raw: Float[ndarray, "words 6"], linked: ndarray) -> Geometry:
    """Return raw coordinates at the scale of word motors; words not `linked` are placed apart."""
    near = placement.scale_factor(raw[linked, :3], placement.TRANSLATION_RMS, placement.TRANSLATION_LIMIT)
    turn = placement.scale_factor(raw[linked, 3:], placement.ROTATION_RMS, placement.ROTATION_LIMIT)
    scaled = raw * np.array([near] * 3 + [turn] * 3)
    return Geometry(coordinates=placement.place_unlinked(scaled, linked), rotation_weight=near / turn)


def pack_geometry(pack: LanguagePack) -> Geometry:
    """Return the pack's own geometry: from its relations, or the coordinates it was built with by projection."""
    if pack.manifest.geometry == "projection":
        return Geometry(np.array([lexeme.coordinates for lexeme in pack.lexicon], dtype=np.float64), 1.0)
    return embed_graph(pair_array(pack), len(pack.lexicon))


def compile_vocabulary(pack: LanguagePack) -> Vocabulary:
    """Return the vocabulary of `pack`.

    The same pack gives the same vocabulary, bit for bit, in every call on a platform.

    Raises:
      LanguagePackError: the relation graph gives no geometry (no relations, too many words).
      PrecisionError: 64-bit types are off.
    """
    require_x64()
    geometry = pack_geometry(pack)
    pulled = pull_towards_anchors(geometry.coordinates, pack.lemmas, pack.alignment)
    coordinates = placement.snap_apart(pulled)
    motors = rigid.motors_from_coordinates(coordinates)
    graph = typed_edges(pack)
    roots, root_motors = _root_motors(pack, coordinates)
    return Vocabulary(
        language=pack.pack_id,
        lemmas=pack.lemmas,
        coordinates=jnp.asarray(coordinates),
        points=jnp.asarray(coordinates[:, :3]),
        motors=jnp.asarray(motors),
        relation_types=graph.names,
        relation_motors=jnp.asarray(_relation_motors(pack)),
        edges=jnp.asarray(graph.edges),
        edge_relations=jnp.asarray(graph.source),
        operators=tuple(operator.operator for operator in pack.operators),
        operator_motors=jnp.asarray(rigid.rotors(_vectors([operator.rotor for operator in pack.operators]))),
        root_motors=jnp.asarray(root_motors),
        roots=jnp.asarray(roots),
        function_motors=jnp.asarray(rigid.rotors(_vectors([entry.rotor for entry in pack.function_words]))),
        rotation_weight=geometry.rotation_weight,
        index=FormIndex(pack.lexicon, pack.forms, pack.operators, pack.function_words),
    )


def _relation_motors(pack: LanguagePack) -> Float[ndarray, "types 16"]:
    forward = rigid.rotors(_vectors([kind.rotor for kind in pack.relation_types]))
    named = [number for number, kind in enumerate(pack.relation_types) if kind.inverse]
    return np.concatenate([forward, rigid.reverse(forward[named])])


def _root_motors(
    pack: LanguagePack, coordinates: Float[ndarray, "words 6"]
) -> tuple[Int[ndarray, " words"], Float[ndarray, "roots 16"]]:
    """Return for each word its root's number (-1 without one), and a motor at the centre of each root's words."""
    names = list(dict.fromkeys(lexeme.root for lexeme in pack.lexicon if lexeme.root))
    number_of = {name: number for number, name in enumerate(names)}
    roots = np.array([number_of.get(lexeme.root, -1) for lexeme in pack.lexicon], dtype=np.int64)
    centres = np.array([coordinates[roots == number].mean(axis=0) for number in range(len(names))])
    return roots, rigid.motors_from_coordinates(centres.reshape(-1, 6))


def _vectors(items: list[tuple[float, float, float]]) -> Float[ndarray, "n 3"]:
    return np.array(items, dtype=np.float64).reshape(-1, 3)
