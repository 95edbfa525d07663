"""Which pilots their fitted curves do not reproduce: exact chances, and runs that must be named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom
from simulated_runs import Plan, made_up_posterior, simulate_runs

from advisor.advice.support import cautions
from advisor.findings import describe
from advisor.forecast import Forecaster, Target, fit
from advisor.model import (
    likelihood,
    misfit_caution,
    run_fit,
)
from advisor.model.run_fit import run_fits

CHECKS = ("level", "change", "swings", "spread")
RUNS, BINS = 1500, 14


def chances(wander: float, noise: float) -> dict[str, np.ndarray]:
    """Chances of runs drawn with one wander and noise, judged by wander 0.05 and noise 0.03."""
    step = np.linspace(1, 60, BINS)
    correlation = np.exp(-np.abs(step[:, None] - step) / 30)
    rng = np.random.default_rng(3)
    drawn = likelihood.draw_run(
        np.zeros(BINS),
        np.full(BINS, noise**2),
        np.asarray(wander**2),
        correlation,
        np.ones(BINS),
        rng,
        size=(RUNS,),
    )
    root = np.linalg.cholesky(
        likelihood.covariance(np.full(BINS, 0.03**2), np.asarray(0.05**2), correlation)
    )
    white = np.linalg.solve(root, drawn[..., None])[..., 0]
    # As many equal draws as directions want; the chance of a run is the mean over them.
    many = 200
    told = [
        run_fit._chances(np.repeat(root[None], many, 0), np.repeat(one[None], many, 0))
        for one in white[: RUNS // 3]
    ]
    return {name: np.array([one[name] for one in told]) for name in CHECKS}


@pytest.mark.evidence
def test_chances_are_uniform_where_the_model_is_right() -> None:
    found = chances(0.05, 0.03)
    for name, values in found.items():
        for level in (0.05, 0.3):
            low, high = binom.ppf([1e-4, 1 - 1e-4], values.size, level)
            assert low <= np.sum(values < level) <= high, name


@pytest.mark.evidence
@pytest.mark.parametrize(
    ("wander", "noise", "seen_by"), [(0.25, 0.0, "swings"), (0.2, 0.12, "spread")]
)
def test_chances_are_small_where_it_is_wrong(wander: float, noise: float, seen_by: str) -> None:
    values = chances(wander, noise)[seen_by]
    low, high = binom.ppf([1e-4, 1 - 1e-4], values.size, 0.05)
    assert np.sum(values < 0.05) > high > low


@pytest.fixture(scope="module")
def posterior():
    rates, groups = (1e-4, 2e-4, 3e-4, 5e-4, 8e-4), (8, 16, 8, 16, 8)
    plans = [Plan(r, g, prompts=64.0) for r, g in zip(rates, groups, strict=True)]
    return fit(simulate_runs(plans, seed=4), priors="small_models")


def seen_otherwise(posterior, run: int, change) -> object:
    """The same posterior beside a log of a run that was changed after the fit."""
    seen = posterior.observations
    reward = seen.train_reward.copy()
    reward[run] = change(seen.constant["step"][run], reward[run])
    return replace(posterior, observations=replace(seen, train_reward=reward))


def lost_and_regained(step, reward):
    return np.where((step > 25) & (step < 45), reward - 0.45, reward)


def jumped(step, reward):
    return np.where(step > 35, reward + 0.25, reward - 0.15)


@pytest.mark.evidence
@pytest.mark.parametrize("change", [lost_and_regained, jumped])
def test_a_run_that_the_curve_cannot_draw_is_named(posterior, change) -> None:
    other = seen_otherwise(posterior, 2, change)
    named = [one.run for one in run_fits(other) if one.named_by is not None]
    assert named == ["run2"]
    sentence = misfit_caution(other)
    assert "run2" in sentence
    target = Target("sort", "tiny-s", 1e5)
    assert sentence in map(str, cautions(Forecaster(other, target), 100, {}))
    assert sentence in describe(other).splitlines()


@pytest.mark.evidence
def test_the_steps_that_are_named_are_those_of_the_fall(posterior) -> None:
    other = seen_otherwise(
        posterior, 1, lambda step, reward: np.where(step > 40, reward - 0.5, reward)
    )
    (told,) = [one for one in run_fits(other) if one.run == "run1"]
    assert told.fall == pytest.approx(0.5, abs=0.15)
    assert told.above < -0.2
    assert told.first < 40 < told.last


def fitted(*chances: float) -> list[run_fit.RunFit]:
    """Runs whose curves all stray by chances like these in their swings."""
    rest = dict.fromkeys(CHECKS, 0.5)
    return [
        run_fit.RunFit(f"run{n}", rest | {"swings": chance}, 1, 2, 0.1, 0.1, 0.0, 1.0)
        for n, chance in enumerate(chances)
    ]


def test_runs_that_stray_alike_are_named_together() -> None:
    alike = run_fit._named(fitted(0.03, 0.04, 0.02, 0.2))
    assert [one.named_by for one in alike] == ["swings", "swings", "swings", None]
    alone = run_fit._named(fitted(0.03, 0.9, 0.6, 0.8))
    assert [one.named_by for one in alone] == [None] * 4
    by_itself = run_fit._named(fitted(0.005, 0.9, 0.6, 0.8))
    assert [one.named_by for one in by_itself] == ["swings", None, None, None]


def test_a_posterior_without_its_data_says_nothing() -> None:
    bare = replace(made_up_posterior(), observations=None)
    assert run_fits(bare) == ()
    assert misfit_caution(bare) == ""
