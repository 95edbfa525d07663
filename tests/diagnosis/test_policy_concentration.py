"""Policy concentration: how much entropy is left, and whether the reward still moves."""

from __future__ import annotations

import numpy as np
import pytest
from made_runs import COLOURS, MOST_FALSE, make, noise, rate

from advisor.diagnosis import JUDGES

policy_concentration = JUDGES["policy_concentration"]


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


@pytest.mark.parametrize(
    ("start", "end", "status"), [(6.0, 1.05, "FAIL"), (6.0, 1.4, "WARNING"), (6.0, 4.0, "PASS")]
)
def test_distinct_answers_speak_without_entropy(start, end, status):
    answers = np.linspace(start, end, 40).tolist() + [end] * 60 + 0.02 * noise(5, ROWS)
    card = policy_concentration(make(STALLED, distinct_answers=answers))
    assert card.status == status
    assert f"Distinct answers per group went from {start:.2g}"[:36] in card.headline
    assert card.number == pytest.approx((end - 1) / (start - 1), abs=0.08)
    assert card.unknown == ()


def test_of_two_series_the_one_that_lost_more_is_judged():
    few = np.where(np.arange(ROWS) < 40, 6.0, 1.02) + 0.005 * noise(5, ROWS)
    card = policy_concentration(make(STALLED, entropy=entropy(0.5), distinct_answers=few))
    assert card.status == "FAIL"
    assert card.headline.startswith("Distinct answers")
    assert card.witnesses[0].startswith("Entropy went from")
    many = policy_concentration(
        make(STALLED, entropy=entropy(0.02), distinct_answers=6 + 0.1 * noise(5, ROWS))
    )
    assert many.headline.startswith("Entropy")
    assert many.witnesses[0].startswith("Distinct answers")


def test_shares_of_distinct_answers_know_the_group():
    share = np.where(np.arange(ROWS) < 40, 0.8, 0.13) + 0.002 * noise(5, ROWS)
    assert policy_concentration(make(STALLED, distinct_answers=share)).number > 0.1
    known = policy_concentration(make(STALLED, distinct_answers=share, group_size=8))
    assert known.number == pytest.approx(0.005 / 0.675, abs=0.005)
    assert known.status == "FAIL"
    # All answers of a group alike throughout: nothing is there that could fall.
    alike = make(STALLED, distinct_answers=np.full(ROWS, 0.125), group_size=8)
    assert policy_concentration(alike).status == "NOT APPLICABLE"
