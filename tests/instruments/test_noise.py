"""The noise floor: spread, intervals against known answers, and which runs may be pooled."""

import math

import numpy as np
import pytest
from scipy.stats import chi2, norm

from engine.base.errors import RecordError
from engine.instruments.noise import POOL_FIELDS, measure_noise, pool_records, pooled_noise, runs_to_resolve

VALUES = np.random.default_rng(3).normal(0.8, 0.01, size=40)


def floor(values, keys=None):
    keys = range(len(values)) if keys is None else keys
    return measure_noise("g", list(zip(keys, map(float, values), strict=True)))


@pytest.mark.parametrize("runs", [1, 2, 9])
def test_below_ten_runs_there_is_no_interval(runs):
    noise = floor(VALUES[:runs])
    assert noise.swing_interval is None
    assert noise.sd_interval is None
    assert noise.interval_reason == "too_few_runs"
    assert (noise.sd is None) == (runs < 2)


def test_the_interval_of_the_spread_agrees_with_the_normal_theory():
    noise = floor(VALUES)
    sd, n = VALUES.std(ddof=1), len(VALUES)
    assert noise.sd == pytest.approx(sd, rel=1e-12)
    assert noise.swing == pytest.approx(np.ptp(VALUES), rel=1e-12)
    low, high = noise.sd_interval
    exact_low, exact_high = (sd * math.sqrt((n - 1) / chi2.ppf(q, n - 1)) for q in (0.975, 0.025))
    # The sample is normal but finite: bootstrap and chi-square limits agree to a fifth of the standard deviation.
    assert low == pytest.approx(exact_low, abs=0.2 * sd)
    assert high == pytest.approx(exact_high, abs=0.2 * sd)
    assert noise.swing_interval[0] <= noise.swing
    assert noise.swing_interval[1] == pytest.approx(noise.swing)


def test_intervals_are_reproducible():
    assert floor(VALUES[:12]) == floor(VALUES[:12])


def test_the_same_key_gives_exactly_zero_and_counts_once():
    noise = floor([0.7, 0.7, 0.9, 0.9], keys=[1, 1, 2, 2])
    assert noise.same_key_swing == 0.0
    assert (noise.runs, noise.distinct_keys) == (4, 2)
    assert noise.swing == pytest.approx(0.2)
    only = floor([0.7] * 12, keys=[1] * 12)
    assert only.swing is None
    assert only.interval_reason == "too_few_runs"


def test_runs_without_any_spread_have_no_interval():
    noise = floor([0.5] * 12)
    assert noise.swing == 0.0
    assert noise.interval_reason == "no_spread"


def test_the_label_says_whose_noise_it_is():
    assert "'g'" in floor(VALUES).as_dict()["label"]


def test_runs_to_resolve_gives_the_power_it_promises():
    sd, difference = 0.01, 0.008
    n = runs_to_resolve(sd, difference)
    power = norm.cdf(difference / (sd * math.sqrt(2 / n)) - norm.ppf(0.975))
    assert power >= 0.8
    fewer = norm.cdf(difference / (sd * math.sqrt(2 / (n - 1))) - norm.ppf(0.975))
    assert fewer < 0.8
    assert runs_to_resolve(None, 0.1) is None
    assert runs_to_resolve(0.01, 0.0) is None
    assert runs_to_resolve(0.0, 0.1) == 2


def record(key, cosine, **changes):
    shared = dict.fromkeys(POOL_FIELDS, "same")
    return {"event": "shadow_constitution", "key": key, "cosine_vs_current": cosine, **shared, **changes}


@pytest.mark.parametrize("field", POOL_FIELDS)
def test_runs_are_pooled_only_with_equal_digests(field):
    pools = pool_records([record(1, 0.8), record(2, 0.9), record(3, 0.1, **{field: "other"})])
    assert [len(members) for _, members in pools] == [2, 1]
    assert pooled_noise(pools[0][1]).swing == pytest.approx(0.1)


@pytest.mark.parametrize("change", [{"cosine_vs_current": "0.8"}, {"cosine_vs_current": True}, {"key": None}])
def test_a_forged_run_is_a_record_error(change):
    with pytest.raises(RecordError):
        pool_records([{**record(1, 0.8), **change}])


def test_runs_without_a_reading_and_other_events_are_not_pooled():
    assert pool_records([record(1, None), {"event": "shadow_manifold", "cosine_vs_current": 0.5}]) == []
