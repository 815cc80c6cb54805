"""The field-level twin on motions whose answer is known."""

import base64
import json
import math

import numpy as np
import pytest

from engine.algebra import even_product, exp, translator
from engine.cli.commands import main
from engine.instruments import twin
from engine.instruments.notes import NOT_A_CANDIDATE
from engine.instruments.records import append_record
from engine.instruments.replay import verify_log

RNG = np.random.default_rng(17)


def rotors(axis, angles):
    """Return rotors about `axis` by `angles`: exp of minus half the angle times the dual plane (e23, -e13, e12)."""
    x, y, z = np.asarray(axis) / np.linalg.norm(axis)
    bivectors = np.zeros((len(angles), 10))
    # e12 e13 e14 e15 e23 ...
    bivectors[:, [0, 1, 4]] = -0.5 * np.asarray(angles)[:, None] * np.array([z, -y, x])
    return np.asarray(exp(bivectors))


def motors(axis, angles, offsets=None):
    turned = rotors(axis, angles)
    moved = np.asarray(translator(RNG.normal(size=(len(angles), 3)) if offsets is None else offsets))
    return np.asarray(even_product(moved, turned))


AXIS = np.array([0.6, -0.3, 0.9])


def test_rotations_and_places_are_those_of_the_motor():
    offsets = RNG.normal(size=(5, 3))
    matrices = twin.rotations(motors([0.0, 0.0, 1.0], [0.3] * 5, offsets))
    c, s = math.cos(0.3), math.sin(0.3)
    np.testing.assert_allclose(matrices, np.broadcast_to([[c, -s, 0], [s, c, 0], [0, 0, 1]], (5, 3, 3)), atol=1e-14)
    np.testing.assert_allclose(twin.places(motors(AXIS, [0.3] * 5, offsets)), offsets, atol=1e-12)


def test_the_axis_that_every_motion_keeps_is_found_without_being_told():
    found, kept = twin.shadow_axes(motors(AXIS, RNG.uniform(0.5, 3.0, size=40)))
    assert abs(found[0] @ AXIS) / np.linalg.norm(AXIS) == pytest.approx(1.0, abs=1e-12)
    assert kept[0] == pytest.approx(1.0, abs=1e-12)
    assert kept[1] < 0.9


def test_the_reading_matches_axes_by_the_best_assignment():
    kept = motors(AXIS, RNG.uniform(0.5, 3.0, size=40))
    found, _ = twin.shadow_axes(kept)
    axes = {"third": found[2].tolist(), "own": found[0].tolist(), "second": found[1].tolist()}
    reading = twin.read_axes(kept, axes, AXIS.tolist())
    assert reading["cosine_vs_value_vector"] == pytest.approx(1.0, abs=1e-12)
    assert [match["axis"] for match in reading["matched"]] == ["own", "second", "third"]


def side(name, values, paths=None):
    return twin.Trajectories(name, values, paths or tuple((1, 2, 3) for _ in values))


def test_a_rerun_is_at_distance_exactly_zero():
    values = motors(AXIS, RNG.uniform(0.1, 3.0, size=20))
    pair = twin.divergence(side("a", values), side("b", values.copy()))
    assert pair["displacement"]["max"] == 0.0
    assert pair["path"]["max"] == 0.0
    # The relative rotation is R^T R: its sine is rounding, since the product is symmetric only up to an ulp.
    assert pair["angle"]["max"] < 1e-15


