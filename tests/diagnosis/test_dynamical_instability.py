"""Dynamical instability: blow-ups of entropy, gradient and mismatch, and the refresh margin."""

from __future__ import annotations

import numpy as np
import pytest
from made_runs import COLOURS, MOST_FALSE, falling, make, noise, rate, rising

from advisor.diagnosis import JUDGES

dynamical_instability = JUDGES["dynamical_instability"]

TIMES = {
    "entropy": 3.0,
    "gradient_norm": 5.0,
    "mismatch_kl": 10.0,
    "mismatch_difference": 10.0,
    "policy_kl": 10.0,
    "clip_share": 5.0,
}

ROWS = 100
GROWN = np.clip((np.arange(ROWS) - 60) / 10, 0, 1)


def blown_up(low, high, seed=1):
    return (low + (high - low) * GROWN) * np.exp(0.1 * noise(seed, ROWS))


def wild(seed, correlation=0.0):
    """Series that wander by their own size and do not grow."""
    levels = {
        "entropy": 1.0,
        "gradient_norm": 0.3,
        "mismatch_kl": 0.02,
        "policy_kl": 0.05,
        "clip_share": 0.1,
    }
    return {
        name: mean * np.exp(0.5 * noise(10 * seed + n, ROWS, correlation))
        for n, (name, mean) in enumerate(levels.items())
    }


def test_growth_worked_out_by_hand():
    card = dynamical_instability(make(rising(ROWS), entropy=blown_up(0.3, 4.0)))
    assert card.witnesses == ("entropy 0.29 -> 4.17 from step 66",)
    assert (card.number, card.steps) == (pytest.approx(4.17 / 0.29, rel=0.01), (66, 100))


def test_one_series_warns_and_beside_a_collapse_it_fails():
    entropy = blown_up(0.3, 4.0)
    healthy = dynamical_instability(make(rising(ROWS), entropy=entropy))
    assert healthy.status == "WARNING"
    assert healthy.steps[0] == pytest.approx(66, abs=3)
    fallen = falling(ROWS, 70) + 0.02 * noise(2, ROWS)
    assert dynamical_instability(make(fallen, entropy=entropy)).status == "FAIL"
    assert dynamical_instability(make(fallen, entropy=np.full(ROWS, 0.3))).status == "PASS"


@pytest.mark.parametrize("name", TIMES)
def test_every_series_has_its_own_factor(name):
    low = 0.3
    for share, grows in ((1.5, True), (0.7, False)):
        run = make(rising(ROWS), **{name: blown_up(low, share * TIMES[name] * low)})
        assert any("from step 6" in line for line in dynamical_instability(run).witnesses) == grows


def test_the_refresh_margin():
    run = make(rising(ROWS), entropy=np.full(ROWS, 0.3))
    card = dynamical_instability(run, margin=[1.5, 2.0, 0.5])
    assert (card.status, card.number) == ("WARNING", pytest.approx(2 / 3))
    assert dynamical_instability(run, margin=[0.1, 0.2]).status == "PASS"
    assert dynamical_instability(run, margin=[0.1, np.nan]).number == 0.0
    # Without one finite draw there is no margin.
    assert dynamical_instability(run, margin=[np.nan]) == dynamical_instability(run)
    assert dynamical_instability(run, margin=[]) == dynamical_instability(run)


def test_the_damping_ratio():
    run = make(rising(ROWS), entropy=np.full(ROWS, 0.3))
    card = dynamical_instability(run, margin=[0.1, 0.2], damping=[2.0, 3.0, 0.5, np.nan])
    assert card.status == "PASS"
    assert "damping ratio of the stiffest mode 2 " in card.witnesses[-1]
    assert card.witnesses[-1].endswith("it oscillates with probability 0.33")
    stale = dynamical_instability(run, margin=[0.1, 0.2], damping=[np.nan, np.nan])
    assert "too stale for the closed form" in stale.witnesses[-1]


