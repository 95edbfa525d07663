"""A run is known again from any part of its log, and taken for no other."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_runs import Plan, rising


def noisy(seed=0, plan=None, rows=100):
    noise = 0.05 * np.random.default_rng(seed).standard_normal(rows)
    return (plan or Plan()).run(rising(rows) + noise)


@pytest.mark.parametrize("share", [0.04, 0.1, 0.5, 0.99])
def test_part_of_a_run_is_known_again(share):
    run = noisy()
    assert len(run.fingerprint) == 64
    assert run.first_part(share).fingerprint == run.fingerprint


def test_what_a_trainer_prints_is_known_again():
    run = noisy()
    printed = run.with_updates(series={"reward": np.round(run.reward, 4)})
    assert printed.fingerprint == run.fingerprint


def test_names_and_settings_that_a_user_adds_do_not_count():
    run = noisy()
    other = run.with_updates(
        id="x", path="y", task="z", model="w", parameters=7e9, series={**run.series, "kl": run.step}
    )
    assert other.fingerprint == run.fingerprint


def test_other_runs_are_other_runs():
    runs = [
        *(noisy(seed) for seed in range(20)),
        noisy(plan=Plan(learning_rate=1e-3)),
        noisy(plan=Plan(group_size=16)),
        noisy(plan=Plan(logging=5)),
    ]
    assert len({run.fingerprint for run in runs}) == len(runs)


@pytest.mark.parametrize("rewards", [np.zeros(100), np.tile([0.0, 0.5, 1.0], 30), np.ones(3)])
def test_a_run_that_others_may_equal_by_chance_has_none(rewards):
    assert Plan().run(rewards).fingerprint == ""
