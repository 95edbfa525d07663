"""Run effects of each population draw: the likelihood is the sampler's, the integral is right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cohorts import data_of, likelihood
from simulated_runs import PRESET, Plan, made_up_posterior

from advisor.forecast import (
    Forecaster,
    Target,
    collapse_rate,
    observe,
    probability_as_low,
    reweighted,
)
from advisor.forecast.run_likelihood import COPIES, residuals_of, run_effects
from advisor.model import FAMILIES, POPULATION, build_cohort, load_priors
from advisor.model import equations as eq

PLAN = Plan(3e-4, 8, 4, lag=2.0, steps=60, schedule="linear", warmup=5)
TARGET = Target("sort", "tiny-s", 1e5)


def logged(seed=1, rows=45):
    rng = np.random.default_rng(seed)
    mean = 0.75 - 0.55 * np.exp(-np.arange(rows) / 12)
    return PLAN.run(
        rng.binomial(128, mean) / 128, reward_floor=0.0, reward_ceiling=1.0, parameters=1e5
    )


def parts(posterior, run):
    observed = observe(run, posterior.meta, PLAN.steps)
    laws = Forecaster(posterior, TARGET, draws=10**6).laws_of(observed.settings)
    return observed, laws, residuals_of(laws, observed)


@pytest.mark.parametrize("family", ["spectrum", "oscillator"])
def test_the_likelihood_is_that_of_the_sampler(family):
    posterior = made_up_posterior([PLAN], draws=10, family=FAMILIES[family])
    run = logged()
    observed, laws, residuals = parts(posterior, run)
    rng = np.random.default_rng(3)
    luck = rng.standard_normal((3, 20))
    ours = residuals.log_density(
        residuals.white(observed.reward - laws.reward(luck, observed.clock))
    )
    cohort = build_cohort([run], {}, {})
    assert cohort.reference == posterior.meta.reference
    data = data_of(cohort, load_priors(PRESET), FAMILIES[family])
    theirs = np.empty(20)
    for draw in range(20):
        population = np.array([posterior.flat(name)[draw] for name in POPULATION])
        task = np.array(
            [posterior.flat(n)[draw] for n in ("headroom_logit", "log_slope", "log_onset")]
        )
        group = np.array(
            [posterior.flat(f"group_offset.{n}")[draw] for n in ("headroom", "stiffness")]
        )
        point = {
            "population": population,
            "task_level": task,
            "start_logit": posterior.flat("start_logit")[draw],
            "eval_level": np.zeros((2, 1)),
            "group_offset": group,
            "run_offset": luck[:, draw, None],
        }
        theirs[draw], _ = likelihood(data, point)
        hazard = population[[i for i, n in enumerate(POPULATION) if "hazard" in n]]
        rate = eq.hazard(data["run_table"][0, -len(hazard) :] @ hazard)
        theirs[draw] += rate * cohort.exposure[0]
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_laplace_with_importance_integrates_the_luck_out():
    posterior = made_up_posterior([PLAN], draws=5)
    observed, laws, residuals = parts(posterior, logged())
    rng = np.random.default_rng(0)
    many = 20000
    luck = rng.standard_normal((3, many, 10))
    value = residuals.log_density(
        residuals.white(observed.reward - laws.reward(luck, observed.clock))
    )
    brute = np.log(np.exp(value - value.max(axis=0)).mean(axis=0)) + value.max(axis=0)
    estimates = []
    for seed in range(20):
        noise = np.random.default_rng(seed).standard_normal((3, COPIES // 2, 10))
        effects = run_effects(laws, observed, residuals, noise)
        estimates.append(np.exp(effects.log_ratio - brute).mean(axis=0))
    np.testing.assert_allclose(np.mean(estimates, axis=0), 1.0, atol=0.12)
    # What the integral is not: the density at no luck at all.
    none = residuals.log_density(
        residuals.white(observed.reward - laws.reward(np.zeros((3, 10)), observed.clock))
    )
    assert np.abs(np.exp(none - brute) - 1).max() > 0.25


def test_a_step_that_was_survived_counts_by_the_rate_of_collapse():
    posterior = made_up_posterior([PLAN], draws=50)
    forecaster = Forecaster(posterior, TARGET)
    observed = observe(logged(), posterior.meta, PLAN.steps)
    longer = replace(observed, exposure=observed.exposure + 10)
    before, after = (
        reweighted(forecaster, one, has_fallen=False).log_marginal for one in (observed, longer)
    )
    rate = collapse_rate(forecaster, observed.settings)
    np.testing.assert_allclose(after - before, -10 * rate, rtol=1e-6)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_the_luck_follows_the_rows(kind):
    spreads = dict.fromkeys(
        ("log_run_plateau_spread", "log_run_rate_spread", "log_run_shape_spread"), -0.5
    )
    posterior = made_up_posterior(
        [PLAN], draws=50, width=0.0, moved={**spreads, "log_misfit": -5.0, "log_slope": -1.5}
    )
    noise = np.random.default_rng(0).standard_normal((3, COPIES // 2, 100))
    found = []
    for luck in (-1.5, 0.0, 1.5):
        given = np.zeros((3, 100))
        given[kind] = luck
        observed, laws, _ = parts(posterior, logged(rows=60))
        curve = laws.reward(given, observed.clock_at(np.arange(1.0, 61.0)))[0]
        observed, laws, residuals = parts(posterior, PLAN.run(curve))
        found.append(run_effects(laws, observed, residuals, noise).effect[kind].mean())
    assert found[0] < found[1] - 0.25
    assert found[2] > found[1] + 0.15


def test_effects_of_a_run_are_drawn_apart_from_what_a_new_model_is_drawn_with(monkeypatch):
    posterior, drawn = made_up_posterior([PLAN]), []

    def spied(*given):
        drawn.append(given[-1])
        return run_effects(*given)

    monkeypatch.setattr("advisor.forecast.run_likelihood.run_effects", spied)
    forecaster = Forecaster(posterior, Target("sort", "another", 1e6), seed=3)
    observed = observe(logged(), posterior.meta, PLAN.steps)
    reweighted(forecaster, observed, has_fallen=False)
    together = np.concatenate([forecaster._of_new_model, drawn[0].reshape(-1, forecaster.size)])
    assert np.abs(np.corrcoef(together) - np.eye(len(together))).max() < 0.2


def test_rows_that_average_a_window_are_surer_to_be_odd():
    posterior = made_up_posterior([PLAN], moved={"log_misfit": -6.0})
    observed = observe(logged(), posterior.meta, PLAN.steps)
    draws = reweighted(Forecaster(posterior, TARGET), observed, has_fallen=False)
    low, steps = float(observed.reward[-3:].mean()) - 0.15, np.arange(46.0, 51.0)
    one, ten = (
        probability_as_low(draws, replace(observed, logging_steps=window), steps, low)
        for window in (1, 10)
    )
    assert ten < one / 2
