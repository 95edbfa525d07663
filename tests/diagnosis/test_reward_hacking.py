"""Reward hacking: what is meant falls while the train reward does not."""

from __future__ import annotations

import numpy as np
import pytest
from made_runs import COLOURS, MOST_FALSE, falling, make, noise, rate, rising

from advisor.diagnosis import JUDGES

reward_hacking = JUDGES["reward_hacking"]


TRAIN = rising(120, 0.3, 0.9) + 0.02 * noise(1, 120)


def hacked(rows=120, evaluations=12, size=0.03, seed=2, **given):
    """Train reward rises, held-out reward falls after half of the run."""
    train = rising(rows, 0.3, 0.9) + size * noise(seed, rows)
    held_out = falling(evaluations, evaluations // 2, 0.7, 0.2) + size * noise(seed, evaluations)
    return make(train, evals=held_out, every=rows // evaluations, **given)


def test_a_falling_held_out_reward_fails():
    card = reward_hacking(hacked())
    assert card.status == "FAIL"
    assert card.steps == (70, 120)
    assert "held-out reward fell from 0.7" in card.headline
    assert "kl coefficient" in card.change


@pytest.mark.parametrize("evaluations", [9, 12, 19, 20, 40])
def test_it_is_found_with_few_evaluations_and_with_many(evaluations):
    found = [reward_hacking(hacked(120, evaluations, seed=s)).status for s in range(30)]
    assert sum(status in ("WARNING", "FAIL") for status in found) >= 28
    assert found.count("FAIL") >= 24


def test_a_small_loss_warns_and_a_smaller_one_only_where_the_train_reward_rose():
    level = np.full(120, 0.7) + 0.02 * noise(1, 120)

    def judged(after, train=TRAIN):
        held_out = falling(30, 15, 0.7, after) + 0.01 * noise(2, 30)
        return reward_hacking(make(train, evals=held_out, every=4))

    assert [judged(after).status for after in (0.2, 0.55, 0.66)] == ["FAIL", "WARNING", "WARNING"]
    assert "fell" in judged(0.55).headline
    assert "did not follow" in judged(0.66).headline
    assert judged(0.66, level).status == "PASS"


def test_without_train_rewards_beside_them_nothing_is_said():
    # Evaluations may fall as they like where nobody knows what the train reward did.
    held_out = falling(12, 6) + 0.01 * noise(3, 12)
    assert reward_hacking(make(np.full(120, np.nan), evals=held_out)).status == "PASS"


def test_parts_of_the_reward_part():
    correct, tags = falling(120, 60, 0.6, 0.1), np.linspace(0, 3, 120)
    noisy = {name: v + 0.02 * noise(4, 120) for name, v in (("correct", correct), ("format", tags))}
    total = noisy["correct"] + noisy["format"]
    card = reward_hacking(make(total, parts=noisy))
    assert card.status == "FAIL"
    assert "correct fell" in card.headline
    # The form of an answer is not what is meant.
    swapped = {"style": noisy["correct"], "format": noisy["format"]}
    assert reward_hacking(make(total, parts=swapped)).status == "WARNING"
    named = {"correct_format": noisy["correct"], "format": noisy["format"]}
    assert reward_hacking(make(total, parts=named)).status == "WARNING"
    healthy = {"correct": rising(120), "format": tags}
    assert reward_hacking(make(rising(120) + tags, parts=healthy)).status == "PASS"


def test_what_never_moves_is_stuck():
    parts = {"correct": np.abs(0.001 * noise(1, 60)), "format": rising(60, 0.0, 1.0)}
    card = reward_hacking(make(parts["format"] + 0.01 * noise(2, 60), parts=parts))
    assert card.status == "WARNING"
    assert "correct never moved" in card.headline


def test_a_loss_is_counted_from_the_floor():
    assert reward_hacking(hacked(reward_floor=-2.0)).status == "WARNING"  # 0.5 of 2.7
    moved = hacked()
    moved = make(moved.reward - 5, evals=moved.eval_reward - 5, reward_floor=-5.0)
    assert reward_hacking(moved).status == "FAIL"


@pytest.mark.evidence
@pytest.mark.parametrize("evaluations", [6, 12, 30])
@pytest.mark.parametrize("colour", COLOURS)
def test_noise_is_no_hacking(colour, evaluations):
    def fails(seed):
        drawn = [
            noise(1000 * n + seed, rows, COLOURS[colour])
            for n, rows in enumerate((120, evaluations, 120, 120))
        ]
        train, held_out, one, other = (np.maximum(0, 0.3 + 0.1 * values) for values in drawn)
        parts = {"correct": one, "format": other}
        run = make(train, evals=held_out, every=120 // evaluations, parts=parts)
        return reward_hacking(run).status == "FAIL"

    assert rate(fails) <= MOST_FALSE


def test_three_values_that_agree_by_chance_are_no_proof():
    # Their own spread is nothing; that of all evaluations is.
    held_out = np.array([0.3, 0.5, 0.4, 0.4, 0.4, 0.5, 0.3, 0.5, 0.3, 0.2, 0.2, 0.2])
    assert reward_hacking(make(TRAIN, evals=held_out)).status != "FAIL"
