"""The margin of a run that is there: that of the advice for the same settings."""

from __future__ import annotations

import numpy as np
import pytest
from synthetic import Plan, made_up

from advisor.advice.margin import refresh_margin
from advisor.advice.stability import refresh_contracts
from advisor.diagnosis import diagnose
from advisor.posterior import Forecaster, Target

STIFF = {"log_slope": 0.0, "uncorrected_log_odds": 20.0}


def a_run(**plan):
    return Plan(**plan).run(np.full(30, 0.5))


def test_margin_is_that_of_the_advice():
    posterior, run = made_up(), a_run(minibatches=4)
    margin = refresh_margin(posterior, run)
    size = posterior.meta.group_parameters[posterior.meta.groups.index((run.task, run.model))]
    forecaster = Forecaster(posterior, Target(run.task, run.model, size))
    contracts = refresh_contracts(forecaster, run.hyperparameters.completed()[0])
    assert (margin < 1).tolist() == (contracts == 1).tolist()


def test_unknown_models_and_settings_have_none():
    posterior, run = made_up(), a_run()
    assert refresh_margin(posterior, run.with_updates(model="another")) is None
    unknown = run.hyperparameters.model_copy(update={"group_size": None})
    assert refresh_margin(posterior, run.with_updates(hyperparameters=unknown)) is None


@pytest.mark.parametrize("minibatches", [1, 64])
def test_card_tells_what_diverges(minibatches):
    run = a_run(learning_rate=3e-3, minibatches=minibatches, ratio=False)
    margin = refresh_margin(made_up(moved=STIFF), run)
    card = diagnose(run, margin).card("dynamical_instability")
    assert card.unit == "P(refresh map diverges)"
    assert card.number == pytest.approx((margin >= 1).mean())
    assert (card.status == "WARNING") == (minibatches == 64)
