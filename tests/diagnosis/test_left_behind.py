"""Scores beside the train reward: which there are, and which stay behind while it rises."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from made_runs import make, noise, rate, rising

from advisor import inspect
from advisor.diagnosis import JUDGES
from advisor.runs import keys

reward_hacking = JUDGES["reward_hacking"]

ROWS = 120
STEP = np.arange(1.0, ROWS + 1)
TRAIN = rising(ROWS, 0.2, 0.9) + 0.03 * noise(1, ROWS)
FLAT = np.clip(0.02 + 0.01 * noise(2, ROWS), 0, 1)
FOLLOWS = rising(ROWS, 0.1, 0.8) + 0.03 * noise(3, ROWS)


def with_score(values, name="correctness_true", train=TRAIN):
    run = make(train)
    return run.with_updates(scores={name: (run.step, np.asarray(values))})


@pytest.mark.parametrize("name", ["correctness_true", "ndcg_at_10", "exact_match", "gold/accuracy"])
def test_a_truth_that_stays_at_zero_under_a_rising_reward_warns(name):
    card = reward_hacking(with_score(FLAT, name))
    assert card.status == "WARNING"
    assert f"{name} did not follow" in card.headline
    assert reward_hacking(with_score(FOLLOWS, name)).status == "PASS"


@pytest.mark.parametrize(("is_one_of_several", "status"), [(True, "INFO"), (False, "WARNING")])
def test_of_several_benchmarks_the_mean_is_judged(is_one_of_several, status):
    small = FLAT[::10]
    scores = {"val/math/acc": (STEP[::10], FOLLOWS[::10]), "val/few/acc": (STEP[::10], small)}
    mean = (FOLLOWS[::10] + small) / 2
    read = {"eval_reward": "val/math/acc, val/few/acc"} if is_one_of_several else {}
    run = make(TRAIN).with_updates(
        scores=scores, eval_step=STEP[::10], eval_reward=mean, keys_read=read
    )
    card = reward_hacking(run)
    assert card.status == status
    assert "val/few/acc did not follow" in card.headline
    assert "val/math/acc" not in card.headline


def test_a_flat_train_reward_leaves_nothing_behind():
    level = 0.5 + 0.03 * noise(4, ROWS)
    assert reward_hacking(with_score(FLAT, train=level)).status == "PASS"


def test_a_score_at_its_ceiling_cannot_follow():
    assert reward_hacking(with_score(0.97 + 0.01 * noise(5, ROWS))).status == "PASS"


def test_the_form_of_an_answer_may_stay():
    assert reward_hacking(with_score(FLAT, "format_accuracy")).status == "PASS"


def test_what_a_name_does_not_tell_is_asked_and_never_passed():
    card = reward_hacking(with_score(FLAT, "quality"))
    assert card.status == "INFO"
    assert "quality did not follow" in card.headline
    assert any("'quality'" in line and "eval_reward" in line for line in card.unknown)


def test_a_gap_that_grows_with_the_reward_says_that_nothing_was_gained():
    card = reward_hacking(with_score(TRAIN - FLAT, "g_minus_f"))
    assert card.status == "WARNING"
    assert "train reward less g_minus_f did not follow" in card.headline
    assert reward_hacking(with_score(TRAIN - FOLLOWS, "g_minus_f")).status == "PASS"


def test_a_part_of_penalties_that_falls_is_told():
    # -2 to -4.5: a floor of 0 would hide it.
    part = np.interp(STEP, [1, 40, 80, ROWS], [-2, -2, -4.5, -4.5]) + 0.05 * noise(6, ROWS)
    form = np.interp(STEP, [1, 40, 80, ROWS], [0, 0, 6, 6]) + 0.05 * noise(7, ROWS)
    card = reward_hacking(make(part + form, parts={"check_answer": part, "format": form}))
    assert card.status == "FAIL"
    assert "check_answer fell from -1.94 to -4.5" in card.headline


def test_three_evaluations_at_zero_are_enough_under_a_reward_that_rose_far():
    card = reward_hacking(make(TRAIN, evals=np.array([0.02, 0.0, 0.01]), every=40))
    assert card.status == "WARNING"
    assert reward_hacking(make(TRAIN, evals=np.array([0.1, 0.4, 0.6]), every=40)).status in (
        "NOT APPLICABLE",
        "PASS",
    )


def test_a_column_that_is_the_reward_again_is_nothing_beside_it():
    run = with_score(2 * TRAIN + 1, "reward_mean")
    assert reward_hacking(run).status == "NOT APPLICABLE"


@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_followers_in_noise_are_seldom_left_behind(correlation):
    def is_behind(seed):
        train = rising(ROWS, 0.3, 0.7) + 0.05 * noise(seed, ROWS, correlation)
        truth = rising(ROWS, 0.2, 0.5) + 0.05 * noise(seed + 1000, ROWS, correlation)
        return "did not follow" in reward_hacking(with_score(truth, train=train)).headline

    assert rate(is_behind) <= 0.005


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("correctness_rate", True),
        ("env/true_reward", True),
        ("ndcg@10", True),
        ("g_minus_f", True),
        ("reward_std", False),
        ("num_correct", False),
        ("completion_length", False),
        ("timing_s/reward", False),
        ("critic/rewards/mean", False),
    ],
)
def test_names_of_scores(key, expected):
    assert keys.is_like_a_score(key) == expected


def test_scores_are_read_from_a_log_beside_its_reward(tmp_path):
    rows = [
        {"step": n, "mean_reward": 0.2 + 0.005 * n, "correctness_true": 0.02, "lr": 1e-3, "kl": 0.1}
        | ({"eval_ndcg_hidden": 0.1} if n % 10 == 0 else {})
        for n in range(1, 101)
    ]
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = inspect(path).runs[0]
    assert run.scores["correctness_true"].step.size == 100
    assert run.scores["eval_ndcg_hidden"].step.tolist() == [10.0 * n for n in range(1, 11)]
    assert reward_hacking(run).status == "WARNING"
    assert run.until(50).scores["eval_ndcg_hidden"].values.size == 5


def test_trained_runs_that_were_paid_for_a_stand_in():
    path = Path(__file__).parents[2] / "case_studies" / "diagnose" / "hacked.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        runs = [json.loads(line) for line in lines]
    assert sum(one["is_hacked"] for one in runs) == 9
    for one in runs:
        meant = make(one["reward"], evals=one["eval"])
        meant = meant.with_updates(eval_step=np.array(one["eval_step"], dtype=float))
        told = reward_hacking(meant)
        assert (told.status in ("WARNING", "FAIL")) == one["is_hacked"], (one["paid"], told)
