"""Power scaling: a conjugate example with a known answer, and what must not move."""

from __future__ import annotations

import math
import zlib
from dataclasses import replace

import numpy as np
import pytest
from simulated_runs import PLANS, Plan, made_up_posterior

from advisor.model import SENSITIVE, deciding_numbers, log_prior, prior_sensitivity

NAME = "curvature_exponent"
POWER = 1.01


def conjugate(informed, away, draws=10000):
    """Posterior of one normal parameter, everything else known.

    ``informed`` is the share of the information that the data hold, ``away`` how far they lie from
    the prior's mean in prior standard deviations. Mean and sd under a power of the prior come too.
    """
    posterior = made_up_posterior(width=0.0, draws=draws // 2)
    prior = posterior.meta.priors.curvature_exponent
    data_precision = informed / (1 - informed) / prior.sd**2

    def scaled(power):
        precision = power / prior.sd**2 + data_precision
        pull = power * prior.mean / prior.sd**2
        pull += data_precision * (prior.mean + away * prior.sd)
        return pull / precision, precision**-0.5

    mean, sd = scaled(1.0)
    # Normal quantiles in random order: no Monte Carlo error beyond the grid's.
    rng = np.random.default_rng(zlib.crc32(b"conjugate"))
    grid = rng.permutation(normal_quantiles(draws))
    values = (mean + sd * grid).reshape(2, -1)
    return replace(posterior, draws={**posterior.draws, NAME: values}), scaled


def normal_quantiles(size):
    z = np.linspace(-8, 8, 200001)
    return np.interp((np.arange(size) + 0.5) / size, cumulative(z), z)


def cumulative(z):
    return 0.5 * np.array([math.erfc(-value / math.sqrt(2)) for value in z])


def exact(scaled, low, high):
    """Sensitivity by integrating the two normal distribution functions over the draws' range."""
    at = np.linspace(low, high, 4001)

    def upto(power, sign):
        mean, sd = scaled(power)
        return cumulative(sign * (at - mean) / sd)

    def distance(power):
        def square(sign):
            one, other = upto(1.0, sign), upto(power, sign)
            middle = (one + other) / 2
            apart = one * np.log2(one / middle) + other * np.log2(other / middle)
            return apart.sum() / (one + other).sum()

        return math.sqrt(max(square(1), square(-1))) / abs(math.log2(power))

    return (distance(POWER) + distance(1 / POWER)) / 2


@pytest.mark.parametrize(
    ("informed", "away"), [(0.0, 0.0), (0.3, 0.0), (0.5, 2.0), (0.8, -3.0), (0.9, 6.0)]
)
def test_conjugate_normal_has_its_closed_form(informed, away):
    posterior, scaled = conjugate(informed, away)
    draws = posterior.flat(NAME)
    found = prior_sensitivity(posterior, {"q": draws})["q"]
    wanted = exact(scaled, draws.min(), draws.max())
    assert found == pytest.approx(wanted, rel=0.03, abs=1e-3)
    # The same draws under a prior half as wide are another posterior: a control of the tolerance.
    prior = posterior.meta.priors.curvature_exponent
    narrow = prior.model_copy(update={"sd": prior.sd / 2})
    priors = posterior.meta.priors.model_copy(update={NAME: narrow})
    other = replace(posterior, meta=posterior.meta.model_copy(update={"priors": priors}))
    assert prior_sensitivity(other, {"q": draws})["q"] > 2 * wanted


@pytest.mark.parametrize(
    ("informed", "away", "is_sensitive"),
    [(0.0, 0.0, True), (0.2, 0.0, True), (0.9, 0.0, False), (0.9, 8.0, True), (0.99, 2.0, False)],
)
def test_prior_and_conflict_are_flagged_and_data_are_not(informed, away, is_sensitive):
    """A parameter that is all prior keeps its mean under any power: only the distance sees it."""
    posterior, _ = conjugate(informed, away)
    found = prior_sensitivity(posterior, {"q": posterior.flat(NAME)})["q"]
    assert (found >= SENSITIVE) == is_sensitive


def test_sign_scale_and_shift_of_a_quantity_do_not_matter():
    posterior, _ = conjugate(0.5, 2.0, draws=2000)
    draws = posterior.flat(NAME)
    found = prior_sensitivity(posterior, {"q": draws, "-q": -draws, "a + b q": 5 + 40 * draws})
    assert found["-q"] == pytest.approx(found["q"])
    assert found["a + b q"] == pytest.approx(found["q"])


def test_chance_alone_is_taken_off():
    posterior = made_up_posterior(width=1.0, draws=800, is_prior=True)
    rng = np.random.default_rng(zlib.crc32(b"chance alone"))
    null = {str(index): rng.standard_normal(1600) for index in range(60)}
    found = prior_sensitivity(posterior, {**null, "prior": posterior.flat("hazard.size")})
    assert found.pop("prior") > SENSITIVE
    values = np.array(list(found.values()))
    # Left in, chance would make the mean 0.03.
    assert values.mean() < SENSITIVE / 3
    assert np.mean(values >= SENSITIVE) <= 0.05


def test_certain_quantity_does_not_move():
    posterior = made_up_posterior(width=1.0, draws=50)
    assert prior_sensitivity(posterior, {"q": np.full(100, 0.7)}) == {"q": 0.0}


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


def test_deciding_numbers_are_the_plateaus_and_stiffnesses_of_the_table():
    posterior = made_up_posterior()
    found = deciding_numbers(posterior)
    assert set(found) < set(posterior.table.index)
    assert len(found) == 2 * len(posterior.meta.groups)
    assert all(values.shape == (400,) for values in found.values())
    name = "plateau [sort / tiny-m]"
    assert found[name].mean() == pytest.approx(posterior.table.loc[name, "mean"])
