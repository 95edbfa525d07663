"""From what past studies said to a prior for the next: the arithmetic, on known truths."""

from __future__ import annotations

from typing import NamedTuple

import learned_priors
import numpy as np
import pytest
from learned_priors import (
    PSEUDO_STUDIES,
    STUDY_SHARE,
    TASK_SHARE,
    Believed,
    Evidence,
    likelihood,
)

from advisor.model import NormalPrior

BASE = NormalPrior(mean=1.0, sd=2.0, source="made up for tests")


class Estimates(NamedTuple):
    """What studies said about one entry."""

    value: np.ndarray
    error: np.ndarray
    weight: float


def said(values, errors, weight=1.0):
    values = np.atleast_1d(np.asarray(values, dtype=float))
    return Estimates(values, np.broadcast_to(np.asarray(errors, float), values.shape), weight)


def believed(means, sds, share):
    """Entries whose variance is a spread in this share."""
    means, sds = np.atleast_1d(means).astype(float), np.atleast_1d(sds).astype(float)
    expected = share * sds**2
    freedom = np.full(means.size, float(PSEUDO_STUDIES))
    return Believed(means, sds**2 - expected, freedom, expected * (1 - 2 / PSEUDO_STUDIES))


def new_study(found, base, share):
    """Mean, sd and spread of one entry; estimates of weight 1 are effects of one study."""
    parts = (
        [found] if found.weight == 1 else [said(*one, 1) for one in zip(*found[:2], strict=True)]
    )
    evidence = [
        Evidence(
            np.zeros(one.value.size, dtype=int),
            np.diag(one.error**-2),
            one.value / one.error**2,
            np.array([found.weight]),
        )
        for one in parts
    ]
    (learned,) = learned_priors.new_study(evidence, believed(base.mean, base.sd, share))
    return learned.mean, learned.sd, learned.between


# The prior divided out -------------------------------------------------------------------------


def test_a_likelihood_is_found_again_and_draws_of_the_prior_say_nothing():
    rng = np.random.default_rng(6)
    size, mean = 12, np.linspace(-2, 2, 12)
    prior = np.diag(np.linspace(0.5, 2, size) ** 2)
    half = np.zeros((3, size))
    half[0, :2], half[1, 2:4], half[2, 4] = (3.0, 2.0), (1.0, -4.0), 2.0
    truth, center = half.T @ half, mean + 0.7
    covariance = np.linalg.inv(truth + np.linalg.inv(prior))
    middle = covariance @ (truth @ center + np.linalg.inv(prior) @ mean)

    def drawn(middle, covariance):
        noise = rng.standard_normal((4, 1000, size))
        return middle + noise @ np.linalg.cholesky(covariance).T

    found, score = likelihood(drawn(middle, covariance), mean, prior)
    assert np.linalg.matrix_rank(found) == 3  # and not what noise makes of the other nine
    np.testing.assert_allclose(found, truth, atol=0.12 * truth.max())
    # What the three directions are said to be is what they are, within their errors.
    np.testing.assert_allclose(half @ np.linalg.pinv(found) @ score, half @ center, atol=0.2)
    nothing, no_score = likelihood(drawn(mean, prior), mean, prior)
    assert not nothing.any()
    assert not no_score.any()


# A new study -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "left"), [(STUDY_SHARE, 0.5), (TASK_SHARE, 0.76)])
def test_one_perfect_study_that_agrees_leaves_a_known_share_of_the_sd(share, left):
    _, sd, _ = new_study(said([BASE.mean], [1e-6]), BASE, share)
    assert sd / BASE.sd == pytest.approx(left, abs=0.005)


@pytest.mark.parametrize("truth", [0.3, 1.0, 3.0])
def test_the_spread_between_many_studies_is_recovered(truth):
    rng = np.random.default_rng(11)
    means, betweens, sds = [], [], []
    for _ in range(20):
        theta = 2.5 + truth * rng.standard_normal(150)
        errors = rng.uniform(0.1, 0.6, 150)
        found = said(theta + errors * rng.standard_normal(150), errors)
        mean, sd, between = new_study(found, BASE, STUDY_SHARE)
        means.append(mean)
        sds.append(sd)
        betweens.append(between)
    assert np.mean(means) == pytest.approx(2.5, abs=0.1 * truth)
    assert np.mean(betweens) == pytest.approx(truth, rel=0.1)
    # The mean over 150 studies is known, so a new study differs by the spread alone.
    assert np.mean(sds) == pytest.approx(np.mean(betweens), rel=0.05)


