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


@LADDER
@given(mean=RATES, log_c=st.floats(-3, 6), group=GROUPS)
def test_mean_pass_rate_gives_only_a_lower_bound_of_the_silent_share(mean, log_c, group):
    at_mean = silent_group_share(group, mean)
    assert at_mean == pytest.approx(mean**group + (1 - mean) ** group)
    assert at_mean * (1 - 1e-9) <= silent_group_share(group, PromptDifficulty(mean, 10**log_c)) <= 1


def test_group_of_one_is_silent_and_has_no_drift():
    assert silent_group_share(1, 0.3) == pytest.approx(1)
    with pytest.raises(ValueError, match="at least 2"):
        drift_factor(1, 0.5)