def test_few_effective_samples_warn():
    def card(level, **given):
        share = level * np.exp(0.05 * noise(1, ROWS))
        return dynamical_instability(make(rising(ROWS), importance_ess=share, **given))

    assert (card(0.1).status, card(0.1).number) == ("WARNING", pytest.approx(0.1, rel=0.1))
    assert "importance weights leave 0.1" in card(0.1).witnesses[0]
    assert card(0.6).status == "PASS"
    # A count tells no share.
    assert card(40.0).number is None
    # A level that noise may have moved below the limit is none.
    near = 0.29 + 0.05 * noise(2, ROWS)
    assert dynamical_instability(make(rising(ROWS), importance_ess=near)).status == "PASS"
    missing = dynamical_instability(make(rising(ROWS))).unknown
    assert any("rollout_is_eff_sample_size" in line for line in missing)


@pytest.mark.evidence
@pytest.mark.parametrize("colour", COLOURS)
def test_noise_does_not_fail(colour):
    def statuses(seed):
        reward = np.maximum(0, 0.3 + 0.1 * noise(seed, ROWS, COLOURS[colour]))
        return dynamical_instability(make(reward, **wild(seed, COLOURS[colour]))).status

    found = [statuses(seed) for seed in range(200)]
    assert found.count("FAIL") <= MOST_FALSE * 200
    assert found.count("WARNING") <= 0.05 * 200


@pytest.mark.parametrize("rows", [30, 200])
@pytest.mark.parametrize("shape", ["exponential", "last rows"])
def test_a_blow_up_without_a_level_or_at_the_end_warns(rows, shape):
    place = np.arange(rows) / rows
    grows = np.exp(20 * np.maximum(0, place - 0.6))
    high = grows if shape == "exponential" else np.where(place < 0.86, 1.0, 1000.0)
    norm = 0.3 * np.exp(0.3 * noise(5, rows))
    assert dynamical_instability(make(rising(rows), gradient_norm=norm)).status == "PASS"
    grown = dynamical_instability(make(rising(rows), gradient_norm=norm * high))
    assert (grown.status, grown.kind) == ("WARNING", "unstable")


def test_a_blow_up_in_the_same_noise_is_found():
    def is_found(seed):
        series = {name: values * (1 + 30 * GROWN) for name, values in wild(seed, 0.6).items()}
        reward = falling(ROWS, 70, 0.6, 0.02) + 0.05 * noise(seed, ROWS)
        return dynamical_instability(make(np.maximum(0, reward), **series)).status == "FAIL"

    assert rate(is_found, range(60)) >= 0.95


@pytest.mark.parametrize("name", ["kl", "kl_max"])
def test_a_spike_of_the_kl_is_named(name):
    kl = np.full(ROWS, 0.02)
    kl[41] = 6.0
    card = dynamical_instability(make(rising(ROWS), **{name: kl}))
    assert card.status == "INFO"
    assert "reached 6 at step 42" in card.headline
    # Neither a small one, nor one of many times a tenth of a nat.
    for level, high in ((0.0001, 0.5), (0.1, 6.0)):
        kl = np.full(ROWS, level)
        kl[41] = high
        assert dynamical_instability(make(rising(ROWS), **{name: kl})).status != "INFO"


@pytest.mark.parametrize(("high", "kind"), [(9.0, "left"), (2.0, "spike")])
def test_a_kl_that_rises_and_stays_is_no_spike(high, kind):
    kl = np.where(np.arange(ROWS) < 0.7 * ROWS, 0.01, high) * np.exp(0.1 * noise(3, ROWS))
    assert dynamical_instability(make(rising(ROWS), kl=kl)).kind == kind


def test_a_kl_that_no_policy_has_warns():
    for level, status in ((20.0, "PASS"), (1e30, "WARNING")):
        kl = level * np.exp(0.1 * noise(3, ROWS))
        assert dynamical_instability(make(rising(ROWS), kl=kl, entropy=kl * 0 + 1)).status == status


@pytest.mark.parametrize(("level", "status"), [(300.0, "PASS"), (2.5e9, "WARNING")])
def test_a_gradient_norm_that_no_training_has_warns(level, status):
    norm = level * np.exp(0.1 * noise(3, ROWS))
    card = dynamical_instability(make(rising(ROWS), gradient_norm=norm, entropy=norm * 0 + 1))
    assert card.status == status


def test_log_probabilities_that_differ_throughout_warn():
    for level, status in ((0.06, "PASS"), (0.4, "WARNING")):
        differ = np.full(ROWS, level)
        assert (
            dynamical_instability(make(rising(ROWS), mismatch_difference=differ)).status == status
        )
