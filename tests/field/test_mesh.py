"""Rows over several devices, and rows that stream through them, end like rows on one device."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine.base.errors import ConfigError, DeviceError, ShapeError, VersorClosureError
from engine.field import FieldState, data_mesh, propagate, propagate_over, run_stream
from engine.field.mesh import _program_over, padded_rows, place_rows
from engine.safety.hotpath import prove_traced
from tests.field.motors import STEPS, motors

ROUNDING = 64 * STEPS * np.finfo(np.float64).eps * 100
"""As in test_propagate: another number of devices is another instruction order, no more."""

COUNTS = pytest.mark.parametrize("devices", [1, 2, 4, 8])


@COUNTS
@pytest.mark.parametrize("batch", [(), (13,), (3, 5)])
@pytest.mark.parametrize("per_sample", [False, True])
def test_a_mesh_changes_no_state_and_no_closure(devices, batch, per_sample):
    state = FieldState(motors(1, *batch))
    versors = motors(2, STEPS, *batch) if per_sample else motors(2, STEPS)
    expected, closure = propagate(state, versors)
    moved, found = propagate_over(data_mesh(devices), state, versors)
    assert moved.motor.shape == (*batch, 16)
    np.testing.assert_allclose(moved.motor, expected.motor, atol=ROUNDING, rtol=0)
    np.testing.assert_allclose(found.max_residual, closure.max_residual, atol=ROUNDING, rtol=0)
    for name in ("ok", "first_violation", "versors_closed"):
        np.testing.assert_array_equal(getattr(found, name), getattr(closure, name))


@COUNTS
def test_a_row_that_fails_is_named_and_its_neighbours_are_not(devices):
    rows = np.array(motors(1, 13))
    rows[7] = np.nan
    rows[9] *= 1.5
    _, closure = propagate_over(data_mesh(devices), FieldState(rows), motors(2, STEPS))
    assert [int(row) for row in np.flatnonzero(~np.asarray(closure.ok))] == [7, 9]


def test_the_program_of_a_mesh_never_repairs_its_state():
    traced = _program_over(data_mesh(2), True).trace(jnp.zeros((4, 16)), jnp.zeros((STEPS, 1, 16)))
    report = prove_traced(
        traced, state=lambda given: given[0], operators=lambda given: given[1], outputs=lambda found: found[0]
    )
    assert report.upheld, report


def test_devices_that_are_not_there_are_an_error_and_so_is_an_unequal_share():
    with pytest.raises(DeviceError, match="9 devices were asked for; there are 8"):
        data_mesh(9)
    with pytest.raises(DeviceError, match="0 devices"):
        data_mesh(0)
    with pytest.raises(ShapeError, match="7 rows cannot be shared out equally over 2"):
        place_rows(data_mesh(2), np.zeros((7, 16)))
    assert [padded_rows(count, data_mesh(4)) for count in (1, 4, 5)] == [4, 4, 8]
    assert padded_rows(5, None) == 5


@pytest.mark.parametrize("chunk", [1, 4, 5, 13, 64])
@pytest.mark.parametrize("devices", [1, 4])
@pytest.mark.parametrize("per_sample", [False, True])
def test_a_stream_ends_like_a_batch_whatever_the_chunk(chunk, devices, per_sample):
    rows = np.array(motors(1, 13))
    versors = motors(2, STEPS, 13) if per_sample else motors(2, STEPS)
    expected, closure = propagate(FieldState(rows), versors)
    told = []
    out, found = run_stream(
        rows, versors, chunk=chunk, mesh=data_mesh(devices), progress=lambda *done: told.append(done)
    )
    np.testing.assert_allclose(out, expected.motor, atol=ROUNDING, rtol=0)
    np.testing.assert_allclose(found.max_residual, closure.max_residual, atol=ROUNDING, rtol=0)
    assert np.all(found.ok)
    assert found.ok.shape == (13,)
    assert told[-1] == (13, 13)
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_a_stream_goes_through_memory_maps_in_place_and_compiles_one_shape(tmp_path):
    rows = np.array(motors(1, 1000))
    expected = np.asarray(propagate(FieldState(rows), motors(2, STEPS))[0].motor)
    mapped = np.memmap(tmp_path / "rows", np.float64, "w+", shape=rows.shape)
    mapped[:] = rows
    program = _program_over(data_mesh(1, jax.local_devices()), True)
    before = program._cache_size()
    out, _ = run_stream(mapped, motors(2, STEPS), out=mapped, chunk=96)
    assert out is mapped
    assert program._cache_size() == before + 1
    np.testing.assert_allclose(mapped, expected, atol=ROUNDING, rtol=0)


def test_a_stream_writes_nothing_of_a_chunk_that_left_the_manifold():
    rows = np.array(motors(1, 12))
    rows[6] *= 1.5
    out = np.full((12, 16), -1.0)
    with pytest.raises(VersorClosureError, match="in the rows from 4") as caught:
        run_stream(rows, motors(2, STEPS), out=out, chunk=4)
    assert (caught.value.sample, caught.value.step) == (6, 0)
    assert np.all(out[4:] == -1.0)
    assert not np.any(out[:4] == -1.0)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"chunk": 0}, ConfigError),
        ({"out": np.zeros((3, 16))}, ShapeError),
        ({"out": np.zeros((4, 16), np.float32)}, ShapeError),
        ({"versors": np.zeros((2, 5, 16))}, ShapeError),
        ({"motors": np.zeros(16)}, ShapeError),
    ],
)
def test_a_stream_refuses_what_does_not_fit(change, error):
    given = {"motors": np.zeros((4, 16)), "versors": np.zeros((2, 16)), **change}
    with pytest.raises(error):
        run_stream(given.pop("motors"), given.pop("versors"), **given)


def test_an_empty_stream_is_empty():
    out, closure = run_stream(np.zeros((0, 16)), motors(2, STEPS))
    assert out.shape == (0, 16)
    assert closure.ok.shape == (0,)
