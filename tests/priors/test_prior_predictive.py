"""Prior-predictive curves: those of the equations, with the quantiles of the entries."""

from __future__ import annotations

import numpy as np
import pytest
from prior_predictive import COLLAPSE_STEPS, prior_predictive

from advisor.model import load_priors, preset_names

LONGEST = 1e6


def changed(name="small_models", **moments):
    """A preset with some entries replaced by (mean, sd)."""
    priors = load_priors(name)
    return priors.model_copy(
        update={
            key: getattr(priors, key).model_copy(update={"mean": mean, "sd": sd})
            for key, (mean, sd) in moments.items()
        }
    )


@pytest.mark.parametrize("name", preset_names())
def test_curves_are_rewards(name):
    found = prior_predictive(load_priors(name), draws=1000)
    assert found.preset == name
    assert found.reward.shape == (1000, found.steps.size)
    assert np.isfinite(found.reward).all()
    assert np.isfinite(found.time).all()
    assert found.reward.min() >= 0
    assert found.reward.max() <= 1
    assert 0 < found.collapsed < 1
    assert found.steps[0] == 1
    assert found.steps[-1] <= LONGEST
    # Between start and plateau, on the way from the one to the other.
    low, high = np.minimum(found.start, found.plateau), np.maximum(found.start, found.plateau)
    assert (found.reward >= low[:, None] - 1e-9).all()
    assert (found.reward <= high[:, None] + 1e-9).all()
    moved = np.abs(np.diff(np.abs(found.reward - found.start[:, None]), axis=1))
    assert (np.diff(np.abs(found.reward - found.start[:, None]), axis=1) >= -1e-9).all()
    assert moved.max() > 0


@pytest.mark.parametrize("name", preset_names())
def test_the_start_has_the_quantiles_of_its_entry(name):
    priors = load_priors(name)
    found = prior_predictive(priors, draws=20_000)
    for share, z in ((0.5, 0.674490), (0.8, 1.281552), (0.95, 1.959964)):
        ends = priors.start_logit.mean + priors.start_logit.sd * np.array([-z, z])
        np.testing.assert_allclose(found.bands("start")[share], 1 / (1 + np.exp(-ends)), atol=0.02)


def test_the_plateau_has_the_quantiles_of_headroom_where_nothing_else_speaks():
    fixed = {"start_logit": (-20.0, 1e-9), "plateau_loss_level": (-20.0, 1e-9)}
    fixed |= dict.fromkeys(("log_headroom_spread", "log_run_plateau_spread"), (-20.0, 1e-9))
    priors = changed(headroom_logit=(0.3, 0.9), **fixed)
    found = prior_predictive(priors, draws=20_000)
    for share, z in ((0.5, 0.674490), (0.8, 1.281552), (0.95, 1.959964)):
        ends = 0.3 + 0.9 * np.array([-z, z])
        expected = 1 / (1 + np.exp(-ends))
        np.testing.assert_allclose(found.bands("plateau")[share], expected, atol=0.02)


def moving(stiffness, **moments):
    """A preset whose task has one stiffness per step, known as is how fast the loss grows."""
    slope = np.log(stiffness) - np.log1p(np.exp(-1.5))
    known = {"headroom_logit": 1.5, "log_slope": slope, "plateau_loss_learning_rate": 1.8}
    return changed(**{name: (mean, 1e-9) for name, mean in known.items()}, **moments)


@pytest.mark.parametrize("name", preset_names())
def test_the_time_is_where_the_curve_has_95_percent_of_its_gain(name):
    found = prior_predictive(load_priors(name), draws=2000)
    gained = (found.reward - found.start[:, None]) / (found.plateau - found.start)[:, None]
    inside = np.flatnonzero(
        (found.time > found.steps[0])
        & (found.time < found.steps[-1])
        & (np.abs(found.plateau - found.start) > 0.01)
    )
    assert inside.size > 500
    for draw in inside:
        # A long slow start makes a curve too steep to interpolate: its neighbours bracket the gain.
        after = int(np.searchsorted(found.steps, found.time[draw]))
        assert gained[draw, after - 1] <= 0.95 + 1e-6
        assert gained[draw, after] >= 0.95 - 1e-6


@pytest.mark.parametrize("rate", [2e-4, 5e-3])
@pytest.mark.parametrize("loss", [0.1, 1.0, 3.0])
def test_collapses_follow_the_hazard(rate, loss):
    """Known where a run loses a plateau loss of 1, and larger the more it loses."""
    levels = {"hazard_level": (np.log(rate), 1e-9), "plateau_loss_level": (np.log(loss), 1e-9)}
    found = prior_predictive(moving(0.05, **levels))
    hazard = rate * loss**1.3
    hazard = hazard / (1 + hazard / 0.1)
    assert found.collapsed == pytest.approx(1 - np.exp(-COLLAPSE_STEPS * hazard), rel=1e-6)
