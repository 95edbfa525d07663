"""Reporting gates: published where the draws tell, refused where they or the prior do not."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np
import pytest
from simulated_runs import STILL, Plan, made_up_posterior

from advisor.findings import gate
from advisor.forecast import interval_of
from advisor.model import NormalPrior

FARTHEST = 100_000
PLATEAU_WIDTH = 0.2
TIMESCALE_FACTOR = 3.0

Z80 = 1.2815516
"""Normal quantile at the end of the central 80 % interval."""

ONE_MODE = {**STILL, "log_dispersion": -9.0, "log_onset": 0.0, "plateau_loss.level": -30.0}
"""A single exponential without luck or loss."""

PILOT = Plan(momentum=0.0)


def normal(mean, sd):
    return NormalPrior(mean=mean, sd=sd, source="made up for a test")


WIDE = {"headroom_logit": normal(0.0, 2.0), "plateau_loss_level": normal(-30.0, 0.1)}


def posed(posterior, priors=None, **draws):
    """Posterior with some draws per group, and some priors, replaced."""
    shape = posterior.draws["plateau"].shape
    given = {
        name: np.broadcast_to(np.reshape(values, (*shape[:2], -1)), shape)
        for name, values in draws.items()
    }
    meta = posterior.meta.model_copy(
        update={
            "priors": posterior.meta.priors.model_copy(
                update={"speed_law": None, **(priors or WIDE)}
            )
        }
    )
    return replace(posterior, draws={**posterior.draws, **given}, meta=meta)


def even(middle, width, size):
    """Evenly spread draws whose central 80 % interval has the width."""
    return middle + width / 0.8 * np.linspace(-0.5, 0.5, size)


def gated(plateau_width=0.05, stiffness_factor=1.2, *, priors=None, draws=200, plans=(PILOT,)):
    """Gate of one group whose draws have the given widths."""
    base = made_up_posterior(plans, width=0.0, moved={"start_logit": -1.4}, draws=draws)
    plateau = even(0.6, plateau_width, 2 * draws)
    log_stiffness = even(np.log(0.02), np.log(stiffness_factor), 2 * draws)
    return gate(posed(base, priors, plateau=plateau, stiffness=np.exp(log_stiffness)))[0]


@pytest.mark.parametrize("share", [0.97, 1.03])
def test_plateau_is_refused_from_its_limit_on(share):
    found = gated(plateau_width=share * PLATEAU_WIDTH)
    assert found.plateau.width == pytest.approx(share * PLATEAU_WIDTH)
    assert found.plateau.is_identified == (share < 1)
    assert found.timescale.is_identified
    assert ("too early to tell the plateau;" in found.text) == (share > 1)
    assert "timescale 50 [45.6, 54.8] steps" in found.text


@pytest.mark.parametrize("share", [0.97, 1.03])
def test_timescale_is_refused_from_its_limit_on(share):
    found = gated(stiffness_factor=share * TIMESCALE_FACTOR)
    assert found.timescale.is_identified == (share < 1)
    assert found.plateau.is_identified
    assert ("too early to tell the timescale;" in found.text) == (share > 1)
    assert "plateau 0.6 [0.575, 0.625]" in found.text
    assert "lies above" not in found.text


NO_SPREAD = {
    **{f"log_{name}_spread": normal(-30.0, 0.1) for name in ("headroom", "model")},
    "plateau_loss_level": normal(-30.0, 0.1),
}


@pytest.mark.parametrize("sd", [0.1, 2.0])
def test_plateau_that_the_prior_knew_is_not_told_by_pilots(sd):
    found = gated(priors={"headroom_logit": normal(0.0, sd), **NO_SPREAD})
    assert found.plateau.width < PLATEAU_WIDTH
    assert found.plateau.is_identified == (sd > 1)


def test_prior_widths_are_those_of_the_preset():
    share = 1 / (1 + np.exp(-np.array([0.3 - Z80 * 0.8, 0.3 + Z80 * 0.8])))
    start = 1 / (1 + np.exp(1.4))
    plain = {
        "headroom_logit": normal(0.3, 0.8),
        "log_slope": normal(-3.0, 4.0),
        # However stiff, without loss.
        "plateau_loss_learning_rate": normal(0.0, 1e-9),
        **NO_SPREAD,
    }
    found = gated(priors=plain, draws=10000)
    # The ends of the interval of 20,000 draws have an error of sqrt(0.09 / 20,000) / density /
    # width = 0.5 %; the headroom adds 0.3^2 to the variance of 4^2.
    assert found.plateau.prior_width == pytest.approx((1 - start) * np.ptp(share), rel=0.03)
    assert found.timescale.prior_width == pytest.approx(2 * Z80 * 4.0, rel=0.03)
    wrong = gated(priors={**plain, "headroom_logit": normal(0.3, 1.2)}, draws=10000)
    assert wrong.plateau.prior_width > 1.2 * found.plateau.prior_width


def test_bound_and_slope_are_quantiles_of_the_draws():
    rng = np.random.default_rng(zlib.crc32(b"bound and slope"))
    base = made_up_posterior((PILOT,), width=0.0, moved={"start_logit": -1.4}, draws=500)
    plateau, stiffness = rng.uniform(0.3, 1.0, 1000), np.exp(rng.normal(-4, 1, 1000))
    found = gate(posed(base, plateau=plateau, stiffness=stiffness))[0]
    assert np.mean(plateau > found.bound) == pytest.approx(0.9, abs=0.002)
    start = base.flat("start")[:, 0]
    slope = found.slope
    assert (slope.low, slope.median, slope.high) == pytest.approx(
        np.quantile(stiffness * (plateau - start), [0.1, 0.5, 0.9]).tolist()
    )
    assert f"its plateau lies above {found.bound:.3g} with 90 % probability" in found.text
    assert f"first rises by {found.slope.median:.2g}" in found.text
    lower = replace(found, bound=2e-9, slope=interval_of(-stiffness)).text
    assert "its plateau lies above 0 with" in lower
    assert "the reward first moves by -" in lower


def test_verdicts_do_not_depend_on_the_reward_unit():
    def found(bounds):
        low, high = bounds
        base = made_up_posterior((PILOT,), width=0.0, bounds=bounds, draws=200)
        plateau = low + (high - low) * even(0.6, 0.18, 400)
        return gate(posed(base, plateau=plateau))[0]

    unit, other = found((0.0, 1.0)), found((-2.0, 8.0))
    assert other.plateau.width == pytest.approx(unit.plateau.width)
    assert other.plateau.prior_width == pytest.approx(unit.plateau.prior_width)
    assert other.bound == pytest.approx(-2 + 10 * unit.bound)
    assert other.slope.median == pytest.approx(10 * unit.slope.median)


# Steps that are lacking --------------------------------------------------------------------------


def lacking(plans=(PILOT,), *, time=200.0, plateau_width=0.5, **moved):
    """Gate of a group whose pilots all have the timescale at the reference, told or not."""
    sure = {
        **ONE_MODE,
        "headroom_logit": 0.0,
        "log_slope": np.log(0.5 / time),
        "start_logit": -1.4,
        **{name.replace("__", "."): value for name, value in moved.items()},
    }
    base = made_up_posterior(plans, width=0.0, moved=sure, draws=50)
    stiffness = even(-np.log(time), 2 * np.log(TIMESCALE_FACTOR), 100)
    plateau = even(0.6, plateau_width, 100)
    return gate(posed(base, plateau=plateau, stiffness=np.exp(stiffness)))


def test_two_timescales_tell_a_plateau_and_one_a_timescale():
    (both,), (time_only,) = lacking(), lacking(plateau_width=0.05)
    # The grid of steps is 6 % fine and never falls short.
    assert 2 * 200 - 60 <= both.more.median <= 1.06 * 2 * 200 - 60
    assert 200 - 60 <= time_only.more.median <= 1.06 * 200 - 60
    assert both.more.upper == both.more.median


def test_long_tail_and_slow_optimizer_need_more_steps():
    (plain,), (tail,) = lacking(), lacking(log_dispersion=0.0)
    # (1 + x)^-1 = e^-2 at x = e^2 - 1 timescales.
    wanted = (np.e**2 - 1) * 200
    assert wanted - 60 <= tail.more.median <= 1.06 * wanted - 60
    (heavy,) = lacking((replace(PILOT, momentum=0.99),))
    assert heavy.more.median > plain.more.median + 50


def test_pilot_that_lacks_least_is_named():
    slow, fast = PILOT, replace(PILOT, learning_rate=1.2e-3)
    (found,) = lacking((slow, fast), rate__learning_rate=1.0)
    # The reference is the geometric mean, half the faster rate.
    assert found.more.run == "run1"
    assert 200 - 60 <= found.more.median <= 1.06 * 200 - 60
    (longer,) = lacking((replace(slow, steps=390), fast), time=100.0, rate__learning_rate=1.0)
    assert longer.more.run == "run0"


def test_collapsed_pilots_tell_no_plateau():
    alive, dead = PILOT, replace(PILOT, learning_rate=3e-3, collapse=25)
    assert lacking((alive, dead))[0].more.run == "run0"
    (found,) = lacking((dead,))
    assert found.more is None
    assert "every pilot collapsed" in found.text


def test_words_follow_what_is_lacking():
    assert "log 350 more steps (perhaps 350) of run0" in lacking()[0].text
    assert "add another learning rate or seed, not steps" in lacking(time=5.0)[0].text
    # It is not too early where more steps would not tell.
    assert "too early to tell the " in lacking()[0].text
    assert "the pilots leave open the " in lacking(time=5.0)[0].text
    never = lacking(time=1e6)[0]
    assert np.isinf(never.more.median)
    assert f"more than {FARTHEST:,}" in never.text
