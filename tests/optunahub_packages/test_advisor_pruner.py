"""The pruner: what has died or cannot win is stopped, what can win goes on."""

from __future__ import annotations

import numpy as np
import optuna
import pytest
from hub_packages import loaded

from advisor import InputError

AdvisorPruner = loaded("pruners/grpo_advisor").AdvisorPruner

STEPS = 100


def rising(plateau, speed=15.0, start=0.2):
    step = np.arange(1, STEPS + 1)
    return start + (plateau - start) * -np.expm1(-step / speed)


def pruned_at(curves, *, noise=0.02, **pruner):
    """Step at which each trial was pruned, or None."""
    study = optuna.create_study(direction="maximize", pruner=AdvisorPruner(steps=STEPS, **pruner))

    def objective(trial):
        rng = np.random.default_rng(trial.number)
        reward = curves[trial.number] + noise * rng.standard_normal(STEPS)
        for step, value in enumerate(reward, start=1):
            trial.report(float(value), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return float(reward[-10:].mean())

    study.optimize(objective, n_trials=len(curves))
    return [
        trial.last_step if trial.state == optuna.trial.TrialState.PRUNED else None
        for trial in study.trials
    ]


@pytest.mark.evidence
def test_what_cannot_win_is_stopped_and_what_can_goes_on():
    found = pruned_at([rising(0.8), rising(0.3), rising(0.9)])
    assert found[0] is None
    assert found[1] is not None
    assert 25 <= found[1] <= 60
    assert found[2] is None


def test_a_fall_ends_a_trial_also_the_first():
    fallen = rising(0.8)
    fallen[50:] = 0.01
    (at,) = pruned_at([fallen])
    assert at is not None
    assert 50 < at < 75


def test_nothing_is_pruned_where_less_is_better():
    study = optuna.create_study(pruner=AdvisorPruner(steps=STEPS))
    trial = study.ask()
    for step in range(1, 60):
        trial.report(0.0, step)
    assert not trial.should_prune()


def test_what_cannot_be_is_refused():
    with pytest.raises(InputError, match="no chance"):
        AdvisorPruner(steps=10, chance=2.0)
    with pytest.raises(InputError, match="from 1 to 0"):
        AdvisorPruner(steps=10, bounds=(1.0, 0.0))
