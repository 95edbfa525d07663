"""Scores of forecasts: against closed forms, and on forecasters known to be right or wrong."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from advisor.backtesting import QUANTILES, Backtest
from advisor.backtesting.scores import ADVISOR, NEW_RUN, SIMPLEST, ForecastTask, predict, score
from advisor.forecast import crps

INTERVALS = (0.5, 0.8, 0.95)


def crps_of_normal(mean, sd, target):
    """Closed form of Gneiting and Raftery (2007), section 4.2."""
    z = (target - mean) / sd
    return sd * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))


def grid(mean, sd, size=20_000):
    """Draws that are the quantiles of a normal: no Monte Carlo error."""
    return mean + sd * norm.ppf((np.arange(size) + 0.5) / size)


# CRPS ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [-0.4, 0.3, 0.5, 0.51, 0.9])
@pytest.mark.parametrize("sd", [0.01, 0.1, 1.0])
def test_crps_of_a_normal_is_its_closed_form(sd, target):
    rng = np.random.default_rng(0)
    draws = rng.permutation(grid(0.5, sd))
    assert crps(draws, target) == pytest.approx(crps_of_normal(0.5, sd, target), rel=2e-3)


def test_crps_check_rejects_another_spread_and_another_centre():
    assert crps(grid(0.5, 0.1), 0.5) != pytest.approx(crps_of_normal(0.5, 0.11, 0.5), rel=0.05)
    assert crps(grid(0.5, 0.1), 0.7) != pytest.approx(crps_of_normal(0.51, 0.1, 0.7), rel=0.02)


def test_crps_of_few_draws_is_the_double_sum():
    rng = np.random.default_rng(1)
    for size in (1, 2, 7):
        draws, target = rng.standard_normal(size), 0.3
        pairs = np.abs(draws[:, None] - draws[None, :]).mean()
        assert crps(draws, target) == pytest.approx(np.abs(draws - target).mean() - pairs / 2)


def test_crps_of_a_certain_forecast_is_its_error():
    assert crps(np.full(100, 0.3), 0.5) == pytest.approx(0.2)
    assert crps(np.full(100, 0.5), 0.5) == 0


def test_crps_is_best_for_the_true_spread():
    """A proper score: neither a narrower nor a wider forecast is better on average."""
    targets = grid(0.0, 1.0, 400)
    mean = {
        sd: np.mean([crps(grid(0.0, sd, 1000), target) for target in targets])
        for sd in (0.5, 0.8, 1.0, 1.25, 2.0)
    }
    assert min(mean, key=mean.get) == 1.0


# Predictions and coverage ----------------------------------------------------------------------


def made(target, draws, bounds=(0.0, 1.0)):
    question = ForecastTask("sort / tiny 1", "run0", 0.25, bounds, target)
    return predict("mine", question, draws)


def test_prediction_holds_quantiles_error_and_score():
    draws = grid(0.5, 0.1)
    found = made(0.62, draws)
    assert (found.method, found.cohort, found.run) == ("mine", "sort / tiny 1", "run0")
    assert (found.seen, found.target) == (0.25, 0.62)
    np.testing.assert_allclose(found.quantiles, 0.5 + 0.1 * norm.ppf(QUANTILES), atol=1e-4)
    assert found.error == pytest.approx(0.12, abs=1e-6)
    assert found.crps == crps(draws, 0.62)
    assert found.median == pytest.approx(0.5)


def test_rewards_on_another_scale_count_as_shares_of_their_range():
    draws = grid(0.5, 0.1)
    unit, wide = made(0.62, draws), made(8 * 0.62 - 2, 8 * draws - 2, (-2.0, 6.0))
    assert wide.crps == pytest.approx(8 * unit.crps)
    both, one = score([unit, wide]), score([unit])
    assert both["coverage"] == one["coverage"]
    for name in ("mae", "crps"):
        assert both[name] == pytest.approx(one[name])
        assert score([made(8 * 0.62 - 2, 8 * draws - 2)])[name] == pytest.approx(8 * one[name])


@pytest.mark.parametrize("interval", INTERVALS)
def test_interval_holds_what_lies_within_its_quantiles(interval):
    half = 0.1 * norm.ppf((1 + interval) / 2)
    for side in (-1, 1):
        assert made(0.5 + side * (half - 1e-3), grid(0.5, 0.1)).covers(interval)
        assert not made(0.5 + side * (half + 1e-3), grid(0.5, 0.1)).covers(interval)


def test_edges_of_an_interval_belong_to_it():
    assert all(made(0.5, np.full(9, 0.5)).covers(interval) for interval in INTERVALS)


def forecasts(width, runs=2000, bias=0.0):
    """A forecaster whose spread is ``width`` times what it should be."""
    rng = np.random.default_rng(2)
    centre = rng.uniform(0, 1, runs)
    targets = centre + 0.1 * rng.standard_normal(runs)
    draws = grid(0.0, 0.1 * width, 500)
    return score([made(t, c + bias + draws) for t, c in zip(targets, centre, strict=True)])


def test_calibrated_forecaster_covers_what_it_says():
    found = forecasts(1.0)
    assert found["runs"] == 2000
    assert found["coverage"].keys() == {"0.5", "0.8", "0.95"}
    for interval in INTERVALS:
        # Three binomial standard errors.
        error = 3 * np.sqrt(interval * (1 - interval) / 2000)
        assert found["coverage"][f"{interval:g}"] == pytest.approx(interval, abs=error)
    assert found["mae"] == pytest.approx(0.1 * np.sqrt(2 / np.pi), rel=0.05)
    assert found["crps"] == pytest.approx(0.1 / np.sqrt(np.pi), rel=0.05)


@pytest.mark.parametrize(("width", "bias"), [(0.5, 0.0), (2.0, 0.0), (1.0, 0.2)])
def test_forecaster_that_is_wrong_is_found_out(width, bias):
    """Too narrow, too wide, and off: coverage is that of its own law, and the score is worse."""
    found, right = forecasts(width, bias=bias), forecasts(1.0)
    for interval in INTERVALS:
        half = width * norm.ppf((1 + interval) / 2)
        truth = norm.cdf(half + 10 * bias) - norm.cdf(10 * bias - half)
        covered = found["coverage"][f"{interval:g}"]
        assert covered == pytest.approx(truth, abs=0.035)
        assert abs(covered - interval) > 3 * np.sqrt(interval * (1 - interval) / 2000)
    assert found["crps"] > 1.03 * right["crps"]
    if bias:
        assert found["mae"] > 2 * right["mae"]
    else:
        assert found["mae"] == pytest.approx(right["mae"])


# Verdicts ----------------------------------------------------------------------------------------


def backtest_of(method, misses, *, spread, simplest=0.2):
    """Runs whose forecasts miss by so much, beside last values that miss by ``simplest``."""
    found = []
    for number, miss in enumerate(misses):
        question = ForecastTask("c", f"run {number}", 0.25, (0.0, 1.0), 0.5)
        found.append(predict(method, question, grid(0.5 + miss, spread, 400)))
        found.append(predict(SIMPLEST, question, grid(0.5 + simplest, spread, 400)))
    return Backtest(tuple(found), (), ())


@pytest.mark.parametrize("method", [ADVISOR, NEW_RUN])
@pytest.mark.parametrize(
    ("misses", "spread", "ends"),
    [
        ([0.1, -0.1] * 5, 0.1, "80 % intervals hold 10 of 10: use them."),
        ([0.1, -0.1] * 5, 0.01, "hold 0 of 10: use the number, not its interval."),
        ([0.3, -0.3] * 5, 0.4, "hold 10 of 10: do not use them, carry on your last values."),
        ([0.1, -0.1], 0.1, "hold 2 of 2: too few runs to say whether to use them."),
    ],
)
def test_a_backtest_ends_in_what_to_do(method, misses, spread, ends):
    (line,) = backtest_of(method, misses, spread=spread).verdicts()
    assert line.endswith(ends)
    assert f"miss by {abs(misses[0]):.3f}, your last values by 0.200" in line


def test_no_verdict_without_the_rule_beside_it():
    assert backtest_of("ensemble", [0.1] * 8, spread=0.1).verdicts() == []
