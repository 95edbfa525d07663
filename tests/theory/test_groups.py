"""Silent groups and the drift factor: enumeration, simulation, limits; docs/theory, T32 and T33."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import betaln
from theory_oracles import drift_factor

from advisor.theory import PromptDifficulty, silent_group_share

LADDER = settings(max_examples=200)
GROUPS = st.integers(2, 64)
RATES = st.floats(0.01, 0.99)
MIXES = [(0.3, 2.0), (0.5, 1.0), (0.8, 5.0), (0.05, 0.4), (0.5, 200.0)]


def enumerated_drift(group, rate, scaling, *, bessel=False):
    """Mean group gradient over all 2^G outcomes, relative to an infinite group's."""
    total = 0.0
    for outcome in itertools.product([0.0, 1.0], repeat=group):
        rewards = np.array(outcome)
        spread = rewards.std(ddof=1 if bessel else 0) if scaling == "group" else 1.0
        if spread > 0:
            advantage = (rewards - rewards.mean()) / spread
            chance = np.prod(np.where(rewards > 0, rate, 1 - rate))
            total += chance * (advantage * (rewards - rate)).mean()
    variance = rate * (1 - rate)
    return total / (np.sqrt(variance) if scaling == "group" else variance)


@pytest.mark.parametrize("group", [2, 3, 4, 8])
@pytest.mark.parametrize("rate", [0.05, 0.3, 0.5, 0.95])
@pytest.mark.parametrize(
    ("scaling", "bessel"), [("group", False), ("group", True), ("none", False)]
)
def test_drift_factor_equals_the_enumerated_mean_gradient(group, rate, scaling, bessel):
    expected = enumerated_drift(group, rate, scaling, bessel=bessel)
    got = drift_factor(group, rate, scaling=scaling, bessel=bessel)
    assert got == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rate", [0.3, 0.5, 0.95])
def test_enumeration_rejects_bessel_where_there_is_none_and_a_factor_one(rate):
    def miss(group, wrong):
        return abs(wrong - enumerated_drift(group, rate, "group"))

    assert miss(4, drift_factor(4, rate)) < 1e-12
    assert miss(4, drift_factor(4, rate, bessel=True)) > 0.04
    assert miss(4, 1.0) > 0.1


@pytest.mark.parametrize(
    ("rate", "group", "factor"),
    [(0.5, 4, 0.81), (0.5, 16, 0.97), (0.95, 4, 0.37), (0.95, 16, 0.71)],
)
def test_drift_factors_of_the_theory(rate, group, factor):
    assert round(drift_factor(group, rate), 2) == factor
    assert drift_factor(group, rate) == pytest.approx(drift_factor(group, 1 - rate))
    corrected = drift_factor(group, rate, bessel=True)
    assert corrected == pytest.approx(np.sqrt((group - 1) / group) * drift_factor(group, rate))


def test_mean_normalised_group_gradient_is_the_mean_group_spread():
    rng = np.random.default_rng(6)
    rewards = (rng.random((200_000, 6)) < 0.3).astype(float)
    spread = rewards.std(axis=1, keepdims=True)
    advantage = (rewards - rewards.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1)
    expected = drift_factor(6, 0.3) * np.sqrt(0.21)
    assert (advantage * (rewards - 0.3)).mean() == pytest.approx(expected, abs=2e-3)
    assert spread.mean() == pytest.approx(expected, abs=2e-3)


def test_batch_scaling_leaves_only_the_loss_to_centring():
    rng = np.random.default_rng(8)
    mix = PromptDifficulty(0.4, 3.0)
    for group in (2, 4, 16):
        rates = rng.beta(*mix.shapes, size=(200_000, 1))
        rewards = (rng.random((200_000, group)) < rates).astype(float)
        advantage = (rewards - rewards.mean(axis=1, keepdims=True)) / rewards.std()
        drift = (advantage * (rewards - rates)).mean()
        infinite = 0.4 * 0.6 * 3 / 4 / np.sqrt(0.4 * 0.6)  # E[p (1 - p)] of the mix
        factor = drift_factor(group, mix, scaling="batch")
        assert factor == (group - 1) / group
        assert drift / infinite == pytest.approx(factor, rel=0.02)


