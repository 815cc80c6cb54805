"""Long propagations with checkpoints: killed anywhere they end with the same bits, and never redo what was saved."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from engine.algebra import translator
from engine.base.errors import CheckpointMismatchError, ConfigError, VersorClosureError
from engine.checkpoint import CheckpointStore, propagate_checkpointed
from engine.checkpoint.segments import Propagated
from engine.field import FieldState, propagate
from tests.checkpoint.propagating_job import DIGESTS, EVERY, STEPS, propagation


def bits(result: Propagated) -> bytes:
    assert result.key is not None
    leaves = [*jax.tree.leaves((result.state, result.closure)), jax.random.key_data(result.key)]
    return b"".join(np.asarray(leaf).tobytes() for leaf in leaves)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Propagated:
    return propagation(tmp_path_factory.mktemp("whole") / "store")


def test_segments_agree_with_one_propagation_to_rounding(whole: Propagated) -> None:
    assert (whole.resumed_at, whole.segments) == (0, STEPS // EVERY)
    assert bool(whole.closure.ok.all())
    assert whole.closure.max_residual.shape == (3,)
    assert float(whole.closure.max_residual.max()) < 1e-12


@pytest.mark.slow
def test_a_run_killed_with_sigkill_goes_on_from_its_last_checkpoint_bit_for_bit(
    tmp_path: Path, whole: Propagated
) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    command = [sys.executable, "-m", "tests.checkpoint.propagating_job", str(tmp_path), "24"]
    killed = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert killed.stdout.split()[-1] == "24"
    resumed = propagation(tmp_path)
    assert (resumed.resumed_at, resumed.segments) == (24, (STEPS - 24) // EVERY)
    assert bits(resumed) == bits(whole)


def test_asynchronous_saves_end_with_the_same_bits_and_all_are_on_disk(tmp_path: Path, whole: Propagated) -> None:
    assert bits(propagation(tmp_path, asynchronous=True)) == bits(whole)
    assert CheckpointStore(tmp_path, digests=DIGESTS).steps() == (STEPS - EVERY, STEPS)
    again = propagation(tmp_path)
    assert (again.resumed_at, again.segments) == (STEPS, 0)
    assert bits(again) == bits(whole)


MOVES = np.asarray(translator(np.full((6, 3), 0.1)))
START = FieldState(translator(np.ones((2, 3))))


def run(folder: Path, *, state: FieldState = START, versors: np.ndarray = MOVES, every: int = 2) -> Propagated:
    with CheckpointStore(folder, digests=DIGESTS, keep=None) as store:
        return propagate_checkpointed(store, state, versors, every=every, notes={"config": {"alpha": 0.5}})


def test_notes_travel_with_the_checkpoint_and_the_result_is_that_of_propagate(tmp_path: Path) -> None:
    moved, _ = propagate(START, MOVES)
    assert np.allclose(run(tmp_path).state.motor, moved.motor, rtol=0, atol=1e-14)
    store = CheckpointStore(tmp_path, digests=DIGESTS)
    assert store.steps() == (2, 4, 6)
    template = {"state": START, "closure": propagate(START, MOVES)[1], "key": None}
    assert store.restore(template, 4).notes["config"] == {"alpha": 0.5}


OTHERS = {
    "other versors": ({"versors": np.asarray(translator(np.full((6, 3), 0.2)))}, "inputs_sha256 is"),
    "another start": ({"state": FieldState(translator(np.zeros((2, 3))))}, "inputs_sha256 is"),
    "another segment length": ({"every": 3}, "every is 2 in the checkpoint, 3 here"),
    "another batch": (
        {"state": FieldState(translator(np.ones((5, 3))))},
        r"float64\[2\] in the checkpoint, float64\[5\]",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_checkpoint_of_another_run_is_refused_naming_both_sides(tmp_path: Path, name: str) -> None:
    run(tmp_path)
    arguments, words = OTHERS[name]
    with pytest.raises(CheckpointMismatchError, match=words):
        run(tmp_path, **arguments)


def test_a_state_that_leaves_the_manifold_is_never_saved_and_the_step_is_counted_from_the_start(tmp_path: Path) -> None:
    broken = MOVES.copy()
    broken[3] *= 1.1
    with pytest.raises(VersorClosureError) as raised:
        run(tmp_path, versors=broken)
    assert raised.value.step == 4
    assert CheckpointStore(tmp_path, digests=DIGESTS).steps() == (2,)


def test_a_segment_length_below_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="every=0"):
        run(tmp_path, every=0)


def test_multiples_stay_beside_the_newest(tmp_path: Path) -> None:
    with CheckpointStore(tmp_path, digests=DIGESTS, keep=1, keep_multiples_of=3) as store:
        for step in range(1, 9):
            store.save(step, {"x": np.full(3, float(step))})
    assert store.steps() == (3, 6, 8)
    with pytest.raises(ConfigError, match="keep_multiples_of=0"):
        CheckpointStore(tmp_path, digests=DIGESTS, keep_multiples_of=0)