@pytest.mark.parametrize("angle", [1e-7, 0.3, 3.0])
def test_angle_and_displacement_of_a_known_relative_motion(angle):
    base = motors(AXIS, RNG.uniform(0.1, 3.0, size=12), np.zeros((12, 3)))
    turned = np.asarray(even_product(base, rotors([0.0, 1.0, 0.0], [angle] * 12)))
    moved = np.asarray(even_product(np.asarray(translator(np.array([[0.0, 2.0, 0.0]] * 12))), turned))
    pair = twin.divergence(side("a", base), side("b", -moved))
    assert pair["angle"]["mean"] == pytest.approx(angle, abs=1e-14, rel=1e-8)
    assert pair["displacement"]["mean"] == pytest.approx(2.0, abs=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [((), (), 0.0), ((1,), (), 1.0), ((1, 2, 3), (1, 2, 3), 0.0), ((1, 2, 3), (1, 3), 1 / 3), ((1, 2), (2, 1), 1.0)],
)
def test_path_distance(a, b, distance):
    assert twin.path_distance(a, b) == pytest.approx(distance)
    assert twin.path_distance(b, a) == pytest.approx(distance)


def test_divergence_has_an_interval_over_prompts():
    pair = twin.divergence(side("a", motors(AXIS, [0.1] * 30)), side("b", motors(AXIS, RNG.uniform(0.2, 2.0, size=30))))
    low, high = pair["angle"]["interval"]
    assert low < pair["angle"]["mean"] < high
    assert pair["path"]["interval"] is None


def test_noise_and_anchors_tell_a_kept_axis_from_none():
    kept = motors(AXIS, RNG.uniform(0.5, 3.0, size=60))
    assert twin.axis_noise(kept)["cosine_5_percent"] > 0.999
    scattered = np.concatenate([motors(RNG.normal(size=3), [2.5]) for _ in range(12)])
    assert twin.axis_noise(scattered)["cosine_5_percent"] < 0.95
    band = twin.random_band(twin.shadow_axes(kept)[0])
    # |cos| of a random direction is uniform on [0, 1]: median 1/2, 5% and 95% quantiles near their levels.
    assert band["median"] == pytest.approx(0.5, abs=0.12)
    assert band["low"] < 0.15
    assert band["high"] > 0.85


def test_a_record_replays_and_an_altered_one_fails(tmp_path):
    own = side("a", motors(AXIS, RNG.uniform(0.5, 3.0, size=20)))
    reading = twin.read_axes(own.motors, {"x": [1.0, 0.0, 0.0]}, [1.0, 0.0, 0.0])
    record = {"event": "shadow_manifold", "verdict": "ok", "run_id": "r", **twin.record_fields(own, reading)}
    other = base64.b64encode(motors([1.0, 0.0, 0.0], [0.5] * 20).tobytes()).decode()
    changes = ({}, {"motors_b64": other}, {"kept": [1.0, 1.0, 1.0]}, {"trajectory_count": 3}, {"shadow_axes": None})
    for change in (*changes, {"motors_truncated": True}, {"motors_b64": None}):
        assert append_record(tmp_path / "log", {**record, **change})
    checks = [check.checks for check in verify_log(tmp_path / "log").records]
    assert checks[0] == {"chain": "ok", "axes": "ok"}
    assert all(any(value.startswith("failed") for value in check.values()) for check in checks[1:5])
    assert all("not derivable" in check["axes"] for check in checks[5:])


@pytest.mark.slow
def test_the_command_reads_a_real_walk_and_its_record_replays(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = "readings shadow-manifold --language grc --limit 24 --against precision_first_v1 --log m.jsonl --json"
    assert main(arguments.split()) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert captured.err == ""
    assert document["recorded"] is True
    assert document["notes"]["status"] == NOT_A_CANDIDATE
    pairs = {pair["sides"][1]: pair for pair in document["divergence"]}
    # The null pair is bit-identical; what speaks differently goes elsewhere.
    assert pairs["rerun"]["displacement"]["max"] == pairs["rerun"]["path"]["max"] == 0.0
    assert pairs["precision_first_v1"]["displacement"]["mean"] > 0.0
    assert pairs["identity-stripped"]["displacement"]["mean"] > 0.0
    assert verify_log("m.jsonl").ok
    assert main(["readings", "shadow-manifold", "--language", "grc", "--limit", "2", "--json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["verdict"] == "insufficient_patterns"
    assert captured.err.count("\n") == 1