# Prompts of unequal difficulty -----------------------------------------------------------------


@pytest.mark.parametrize(("mean", "concentration"), MIXES)
@pytest.mark.parametrize("group", [2, 4, 16, 64])
def test_mixture_values_equal_scipy(mean, concentration, group):
    mix = PromptDifficulty(mean, concentration)
    right = np.arange(group + 1)
    chances = stats.betabinom(group, *mix.shapes).pmf(right)
    assert silent_group_share(group, mix) == pytest.approx(chances[0] + chances[-1], rel=1e-9)
    a, b = mix.shapes
    full = np.exp(betaln(a + 0.5, b + 0.5) - betaln(a, b))  # E[sqrt(p (1 - p))]
    spread = chances @ np.sqrt(right * (group - right)) / group
    assert drift_factor(group, mix) == pytest.approx(spread / full, rel=1e-10)


@pytest.mark.parametrize(("mean", "concentration"), MIXES)
def test_mixture_values_equal_simulation(mean, concentration):
    rng = np.random.default_rng(9)
    mix = PromptDifficulty(mean, concentration)
    rates = rng.beta(*mix.shapes, size=400_000)
    share = rng.binomial(4, rates) / 4
    assert silent_group_share(4, mix) == pytest.approx(np.isin(share, [0, 1]).mean(), abs=4e-3)
    drift = np.sqrt(share * (1 - share)).mean() / np.sqrt(rates * (1 - rates)).mean()
    assert drift_factor(4, mix) == pytest.approx(drift, rel=0.02)


@LADDER
@given(mean=RATES, log_c=st.floats(-3, 6), group=GROUPS)
def test_mean_pass_rate_gives_only_a_lower_bound_of_the_silent_share(mean, log_c, group):
    at_mean = silent_group_share(group, mean)
    assert at_mean == pytest.approx(mean**group + (1 - mean) ** group)
    assert at_mean * (1 - 1e-9) <= silent_group_share(group, PromptDifficulty(mean, 10**log_c)) <= 1


@LADDER
@given(mean=RATES, log_c=st.floats(7, 15), group=GROUPS)
def test_equal_prompts_are_the_limit_of_a_large_concentration(mean, log_c, group):
    mix = PromptDifficulty(mean, 10**log_c)
    near = group**2 * 10**-log_c / (mean * (1 - mean)) + 1e-11
    assert drift_factor(group, mix) == pytest.approx(drift_factor(group, mean), rel=near)
    assert silent_group_share(group, mix) == pytest.approx(
        silent_group_share(group, mean), rel=near
    )


@LADDER
@given(mean=RATES, group=GROUPS)
def test_all_right_or_all_wrong_prompts_are_the_limit_of_a_small_concentration(mean, group):
    assert silent_group_share(group, PromptDifficulty(mean, 1e-9)) == pytest.approx(1, abs=1e-7)


@LADDER
@given(mean=RATES, log_c=st.floats(-2, 4), group=st.integers(2, 63))
def test_larger_groups_drift_more_and_are_silent_less(mean, log_c, group):
    for difficulty in (mean, PromptDifficulty(mean, 10**log_c)):
        drifts = [drift_factor(g, difficulty) for g in (group, group + 1)]
        silent = [silent_group_share(g, difficulty) for g in (group, group + 1)]
        assert 0 < drifts[0] < drifts[1] < 1
        assert 1 >= silent[0] > silent[1] > 0


@pytest.mark.parametrize("difficulty", [0.5, 0.1, PromptDifficulty(0.3, 2.0)], ids=str)
def test_drift_factor_tends_to_one_in_large_groups(difficulty):
    for scaling in ("group", "batch", "none"):
        assert drift_factor(1000, difficulty, scaling=scaling) == pytest.approx(1, abs=0.01)


def test_group_of_one_is_silent_and_has_no_drift():
    assert silent_group_share(1, 0.3) == pytest.approx(1)
    with pytest.raises(ValueError, match="at least 2"):
        drift_factor(1, 0.5)
