"""The compiler: determinism, words apart, awkward graphs, relations and operators as motors, alignment."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from engine.algebra import apply, closure_residual, embed_point, point_coordinates, rotor
from engine.language import placement, rigid, spectral
from engine.language.alignment import PULL, pull_towards_anchors
from engine.language.compile import compile_vocabulary, embed_graph
from engine.language.digest import coordinates_digest, vocabulary_digest
from engine.language.encode import form_motor
from engine.language.geometry import motor_distances, paired_motor_distances
from engine.language.graph import adjacency_matrix, component_labels
from engine.language.vocabulary import Vocabulary
from packs.errors import LanguagePackError
from packs.language.model import Alignment, LanguagePack


def pairs_of(*edges: tuple[int, int]) -> np.ndarray:
    return np.array(edges, dtype=np.int64)


def cycle(size: int) -> np.ndarray:
    return pairs_of(*((word, (word + 1) % size) for word in range(size)))


def path(size: int) -> np.ndarray:
    return pairs_of(*((word, word + 1) for word in range(size - 1)))


def star(size: int) -> np.ndarray:
    return pairs_of(*((0, word) for word in range(1, size)))


# --- rigid motors against the algebra ---

COORDINATES = np.array(
    [
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [1.0, -2.0, 0.5, 0.0, 0.0, 0.0],
        [0.3, 0.1, -0.2, 1.2, -0.7, 0.4],
        [0.0, 0.0, 0.0, 0.0, np.pi, 0.0],
        [2.0, 2.0, 2.0, 1e-9, 0.0, 0.0],
        [-1.0, 0.5, 0.2, -2.0, 1.5, 1.0],
    ]
)


def test_motors_are_versors_and_read_back() -> None:
    motors = rigid.motors_from_coordinates(COORDINATES)
    assert float(closure_residual(jnp.asarray(motors)).max()) < 1e-14
    np.testing.assert_allclose(rigid.coordinates_from_motors(motors), COORDINATES, atol=1e-12)
    np.testing.assert_allclose(rigid.coordinates_from_motors(-motors)[:3], COORDINATES[:3], atol=1e-12)


def test_a_motor_carries_the_origin_to_its_point() -> None:
    motors = jnp.asarray(rigid.motors_from_coordinates(COORDINATES))
    reached = point_coordinates(apply(motors, embed_point(jnp.zeros((len(COORDINATES), 3)))))
    np.testing.assert_allclose(reached, COORDINATES[:, :3], atol=1e-12)


def test_rotors_agree_with_the_algebras_own() -> None:
    quarter = rigid.rotors(np.array([0.0, 0.0, np.pi / 2]))
    plane = jnp.zeros(10).at[0].set(1.0)  # e12, dual to the third axis
    np.testing.assert_allclose(quarter, rotor(plane, jnp.asarray(np.pi / 2)), atol=1e-15)
    turned = apply(jnp.asarray(quarter), embed_point(jnp.array([1.0, 0.0, 0.0])))
    np.testing.assert_allclose(point_coordinates(turned), [0.0, 1.0, 0.0], atol=1e-15)


def test_the_motor_distance_is_left_invariant_and_blind_to_sign() -> None:
    motors = rigid.motors_from_coordinates(COORDINATES)
    before = motor_distances(motors, motors, 0.7)
    moved = rigid.multiply(np.broadcast_to(motors[5], motors.shape), motors)
    np.testing.assert_allclose(motor_distances(moved, -moved, 0.7), before, atol=1e-6)
    np.testing.assert_allclose(paired_motor_distances(motors, motors[::-1], 0.7), np.diag(before[:, ::-1]), atol=1e-6)


# --- the embedding ---


@pytest.mark.parametrize("pairs", [cycle(12), path(12), star(12), cycle(3)], ids=["cycle", "path", "star", "triangle"])
def test_symmetric_graphs_compile_to_words_that_are_apart(pairs: np.ndarray) -> None:
    size = int(pairs.max()) + 1
    coordinates = placement.snap_apart(embed_graph(pairs, size).coordinates)
    assert np.isfinite(coordinates).all()
    assert len(np.unique(coordinates[:, :3], axis=0)) == size
    np.testing.assert_array_equal(coordinates, placement.snap_apart(embed_graph(pairs, size).coordinates))


def test_a_cycle_is_embedded_as_a_cycle() -> None:
    """Neighbours on a ring are nearer than words across it: the split eigenvalue pair still spans the circle."""
    points = embed_graph(cycle(16), 16).coordinates[:, :3]
    near = np.linalg.norm(points - np.roll(points, 1, axis=0), axis=1)
    across = np.linalg.norm(points - np.roll(points, 8, axis=0), axis=1)
    assert near.max() < across.min() / 2


def test_a_disconnected_graph_compiles_with_its_parts_apart() -> None:
    pairs = np.concatenate([cycle(6), cycle(6) + 6])
    points = embed_graph(pairs, 12).coordinates[:, :3]
    within = max(np.linalg.norm(points[a] - points[b]) for a in range(6) for b in range(6))
    between = min(np.linalg.norm(points[a] - points[b]) for a in range(6) for b in range(6, 12))
    assert between > within
    assert component_labels(adjacency_matrix(pairs, 12)).tolist() == [0] * 6 + [1] * 6


def test_a_word_without_relations_stands_on_the_shell() -> None:
    coordinates = embed_graph(path(6), 8).coordinates
    lengths = np.linalg.norm(coordinates[6:, :3], axis=1)
    np.testing.assert_allclose(lengths, placement.UNLINKED_RADIUS * placement.TRANSLATION_RMS)
    assert len(np.unique(coordinates[6:, :3], axis=0)) == 2


@pytest.mark.parametrize("pairs", [path(2), path(3), star(6), path(5)], ids=["pair", "path", "star", "longer path"])
def test_a_graph_of_few_directions_still_turns_its_words(pairs: np.ndarray) -> None:
    """Noise in the missing directions is not scaled up; the rotation repeats the translation instead."""
    geometry = embed_graph(pairs, int(pairs.max()) + 1)
    assert 0.1 < geometry.rotation_weight < 10
    turns = np.linalg.norm(geometry.coordinates[:, 3:], axis=1)
    assert np.sqrt(np.mean(turns**2)) > 1.0


def test_no_relation_and_too_many_words_are_refused() -> None:
    with pytest.raises(LanguagePackError, match="no word has a relation"):
        embed_graph(np.empty((0, 2), dtype=np.int64), 4)
    with pytest.raises(LanguagePackError, match="build by projection"):
        spectral.diffusion_coordinates(np.broadcast_to(np.zeros(1), (7_000, 7_000)))


def test_the_geometry_does_not_depend_on_the_order_of_relations_or_their_direction() -> None:
    random = np.random.default_rng(1)
    pairs = np.concatenate([cycle(14), pairs_of((0, 5), (3, 9), (2, 11), (4, 8))])
    shuffled = np.ascontiguousarray(pairs[random.permutation(len(pairs))][:, ::-1])
    np.testing.assert_array_equal(embed_graph(pairs, 14).coordinates, embed_graph(shuffled, 14).coordinates)


def test_scale_keeps_translations_and_rotations_in_bounds() -> None:
    coordinates = embed_graph(np.concatenate([path(30), star(9) + 21]), 30).coordinates
    assert np.linalg.norm(coordinates[:, :3], axis=1).max() <= placement.TRANSLATION_LIMIT + 1e-12
    assert np.linalg.norm(coordinates[:, 3:], axis=1).max() <= placement.ROTATION_LIMIT + 1e-12


def test_words_on_one_spot_are_moved_to_the_nearest_free_cells() -> None:
    coordinates = np.zeros((40, 6))
    snapped = placement.snap_apart(coordinates)
    distances = np.linalg.norm(snapped[:, None, :3] - snapped[None, :, :3], axis=-1) + np.eye(40)
    assert distances.min() >= placement.PITCH
    assert np.linalg.norm(snapped[:, :3], axis=1).max() <= 3 * placement.PITCH
    np.testing.assert_array_equal(snapped[0], coordinates[0])


# --- the vocabulary ---


def test_compilation_is_bit_identical(tiny_pack: LanguagePack, tiny_vocabulary: Vocabulary) -> None:
    again = compile_vocabulary(tiny_pack)
    assert vocabulary_digest(again) == vocabulary_digest(tiny_vocabulary)
    moved = dataclasses.replace(again, coordinates=again.coordinates.at[0, 0].add(2.0**-40))
    assert vocabulary_digest(moved) != vocabulary_digest(tiny_vocabulary)
    assert coordinates_digest(moved) != coordinates_digest(tiny_vocabulary)


def test_edges_run_both_ways_where_the_relation_can_be_read_back(
    tiny_pack: LanguagePack, tiny_vocabulary: Vocabulary
) -> None:
    kinds = {kind.relation: kind for kind in tiny_pack.relation_types}
    named = {
        (tiny_vocabulary.lemmas[h], tiny_vocabulary.relation_types[r], tiny_vocabulary.lemmas[t])
        for h, r, t in np.asarray(tiny_vocabulary.edges).tolist()
    }
    expected = set()
    for relation in tiny_pack.relations:
        kind = kinds[relation.relation]
        expected.add((relation.head, relation.relation, relation.tail))
        if kind.symmetric or kind.inverse:
            expected.add((relation.tail, kind.inverse or kind.relation, relation.head))
    assert named == expected
    assert len(tiny_vocabulary.edge_relations) == len(expected)


def test_an_inverse_is_the_reverse_and_a_symmetric_relation_is_an_involution(tiny_vocabulary: Vocabulary) -> None:
    names, motors = tiny_vocabulary.relation_types, np.asarray(tiny_vocabulary.relation_motors)
    assert names == ("part_of", "needs", "resembles", "has_part")
    np.testing.assert_array_equal(motors[names.index("has_part")], rigid.reverse(motors[names.index("part_of")]))
    half_turn = motors[names.index("resembles")]
    np.testing.assert_allclose(rigid.multiply(half_turn, half_turn), -np.eye(16)[0], atol=1e-15)


def test_forms_compose_in_order_and_stay_at_the_lemma(tiny_vocabulary: Vocabulary) -> None:
    lemma = form_motor(tiny_vocabulary, 0)
    np.testing.assert_allclose(lemma, np.asarray(tiny_vocabulary.motors)[0], atol=1e-14)
    form = form_motor(tiny_vocabulary, 0, ("diminutive", "plural"))
    other = form_motor(tiny_vocabulary, 0, ("plural", "diminutive"))
    operators = dict(zip(tiny_vocabulary.operators, np.asarray(tiny_vocabulary.operator_motors), strict=True))
    by_hand = rigid.multiply(rigid.multiply(lemma, operators["diminutive"]), operators["plural"])
    np.testing.assert_allclose(form, by_hand, atol=1e-14)
    assert np.abs(form - other).max() > 1e-3
    np.testing.assert_allclose(rigid.translation_vectors(form), np.asarray(tiny_vocabulary.points)[0], atol=1e-14)


def test_words_of_one_root_share_a_root_at_their_centre(tiny_vocabulary: Vocabulary) -> None:
    roots = np.asarray(tiny_vocabulary.roots)
    assert roots[:3].tolist() == [0, 0, -1]
    centre = rigid.coordinates_from_motors(np.asarray(tiny_vocabulary.root_motors)[0])
    np.testing.assert_allclose(centre, np.asarray(tiny_vocabulary.coordinates)[:2].mean(axis=0), atol=1e-12)


# --- alignment ---


def aligned(strength: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return coordinates before and after alignment of ten words to a turned and disturbed copy, and the targets."""
    random = np.random.default_rng(11)
    coordinates = random.normal(size=(14, 6)) * 0.6
    turn = np.linalg.qr(random.normal(size=(3, 3)))[0]
    targets = coordinates.copy()
    targets[:, :3] = coordinates[:, :3] @ turn
    targets[:, 3:] = coordinates[:, 3:] @ turn.T
    targets += random.normal(size=targets.shape) * 0.2
    lemmas = tuple(f"w{number}" for number in range(14))
    edges = [Alignment(f"w{n}", "xx", f"v{n}", strength, tuple(targets[n].tolist())) for n in range(10)]
    return coordinates, pull_towards_anchors(coordinates, lemmas, edges), targets


