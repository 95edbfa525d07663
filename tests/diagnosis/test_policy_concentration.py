"""Policy concentration: how much entropy is left, and whether the reward still moves."""

from __future__ import annotations

import numpy as np
import pytest
from made_runs import COLOURS, MOST_FALSE, make, noise, rate

from advisor.diagnosis.policy_concentration import policy_concentration

ROWS = 100
STALLED = np.full(ROWS, 0.4) + 0.02 * noise(1, ROWS)


def entropy(left, seed=2):
    """One nat at first, this much from the middle on."""
    return np.where(np.arange(ROWS) < 40, 1.0, left) * np.exp(0.05 * noise(seed, ROWS))


@pytest.mark.parametrize(
    ("left", "status"), [(0.02, "FAIL"), (0.08, "WARNING"), (0.15, "INFO"), (0.5, "PASS")]
)
def test_by_what_is_left(left, status):
    card = policy_concentration(make(STALLED, entropy=entropy(left)))
    assert card.status == status
    assert card.number == pytest.approx(left, rel=0.1)
    assert card.interval[0] <= card.number <= card.interval[1]
    if left < 0.1:
        assert card.steps == (pytest.approx(40, abs=4), 100)


def test_a_reward_that_rises_or_is_solved_does_not_fail():
    gone = entropy(0.02)
    assert policy_concentration(make(np.linspace(0, 0.8, ROWS), entropy=gone)).status == "WARNING"
    assert policy_concentration(make(STALLED + 0.55, entropy=gone)).status == "INFO"
    # Solved is a share of the range where that is known.
    tenfold = {"reward_floor": 0.0, "reward_ceiling": 10.0}
    assert policy_concentration(make(STALLED, entropy=gone, **tenfold)).status == "FAIL"
    assert policy_concentration(make(10 * STALLED + 5.5, entropy=gone, **tenfold)).status == "INFO"


def test_the_law_is_told_where_it_fits():
    values = np.linspace(1.0, 0.2, ROWS)
    card = policy_concentration(make(1.0 - 0.3 * np.exp(values), entropy=values))
    assert card.witnesses[0].startswith("entropy law: reward at zero entropy 0.7")
    assert policy_concentration(make(noise(3, ROWS), entropy=values)).witnesses == ()


@pytest.mark.parametrize("values", [-np.ones(ROWS), np.linspace(-0.1, -0.9, ROWS), np.zeros(ROWS)])
def test_a_negative_entropy_is_none(values):
    # A loss term with its sign turned falls from -.1 to -.9: nothing is lost.
    card = policy_concentration(make(STALLED, entropy=values))
    assert card.status == "NOT APPLICABLE"
    assert "no entropy" in card.headline


def test_no_entropy():
    assert policy_concentration(make(STALLED)).status == "NOT APPLICABLE"
    assert policy_concentration(make(STALLED, entropy=np.full(ROWS, np.nan))).status == (
        "NOT APPLICABLE"
    )


@pytest.mark.parametrize("colour", COLOURS)
def test_noise_does_not_fail(colour):
    def fails(seed):
        wild = np.exp(noise(seed, ROWS, COLOURS[colour]))
        return policy_concentration(make(STALLED, entropy=wild)).status == "FAIL"

    assert rate(fails) <= MOST_FALSE


def test_a_loss_in_the_same_noise_is_found():
    def fails(seed):
        wild = np.where(np.arange(ROWS) < 40, 1.0, 0.01) * np.exp(noise(seed, ROWS))
        return policy_concentration(make(STALLED, entropy=wild)).status == "FAIL"

    assert rate(fails, range(60)) >= 0.95
