"""Advantage degeneracy: silent groups, and whether their prompts are solved or hopeless."""

from __future__ import annotations

import numpy as np
import pytest
from made_runs import make, noise, rising

from advisor.diagnosis import JUDGES
from advisor.diagnosis.sampled import expected_silent

advantage_degeneracy = JUDGES["advantage_degeneracy"]

ROWS = 60


def judge(silent, reward, **given_):
    return advantage_degeneracy(
        make(np.full(ROWS, reward), silent_group_share=np.full(ROWS, silent), **given_)
    )


@pytest.mark.parametrize(
    ("silent", "reward", "status"),
    [
        (0.99, 0.02, "FAIL"),
        (0.9, 0.02, "WARNING"),
        (0.99, 0.5, "WARNING"),
        (0.7, 0.5, "WARNING"),
        (0.99, 0.97, "INFO"),
        (0.3, 0.97, "PASS"),
        (0.3, 0.5, "PASS"),
        (0.99, 7.0, "WARNING"),  # no range known: neither solved nor hopeless
    ],
)
def test_by_share_and_reward(silent, reward, status):
    card = judge(silent, reward)
    assert card.status == status
    assert card.number == pytest.approx(silent)
    assert 0 <= card.interval[0] <= card.interval[1] <= 1
    # Where next to no reward is left, silent groups are all wrong.
    assert bool(card.unknown) == (status != "FAIL")


def test_a_known_range_counts():
    tenfold = {"reward_floor": 0.0, "reward_ceiling": 10.0}
    assert judge(0.99, 0.5, **tenfold).status == "FAIL"
    assert judge(0.99, 9.5, **tenfold).status == "INFO"
    minus = {"reward_floor": -1.0, "reward_ceiling": 1.0}
    assert judge(0.99, -0.95, **minus).status == "FAIL"
    # Rewards outside their range: it is not believed.
    assert judge(0.99, -2.0, **minus).status == "WARNING"


def test_rows_without_spread_stand_in_for_the_share():
    rewards = np.abs(0.01 * noise(1, ROWS))
    card = advantage_degeneracy(make(rewards, reward_std_within_group=np.zeros(ROWS)))
    assert card.status == "FAIL"
    assert card.unit == "share of rows without any spread"
    assert advantage_degeneracy(make(rewards)).status == "NOT APPLICABLE"


@pytest.mark.parametrize("value", [0.0, -1.0, 0.1, 7.0])
def test_rewards_that_are_all_one_number_hold_no_signal(value):
    for spread in ({}, {"reward_std_within_group": np.zeros(ROWS)}):
        card = advantage_degeneracy(make(np.full(ROWS, value), **spread))
        assert card.status == "FAIL"
        assert f"Every reward is {value:.3g} in all {ROWS} rows" in card.headline
        assert "reward function, the parser" in card.change
    assert advantage_degeneracy(make(np.full(6, value))).status == "WARNING"  # young
    # One completion that differs, or groups that do, and it is another matter.
    almost = np.full(ROWS, value)
    almost[7] += 0.01
    assert advantage_degeneracy(make(almost)).status == "NOT APPLICABLE"
    spread = np.full(ROWS, 0.2)
    both = make(np.full(ROWS, value), reward_std_within_group=spread)
    assert "Every reward" not in advantage_degeneracy(both).headline


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.5, 2.0), (8.0, 3.0)])
@pytest.mark.parametrize("group", [4, 16])
def test_expected_share_is_that_of_the_mix(a, b, group):
    rng = np.random.default_rng([9, group])
    chance = rng.beta(a, b, 400_000)
    wanted = np.mean(chance**group + (1 - chance) ** group)
    # What trainers log: the deviation of each group's rewards, silent groups included.
    right = rng.binomial(group, chance) / group
    mean, within = chance.mean(), np.mean(np.sqrt(right * (1 - right) * group / (group - 1)))
    run = make(np.full(ROWS, mean), reward_std_within_group=np.full(ROWS, within), group_size=group)
    assert expected_silent(run) == pytest.approx(wanted, rel=0.02)
    # In other units it is the same share.
    other = make(
        np.full(ROWS, 5 * mean - 1),
        reward_std_within_group=np.full(ROWS, 5 * within),
        group_size=group,
        reward_floor=-1.0,
        reward_ceiling=4.0,
    )
    assert expected_silent(other) == pytest.approx(wanted, rel=0.02)


def test_groups_that_teach_are_counted():
    card = advantage_degeneracy(
        make(
            rising(ROWS),
            silent_group_share=np.full(ROWS, 0.75),
            prompts_per_step=32,
            all_right_share=np.full(ROWS, 0.5),
        )
    )
    assert "8.0 of 32 groups a step teach" in card.witnesses
    assert "all right 0.50" in card.witnesses
    assert card.unknown == ()
