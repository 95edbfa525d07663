"""Draws of a preset in the form of a posterior: the preset's own numbers, whatever was logged."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_runs import Plan, cohort_of_plans

from advisor.forecast import Forecaster, Target
from advisor.model import equations, load_priors, prior_posterior

DRAWS = 4000
LEVELS = ("plateau_loss.level", "hazard.level")
"""Kept at the reference, where what is learned per step moves them."""


@pytest.fixture(scope="module")
def drawn():
    plans = [Plan(1e-4), Plan(3e-4, model="tiny-m", parameters=4e5)]
    return prior_posterior(cohort_of_plans(plans), load_priors("small_models"), draws=DRAWS)


def test_draws_are_those_of_the_preset(drawn):
    priors = drawn.meta.placed_priors
    for name, values in drawn.draws.items():
        entry = getattr(priors, name.replace(".", "_"), None)
        if entry is None or name in LEVELS or not hasattr(entry, "mean"):
            continue
        own = values.reshape(DRAWS, -1)[:, 0]
        assert own.mean() == pytest.approx(entry.mean, abs=5 * entry.sd / DRAWS**0.5), name
        assert own.std() == pytest.approx(entry.sd, rel=0.08), name


def test_levels_follow_from_how_fast_the_task_is_learned(drawn):
    stiffness = equations.task_log_stiffness(drawn.flat("headroom_logit"), drawn.flat("log_slope"))
    loss = drawn.flat("plateau_loss.level")
    assert np.corrcoef(stiffness, loss)[0, 1] > 0.3


def test_forecasts_widen_with_the_learning_rate(drawn):
    target = Target("sort", "tiny-m", 4e5)
    forecaster = Forecaster(drawn, target)
    settings = drawn.meta.runs[1].settings.planned_over(200)
    gentle, hot = (
        forecaster.survival(settings.model_copy(update={"learning_rate": rate}), 200).mean()
        for rate in (1e-4, 1e-2)
    )
    assert gentle > 0.9 > hot
