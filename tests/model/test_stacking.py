"""Weights of families: scores of forecasts, their mixture, and draws in those shares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm

from advisor.errors import InputError
from advisor.findings.text import describe
from advisor.forecast.fit import fit
from advisor.forecast.forecaster import Forecaster, Target
from advisor.model.families import FAMILIES
from advisor.model.posterior import mix
from advisor.model.stacking import held_out_scores, mixed, shares, stacked_weights
from advisor.testing import (
    Plan,
    made_up_posterior,
    rising,
)

LADDER = settings(derandomize=True, database=None, deadline=None, max_examples=60)


# Scores ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mean", "sd"), [(0.5, 0.1), (0.2, 0.02)])
def test_score_is_the_log_density_of_the_forecast(mean, sd):
    draws = np.random.default_rng(100).normal(mean, sd, 20_000)
    targets = mean + sd * np.array([-1.5, 0.0, 0.7, 2.0])
    scores = held_out_scores([draws] * 4, targets)
    # Up to the constant of the kernel, which all families share.
    constant = 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(scores, norm.logpdf(targets, mean, sd) + constant, atol=0.12)
    others = norm.logpdf(targets, mean, 1.5 * sd) + constant
    assert np.abs(scores - others).max() > 0.2


def test_draws_that_are_all_one_have_a_score():
    scores = held_out_scores([np.full(100, 0.3)] * 2, [0.3, 0.31])
    assert np.all(np.isfinite(scores))
    assert scores[0] > scores[1] + 100


# Weights ---------------------------------------------------------------------------------------


def scored(families=3, runs=12, seed=0):
    rng = np.random.default_rng([101, seed])
    return {f"family {i}": rng.normal(0.3 * i, 1.0, runs) for i in range(families)}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("runs_of_prior", [1.0, 5.0])
def test_weights_maximise_the_score_of_the_mixture(seed, runs_of_prior):
    scores = scored(seed=seed)
    prior = {name: runs_of_prior * (1 + i) for i, name in enumerate(scores)}
    density, counts = np.exp(np.stack(list(scores.values()))), np.array(list(prior.values()))

    def missed(odds):
        weight = np.exp(odds - np.logaddexp.reduce(odds))
        return -np.log(weight @ density).sum() - counts @ np.log(weight)

    best = minimize(missed, np.zeros(3), tol=1e-12)
    wanted = np.exp(best.x - np.logaddexp.reduce(best.x))
    found = stacked_weights(scores, prior)
    assert list(found) == list(scores)
    np.testing.assert_allclose(list(found.values()), wanted, atol=1e-4)


def test_prior_decides_without_data_and_data_without_a_prior():
    prior = {"a": 1.0, "b": 3.0}
    nothing = stacked_weights({"a": np.zeros(0), "b": np.zeros(0)}, prior)
    assert nothing == pytest.approx({"a": 0.25, "b": 0.75})
    same = stacked_weights({"a": np.full(9, -3.0), "b": np.full(9, -3.0)}, prior)
    assert same == pytest.approx({"a": 0.25, "b": 0.75})
    told = stacked_weights({"a": np.full(200, 5.0), "b": np.full(200, -5.0)}, prior)
    assert told["a"] > 0.97
    # A family that is worst everywhere, beyond what a float can hold, does no harm.
    far = stacked_weights({"a": np.full(5, -1e5), "b": np.full(5, 3.0)}, prior)
    assert far == pytest.approx({"a": 1 / 9, "b": 8 / 9})


# Draws -----------------------------------------------------------------------------------------


@LADDER
@given(weights=st.lists(st.floats(0.001, 1), min_size=1, max_size=5), total=st.integers(5, 2000))
def test_shares_add_up_and_are_off_by_less_than_one(weights, total):
    named = {str(i): weight / sum(weights) for i, weight in enumerate(weights)}
    found = shares(named, total)
    assert sum(found.values()) == total
    for name, count in found.items():
        assert abs(count - named[name] * total) < 1


def test_mixture_takes_draws_by_weight_and_evenly():
    draws = {
        name: np.broadcast_to(start + np.arange(100.0)[:, None], (3, 100, 2))
        for name, start in (("a", 0.0), ("b", 1000.0))
    }
    found = mixed(draws, {"a": 0.75, "b": 0.25})
    assert found.shape == (3, 100, 2)
    a, b = found[:, :75], found[:, 75:]
    assert a.max() < 100 <= 1000 <= b.min()
    for part, start in ((a, 0.0), (b, 1000.0)):
        assert (part[0, 0, 0], part[0, -1, 0]) == (start, start + 99)
        assert np.diff(part[0, :, 0]).max() <= np.ceil(99 / (part.shape[1] - 1))


def test_mixed_posterior_holds_both_families_and_the_worst_figures():
    one = made_up_posterior(seed=1)
    diagnostics = {"population": (np.array([1.009]), np.array([450.0]))}
    other = made_up_posterior(seed=2, family=FAMILIES["oscillator"], diagnostics=diagnostics)
    both = mix([one, other], {"spectrum": 0.7, "oscillator": 0.3})
    assert both.meta.families == {"spectrum": 0.7, "oscillator": 0.3}
    assert both.flat("is_oscillator").mean() == pytest.approx(0.3)
    assert both.convergence.draws == 400
    assert both.convergence.rhat == 1.009
    assert both.convergence.ess == 450
    for name, values in both.draws.items():
        assert values.shape == one.draws[name].shape, name
    # A row of all parameters comes out of one draw of one family.
    names = ("log_misfit", "curvature_exponent", "rate.learning_rate")
    rows = np.stack([both.flat(name) for name in names], axis=1)
    known = np.concatenate(
        [np.stack([of.flat(name) for name in names], axis=1) for of in (one, other)]
    )
    assert set(map(tuple, rows)) <= set(map(tuple, known))


def test_forecast_of_a_mixture_is_that_of_each_draws_own_family():
    one, other = (
        made_up_posterior(width=0.0),
        made_up_posterior(width=0.0, family=FAMILIES["oscillator"]),
    )
    both = mix([one, other], {"spectrum": 0.5, "oscillator": 0.5})
    target, steps = Target("sort", "tiny-s", 1e5), [5, 20, 60]
    curves = [
        Forecaster(of, target, seed=1).reward(Plan().completed, steps) for of in (one, other, both)
    ]
    is_single = Forecaster(both, target).draw("is_oscillator") == 1
    for picked, alone in ((~is_single, curves[0]), (is_single, curves[1])):
        np.testing.assert_allclose(curves[2][picked], alone[picked])
    assert np.abs(curves[0] - curves[1]).max() > 0.01


# Fits ------------------------------------------------------------------------------------------


def test_unknown_family_is_refused_with_the_choices():
    with pytest.raises(InputError, match="no family of curves 'gompertz'") as no:
        fit([Plan().run(rising())], families=("spectrum", "gompertz"))
    assert no.value.argument == "families"
    assert all(name in str(no.value) for name in FAMILIES)


@pytest.mark.slow
@pytest.mark.long
def test_fit_of_two_families_mixes_them_by_their_forecasts():
    rng = np.random.default_rng(105)
    runs = [
        plan.run(rising(60, end=0.8 - 0.02 * i) + 0.03 * rng.standard_normal(60), str(i))
        for i, plan in enumerate((Plan(), Plan(1e-3), Plan(3e-4, 16)))
    ]
    said = []
    found = fit(
        runs,
        priors="small_models",
        families=("hill", "exponential"),
        progress=lambda *stage: said.append(stage),
    )
    weights = found.meta.families
    assert list(weights) == ["hill", "exponential"]
    assert sum(weights.values()) == pytest.approx(1.0)
    # Three runs against two that each family brings along.
    assert min(weights.values()) >= 2 / 7
    assert weights["hill"] != 0.5
    assert [stage for stage, _, _ in said].count("Comparing families") == 2
    assert "Curves by weight: " in describe(found)
    alone = fit(runs, priors="small_models", families=("hill", "hill"))
    assert alone.meta.families == {"hill": 1.0}
    assert "Curve: the Hill curve." in describe(alone)