def gaps(coordinates: np.ndarray, targets: np.ndarray) -> np.ndarray:
    a, b = rigid.motors_from_coordinates(coordinates[:10]), rigid.motors_from_coordinates(targets[:10])
    return paired_motor_distances(a, b, 1.0)


def test_strength_is_graded_and_never_overwrites() -> None:
    _, weak, targets = aligned(1e-9)
    left = {strength: gaps(aligned(strength)[1], targets) / gaps(weak, targets) for strength in (0.25, 0.5, 1.0)}
    for strength, share in left.items():
        # A screw moves points on a curve, so that the straight distance left is only about 1 - t of the whole.
        np.testing.assert_allclose(share, 1 - PULL * strength, atol=0.1)
    assert (left[1.0] > 0.3).all()
    assert (left[1.0] < left[0.5]).all()
    assert (left[0.5] < left[0.25]).all()


def test_the_common_turn_moves_no_word_relative_to_another() -> None:
    before, after, _ = aligned(1e-12)
    for half in (slice(0, 3), slice(3, 6)):
        gram = before[:, half] @ before[:, half].T
        np.testing.assert_allclose(after[:, half] @ after[:, half].T, gram, atol=1e-9)


def test_no_alignment_leaves_the_coordinates_alone() -> None:
    coordinates = np.random.default_rng(2).normal(size=(5, 6))
    assert pull_towards_anchors(coordinates, ("a", "b", "c", "d", "e"), ()) is coordinates