@pytest.mark.evidence
@pytest.mark.parametrize("studies", [1, 3, 10])
def test_intervals_hold_the_next_study_as_often_as_they_say(studies):
    rng = np.random.default_rng(13)
    size, expected = 1500, STUDY_SHARE * BASE.sd**2
    chi = rng.chisquare(PSEUDO_STUDIES, size)
    tau = np.sqrt(expected * (PSEUDO_STUDIES - 2) / chi)
    mu = BASE.mean + np.sqrt(BASE.sd**2 - expected) * rng.standard_normal(size)
    inside, naive, gained = [], [], []
    for spread, center in zip(tau, mu, strict=True):
        theta = center + spread * rng.standard_normal(studies + 1)
        errors = rng.uniform(0.2, 1.0, studies)
        values = theta[1:] + errors * rng.standard_normal(studies)
        mean, sd, _ = new_study(said(values, errors), BASE, STUDY_SHARE)
        inside.append(abs(theta[0] - mean) < 1.2816 * sd)
        weight = 1 / errors**2
        pooled = (weight @ values) / weight.sum()
        naive.append(abs(theta[0] - pooled) < 1.2816 / np.sqrt(weight.sum()))
        log_base = -np.log(BASE.sd) - 0.5 * ((theta[0] - BASE.mean) / BASE.sd) ** 2
        gained.append(-np.log(sd) - 0.5 * ((theta[0] - mean) / sd) ** 2 - log_base)
    # The predictive is heavier in the tails than a normal of its sd, so 80 % hold a little more.
    assert 0.78 < np.mean(inside) < 0.88
    assert np.mean(gained) > 0.2
    # Negative control: pooling without a spread between studies is overconfident.
    assert np.mean(naive) < 0.72


# Entries together ------------------------------------------------------------------------------


def test_one_entry_is_what_integration_by_brute_force_gives():
    values, errors = np.array([2.0, 4.5, 3.0]), np.array([0.3, 0.5, 1.0])
    expected = TASK_SHARE * BASE.sd**2
    spread = np.exp(np.linspace(np.log(0.05), np.log(40), 700))[:, None]
    center = np.linspace(-12, 16, 1401)
    log_density = (
        # In the logarithm of the spread: inverse chi-square, its mean variance as expected.
        -PSEUDO_STUDIES * np.log(spread)
        - (PSEUDO_STUDIES - 2) * expected / (2 * spread**2)
        - (center - BASE.mean) ** 2 / (2 * (BASE.sd**2 - expected))
    )
    for value, error in zip(values, errors, strict=True):
        total = spread**2 + error**2
        log_density = log_density - 0.5 * np.log(total) - (value - center) ** 2 / (2 * total)
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    mean = (density * center).sum()
    sd = np.sqrt((density * (spread**2 + (center - mean) ** 2)).sum())
    found = new_study(said(values, errors), BASE, TASK_SHARE)
    assert found[:2] == pytest.approx((mean, sd), rel=0.01)


def test_how_far_models_lie_apart_is_split_from_how_far_tasks_do():
    """Two models a task tell both; one tells their sum, and neither is then called known."""
    entries = ("log_slope", "log_model_spread")
    priors = [NormalPrior(mean=m, sd=s, source="made up for tests") for m, s in ((0, 2), (-1, 0.6))]
    start = learned_priors.believed_of(dict(zip(entries, priors, strict=True)))
    rng = np.random.default_rng(8)
    told = {}
    for models in (1, 2):
        to_effects = np.column_stack([np.ones(models), np.eye(models)])
        evidence = []
        for _ in range(150):
            level = 0.5 + 0.6 * rng.standard_normal() + 0.2 * rng.standard_normal(models)
            precision = np.eye(models) / 0.1**2
            score = precision @ (level + 0.1 * rng.standard_normal(models))
            places = np.array([0, *(1 for _ in range(models))])
            evidence.append(
                Evidence(
                    places, to_effects.T @ precision @ to_effects, to_effects.T @ score, np.ones(2)
                )
            )
        told[models] = learned_priors.new_study(evidence, start)
    (level, model), (_, blurred) = told[2], told[1]
    assert level.between == pytest.approx(0.6, rel=0.15)
    assert abs(model.log_spread - np.log(0.2)) < 3 * model.log_spread_sd < 0.3
    assert np.hypot(told[1][0].between, told[1][1].between) == pytest.approx(0.63, rel=0.15)
    assert blurred.log_spread_sd > 3 * model.log_spread_sd
    # Nothing told leaves what was believed.
    _, untold = learned_priors.new_study([], start)
    assert (untold.log_spread, untold.log_spread_sd) == pytest.approx((-1, 0.6), abs=0.05)
