"""Value axes as directions at infinity: what moves them, what does not, and what a reading says."""

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given

from engine.algebra import dilator, even_product, identity_motor, translator, transversion
from engine.algebra.rigid import rigid_motor, rotor_about
from engine.base.errors import ShapeError
from engine.identity import AXIS_CAPACITY, manifold_from_pack, read_identity
from engine.identity.manifold import LEAKAGE_TOLERANCE
from packs.errors import IdentityPackError
from tests.identity.packs import DEFAULT_AXES, make_pack

EPS = float(np.finfo(np.float64).eps)
TOLERANCE = 64 * EPS
"""Two sandwiches of unit motors with a few dozen products each: tens of roundings of numbers of size 1."""

_READ = jax.jit(read_identity)
ONE_AXIS = manifold_from_pack(make_pack({"up": ((0.0, 0.0, 1.0), 1.0)}))
DEFAULT = manifold_from_pack(make_pack(DEFAULT_AXES))


def turn(axis, angle):
    unit = np.asarray(axis, np.float64) / np.linalg.norm(axis)
    return rigid_motor(jnp.zeros((1, 3)), rotor_about(jnp.asarray(unit)[None], jnp.asarray([float(angle)])))


def read(manifold, motor):
    return jax.tree.map(lambda leaf: np.asarray(leaf)[0], _READ(manifold.axes, motor))


@pytest.mark.parametrize("angle", [0.0, 0.3, 1.0, np.pi / 2, 2.5, np.pi])
def test_a_turn_across_an_axis_gives_half_of_one_plus_its_cosine(angle):
    reading = read(ONE_AXIS, turn((1.0, 0.0, 0.0), angle))
    assert reading.alignment == pytest.approx(0.5 * (1 + np.cos(angle)), abs=TOLERANCE)
    assert reading.axis_alignments[0] == pytest.approx(reading.alignment, abs=TOLERANCE)
    assert reading.leakage <= LEAKAGE_TOLERANCE


def test_a_turn_about_the_axis_leaves_it_alone():
    assert read(ONE_AXIS, turn((0.0, 0.0, 1.0), 2.0)).alignment == pytest.approx(1.0, abs=TOLERANCE)


@pytest.mark.parametrize("distance", [1e-3, 1.0, 50.0])
def test_translations_and_dilations_change_nothing(distance):
    turned = turn((1.0, 1.0, 0.0), 0.7)
    bare = read(DEFAULT, turned)
    for mover in (translator(jnp.asarray([[distance, -2.0, 1.0]])), dilator(jnp.asarray([1.0 + distance]))):
        moved = read(DEFAULT, even_product(mover, turned))
        # Coefficients grow with the distance, and with them the rounding of the sandwich.
        assert moved.alignment == pytest.approx(bare.alignment, abs=TOLERANCE * (1 + distance) ** 2)
        assert moved.leakage <= LEAKAGE_TOLERANCE


def test_a_motion_of_infinity_leaks_and_is_flagged():
    reading = read(DEFAULT, transversion(jnp.asarray([[0.3, 0.0, 0.1]])))
    assert 1e-3 < reading.leakage <= 1.0
    assert reading.flagged


def test_a_motor_and_its_negative_are_one_motion():
    motor = even_product(translator(jnp.asarray([[1.0, 2.0, 0.5]])), turn((1.0, 2.0, 3.0), 1.9))
    one, other = read(DEFAULT, motor), read(DEFAULT, -motor)
    assert one.alignment == other.alignment
    assert np.array_equal(one.axis_alignments, other.axis_alignments)


def test_a_state_that_is_not_a_number_is_flagged():
    assert read(DEFAULT, jnp.full((1, 16), jnp.nan)).flagged
    assert read(DEFAULT, jnp.zeros((1, 16))).flagged


def test_alignment_and_a_deviating_axis_flag_on_their_own():
    # A turn about e3 by 100 degrees: e1 and e2 deviate (0.41 < 0.45), the sum of the three does not.
    reading = read(DEFAULT, turn((0.0, 0.0, 1.0), np.deg2rad(100)))
    assert list(reading.deviating[:3]) == [True, True, False]
    assert reading.alignment > 0.45
    assert reading.flagged
    assert not read(DEFAULT, turn((0.0, 0.0, 1.0), 0.2)).flagged


