"""Two lines for other loops."""

from __future__ import annotations

import numpy as np
import pytest
from watched import PLAN

import advisor
from advisor.errors import InputError
from advisor.monitoring import Watch, watch_report


@pytest.mark.evidence
def test_rows_become_forecasts(posterior, rows):
    watch = advisor.watch(posterior, PLAN.settings, target_reward=0.7)
    found = [
        watch.log(step, reward=reward, learning_rate=3e-4)
        for step, reward in enumerate(rows[:40], start=1)
    ]
    assert found[:2] == [None, None]
    assert all(found[2:])
    same = watch_report(
        Watch(posterior, target_reward=0.7),
        PLAN.run(rows[:40], series={"reward": rows[:40], "learning_rate": np.full(40, 3e-4)}),
    )
    assert found[-1].update.final == same.update.final
    assert found[-1].decision.action == same.decision.action


@pytest.mark.evidence
def test_a_step_that_goes_back_starts_a_new_branch(posterior, rows):
    watch = advisor.watch(posterior, PLAN.settings.model_dump())
    for step in range(1, 21):
        watch.log(step, reward=rows[step])
    watch.log(11, reward=0.3)
    assert watch.run().step.tolist() == list(range(1, 12))
    assert watch.run().reward[-1] == 0.3


def test_a_forecast_every_so_many_rows(posterior, rows):
    watch = advisor.watch(posterior, PLAN.settings, every=5)
    found = [watch.log(step, reward=rows[step]) is not None for step in range(1, 21)]
    assert [step for step, is_there in enumerate(found, start=1) if is_there] == [5, 10, 15, 20]


def test_bad_requests(posterior):
    watch = advisor.watch(posterior, PLAN.settings)
    with pytest.raises(InputError, match="no series 'rewrd'"):
        watch.log(1, rewrd=0.3)
    with pytest.raises(InputError, match="every"):
        advisor.watch(posterior, PLAN.settings, every=0)
    with pytest.raises(InputError, match="no posterior"):
        advisor.watch("nowhere", PLAN.settings)


def test_rows_without_a_reward_are_kept_for_later(posterior, rows):
    watch = advisor.watch(posterior, PLAN.settings)
    assert watch.log(1, entropy=0.5) is None
    for step in range(2, 6):
        watch.log(step, reward=rows[step])
    assert watch.run().step.tolist() == [2, 3, 4, 5]


def test_numbers_that_are_not_finite_reach_the_cards(posterior, rows):
    watch = advisor.watch(posterior, PLAN.settings)
    for step in range(1, 21):
        watch.take(step, reward=rows[step], gradient_norm=0.2 if step < 15 else float("nan"))
    run = watch.run()
    assert run.not_finite["gradient_norm"].tolist() == list(range(15, 21))
    assert (
        "NaN, infinite or missing" in advisor.diagnose(run).card("dynamical_instability").headline
    )
