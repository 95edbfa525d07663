"""The margin of a run that is there: that of the advice for the same settings."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_runs import Plan, made_up_posterior

from advisor.diagnosis import diagnose
from advisor.forecast import Forecaster, Target, refresh_margin, survival

STIFF = {"log_slope": 0.0, "uncorrected_log_odds": 20.0}


def a_run(**plan):
    return Plan(**plan).run(np.full(30, 0.5))


def test_margin_is_that_of_the_advice():
    posterior, run = made_up_posterior(), a_run(minibatches=4)
    margin = refresh_margin(posterior, run).stiffness
    size = posterior.meta.group_parameters[posterior.meta.groups.index((run.task, run.model))]
    forecaster = Forecaster(posterior, Target(run.task, run.model, size))
    left = survival.stiffness_left(forecaster, run.hyperparameters.completed())
    contracts = survival.refresh_contracts(forecaster, left)
    assert (margin < 1).tolist() == (contracts == 1).tolist()


def test_unknown_models_and_settings_have_none():
    posterior, run = made_up_posterior(), a_run()
    for nobody in ({"task": "another"}, {"model": "another", "parameters": None}):
        assert refresh_margin(posterior, run.with_updates(**nobody)) is None
    unknown = run.hyperparameters.model_copy(update={"group_size": None})
    assert refresh_margin(posterior, run.with_updates(hyperparameters=unknown)) is None


@pytest.mark.parametrize("minibatches", [1, 64])
def test_card_tells_what_diverges(minibatches):
    run = a_run(learning_rate=3e-3, minibatches=minibatches, ratio=False)
    margin = refresh_margin(made_up_posterior(moved=STIFF), run).stiffness
    card = diagnose(run, margin).card("dynamical_instability")
    assert card.unit == "P(refresh map diverges)"
    assert card.number == pytest.approx((margin >= 1).mean())
    assert (card.status == "WARNING") == (minibatches == 64)


def test_staleness_takes_damping_away_and_then_the_closed_form_ends():
    uncorrected = {"uncorrected_log_odds": 20.0}
    fresh, stale = (
        refresh_margin(
            made_up_posterior(moved=uncorrected), a_run(minibatches=k, ratio=False)
        ).damping
        for k in (1, 16)
    )
    known = np.isfinite(stale)
    assert np.isfinite(fresh).all()
    assert 0 < known.sum() < known.size
    assert (stale[known] < fresh[known]).all()
    card = diagnose(a_run(), [0.1], stale).card("dynamical_instability")
    assert any(line.startswith("damping ratio of the stiffest mode") for line in card.witnesses)