def test_packs_read_the_same_motor_differently_and_a_common_factor_does_not_count():
    motor = turn((1.0, -0.4, 0.2), 1.4)
    heavier = {**DEFAULT_AXES, "truthfulness": ((1.0, 0.0, 0.0), 2.0)}
    longer = {**DEFAULT_AXES, "truthfulness": ((1.0, 0.0, 0.0), 1.0), "coherence": ((0.0, 0.7, 0.0), 1.0)}
    scaled = {name: (direction, 2.5 * weight) for name, (direction, weight) in DEFAULT_AXES.items()}
    base = read(DEFAULT, motor).alignment
    for axes in (heavier, longer):
        assert abs(read(manifold_from_pack(make_pack(axes)), motor).alignment - base) > 1e-3
    assert read(manifold_from_pack(make_pack(scaled)), motor).alignment == pytest.approx(base, abs=TOLERANCE)


@given(
    st.lists(st.tuples(st.tuples(*[st.floats(-1, 1) for _ in range(3)]), st.floats(0.1, 10)), min_size=1, max_size=6),
    st.tuples(*[st.floats(-3, 3) for _ in range(3)]),
)
def test_padding_does_not_count_and_readings_lie_in_bounds(axes, rotation):
    usable = [(d, w) for d, w in axes if np.linalg.norm(d) > 1e-2]
    angle = float(np.linalg.norm(rotation))
    total = np.sum([w * np.asarray(d) for d, w in usable], axis=0) if usable else np.zeros(3)
    if not usable or angle < 1e-3 or np.linalg.norm(total) < 1e-2:
        return
    manifold = manifold_from_pack(make_pack({f"axis_{i}": axis for i, axis in enumerate(usable)}))
    reading = read(manifold, turn(rotation, angle))
    turned = _rodrigues(total, np.asarray(rotation) / angle, angle)
    cosine = total @ turned / (np.linalg.norm(total) * np.linalg.norm(turned))
    assert reading.alignment == pytest.approx(0.5 * (1 + cosine), abs=1e-12)
    assert np.all((reading.axis_alignments >= 0) & (reading.axis_alignments <= 1))
    assert np.all(reading.axis_alignments[len(usable) :] == 1.0)
    assert not reading.deviating[len(usable) :].any()


def _rodrigues(vector, axis, angle):
    along = (axis @ vector) * axis
    return along + np.cos(angle) * (vector - along) + np.sin(angle) * np.cross(axis, vector)


def test_one_program_reads_every_pack():
    traced = []

    @jax.jit
    def program(axes, motor):
        traced.append(axes)
        return read_identity(axes, motor)

    for count in (1, 3, AXIS_CAPACITY):
        axes = {f"axis_{i}": ((1.0, 0.1 * (i % 5), 0.0), 1.0) for i in range(count)}
        program(manifold_from_pack(make_pack(axes)).axes, identity_motor((4,)))
    assert len(traced) == 1


def test_a_stack_of_packs_needs_motors_of_its_shape():
    stacked = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), DEFAULT.axes)
    assert read_identity(stacked, identity_motor((2,))).alignment.shape == (2,)
    with pytest.raises(ShapeError):
        read_identity(stacked, identity_motor((3,)))


def test_axes_that_cancel_are_refused():
    with pytest.raises(IdentityPackError, match="cancel"):
        manifold_from_pack(make_pack({"a": ((1.0, 0.0, 0.0), 1.0), "b": ((-1.0, 0.0, 0.0), 1.0)}))


def test_more_axes_than_fit_are_refused():
    axes = {f"axis_{i}": ((1.0, 0.0, 0.0), 1.0) for i in range(AXIS_CAPACITY + 1)}
    with pytest.raises(IdentityPackError, match="33 value axes"):
        manifold_from_pack(make_pack(axes))


def test_boundaries_are_united_and_nothing_else_changes():
    pack = make_pack(DEFAULT_AXES, boundaries=("no_overstatement",), threshold=0.3)
    alone, composed = manifold_from_pack(pack), manifold_from_pack(pack, added_boundaries={"no_hot_path_repair"})
    assert composed.boundary_ids == {"no_overstatement", "no_hot_path_repair"}
    assert alone.axis_ids == composed.axis_ids == tuple(DEFAULT_AXES)
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), alone.axes, composed.axes))
    assert alone.alignment_threshold == composed.alignment_threshold == 0.3
