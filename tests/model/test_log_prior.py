"""The log density of the priors at each draw: every scaled prior once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated_runs import PLANS, Plan, made_up_posterior

from advisor.model import log_prior


def spoken_of(posterior):
    """Draws of the two levels as the priors speak of them, written out for two tasks."""
    one, two = (
        posterior.flat("log_slope")[:, task]
        - np.log(1 / (1 + np.exp(-posterior.flat("headroom_logit")[:, task])))
        for task in (0, 1)
    )
    heat = posterior.flat("plateau_loss.learning_rate") * ((one + two) / 2 - np.log(0.05))
    loss = posterior.flat("plateau_loss.level")
    hazard = posterior.flat("hazard.level") - 1.3 * loss
    return {"plateau_loss.level": loss - heat, "hazard.level": hazard}


def test_log_prior_counts_every_scaled_prior_once_and_no_offset():
    posterior = made_up_posterior((*PLANS, Plan(task="mod")), width=1.0, draws=20, is_prior=True)
    assert len(posterior.meta.tasks) == 2
    base, spoken = log_prior(posterior), spoken_of(posterior)
    priors = posterior.meta.placed_priors
    for name, values in posterior.draws.items():
        moved = replace(posterior, draws={**posterior.draws, name: values + 0.1})
        change = log_prior(moved) - base
        steps = {level: after - spoken[level] for level, after in spoken_of(moved).items()}
        if name not in steps and hasattr(priors, name.replace(".", "_")):
            steps[name] = np.full((40, 1), 0.1)
        expected = np.zeros(40)
        for part, step in steps.items():
            prior = getattr(priors, part.replace(".", "_"))
            off = (spoken.get(part, posterior.flat(part)).reshape(40, -1) - prior.mean) / prior.sd
            expected -= (
                step.reshape(40, -1) / prior.sd * (off + step.reshape(40, -1) / prior.sd / 2)
            ).sum(axis=1)
        assert change == pytest.approx(expected), name
        assert np.all(change != 0) == hasattr(priors, name.replace(".", "_")), name
