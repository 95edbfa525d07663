"""From what past studies said to a prior for the next: the arithmetic, on known truths."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.findings.past_study import (
    PSEUDO_STUDIES,
    STUDY_SHARE,
    TASK_SHARE,
    Estimates,
    new_study,
    without_prior,
)
from advisor.model.priors import NormalPrior

BASE = NormalPrior(mean=1.0, sd=2.0, source="made up for tests")


def said(values, errors, weights=1.0):
    values = np.atleast_1d(np.asarray(values, dtype=float))
    return Estimates(
        values,
        np.broadcast_to(np.asarray(errors, dtype=float), values.shape),
        np.broadcast_to(np.asarray(weights, dtype=float), values.shape),
        tuple(range(values.size)),
    )


# The prior divided out -------------------------------------------------------------------------


def test_dividing_out_undoes_multiplying_in():
    value, error = np.array([-3.0, 0.0, 8.0]), np.array([0.1, 1.0, 3.0])
    precision = 1 / BASE.sd**2 + 1 / error**2
    mean = (BASE.mean / BASE.sd**2 + value / error**2) / precision
    found = without_prior(mean, 1 / precision, BASE, 1e9)
    np.testing.assert_allclose(found, [value, error], rtol=1e-9)


def test_draws_of_the_prior_say_nothing_and_narrower_ones_do():
    rng = np.random.default_rng(5)
    draws = BASE.mean + BASE.sd * rng.standard_normal((900, 2000))
    value, error = without_prior(draws.mean(axis=0), draws.var(axis=0), BASE, 900)
    assert np.isfinite(value).mean() < 0.003
    assert (np.isnan(value) == np.isnan(error)).all()
    narrow = BASE.mean + 0.85 * BASE.sd * rng.standard_normal((900, 2000))
    value, _ = without_prior(narrow.mean(axis=0), narrow.var(axis=0), BASE, 900)
    assert np.isfinite(value).mean() > 0.99


def test_wider_draws_say_nothing():
    value, error = without_prior(np.array([4.0]), np.array([9.0]), BASE, 1e9)
    assert np.isnan(value).all()
    assert np.isnan(error).all()


# A new study -----------------------------------------------------------------------------------


def test_a_study_that_says_hardly_anything_leaves_the_base():
    mean, sd, between = new_study(said([30.0], [1e5]), BASE, STUDY_SHARE)
    assert mean == pytest.approx(BASE.mean, abs=1e-6)
    assert sd == pytest.approx(BASE.sd, rel=1e-3)
    assert between == pytest.approx(np.sqrt(STUDY_SHARE) * BASE.sd, rel=1e-3)


@pytest.mark.parametrize(("share", "left"), [(STUDY_SHARE, 0.5), (TASK_SHARE, 0.76)])
def test_one_perfect_study_that_agrees_leaves_a_known_share_of_the_sd(share, left):
    _, sd, _ = new_study(said([BASE.mean], [1e-6]), BASE, share)
    assert sd / BASE.sd == pytest.approx(left, abs=0.005)


def test_one_study_never_leaves_less_than_half():
    for distance in np.linspace(-4, 4, 9):
        for error in (1e-6, 0.1, 1.0, 10.0):
            value = BASE.mean + distance * BASE.sd
            _, sd, _ = new_study(said([value], [error]), BASE, STUDY_SHARE)
            assert sd / BASE.sd > 0.499


def test_more_agreeing_studies_leave_less_and_disagreeing_ones_more():
    agree = [new_study(said([2.0] * n, 0.1), BASE, STUDY_SHARE)[1] for n in (1, 2, 4, 8, 16)]
    assert agree == sorted(agree, reverse=True)
    assert agree[-1] > 0.1
    apart = new_study(said([-6.0, 8.0], 0.1), BASE, STUDY_SHARE)
    assert apart[1] > BASE.sd > agree[1]


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


def test_noise_of_the_studies_is_not_taken_for_spread():
    rng = np.random.default_rng(12)
    noisy = 2.5 + 3.0 * rng.standard_normal(40)
    _, _, between = new_study(said(noisy, 3.0), BASE, STUDY_SHARE)
    # Negative control: the same numbers, were they exact, do differ by 3.
    _, _, taken_as_exact = new_study(said(noisy, 0.01), BASE, STUDY_SHARE)
    assert between < 1.5 < 2.4 < taken_as_exact


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


def test_estimates_that_share_a_weight_count_once():
    once = new_study(said([3.0], [0.4]), BASE, TASK_SHARE)
    shared = new_study(said([3.0] * 5, 0.4, 0.2), BASE, TASK_SHARE)
    np.testing.assert_allclose(shared, once, rtol=1e-9)
    five = new_study(said([3.0] * 5, 0.4), BASE, TASK_SHARE)
    assert five[1] < 0.8 * once[1]


def test_the_scale_of_the_entry_does_not_matter():
    found = new_study(said([2.0, 4.0, 3.0], [0.3, 0.5, 1.0]), BASE, STUDY_SHARE)
    small = NormalPrior(mean=0.01, sd=0.02, source="made up for tests")
    scaled = new_study(said([0.02, 0.04, 0.03], [0.003, 0.005, 0.01]), small, STUDY_SHARE)
    np.testing.assert_allclose(np.array(found) / 100, scaled, rtol=1e-9)


def test_a_learned_entry_is_no_base_for_the_next_and_all_at_once_is_calibrated():
    """The numbers of case_studies/scale/README.md: a cohort a month, for a year."""
    rng, spread, error, months = np.random.default_rng(0), 0.3, 0.05, 12
    base = NormalPrior(mean=0.0, sd=0.8, source="made up for tests")
    held = {"chained": [], "at once": []}
    for _ in range(200):
        mean = 0.5 * rng.standard_normal()
        values = mean + np.hypot(spread, error) * rng.standard_normal(months)
        entry = base
        for value in values:
            center, sd, _ = new_study(said([value], error), entry, STUDY_SHARE)
            entry = base.model_copy(update={"mean": center, "sd": sd})
        new = mean + spread * rng.standard_normal(200)
        at_once = new_study(said(values, error), base, STUDY_SHARE)[:2]
        for way, (center, sd) in (("chained", (entry.mean, entry.sd)), ("at once", at_once)):
            held[way].append(np.mean(np.abs(new - center) < 1.2816 * sd))
    assert np.mean(held["chained"]) == pytest.approx(0.30, abs=0.03)
    assert np.mean(held["at once"]) == pytest.approx(0.79, abs=0.03)
