"""Curve fits to one run: each family finds its own curve, and knows less when it sees less."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_runs import Plan, rising

from advisor.backtesting import CURVES, ENSEMBLE, Case, make_cases
from advisor.backtesting.backtests import ensemble, last_value
from advisor.forecast import DRAWS, curve_fit

# start, plateau, log time and shape relative to the last of the steps seen
THETA = {
    "exponential": (0.15, 0.8, -0.6),
    "hill": (0.15, 0.8, -0.4, 0.5),
    "stretched": (0.15, 0.8, -0.5, -0.4),
    "power": (0.15, 0.8, -0.8, 0.4),
}
TOTAL = 400


def case(curve, share=0.5, noise=0.0, seed=0):
    """A run whose mean reward is ``curve`` of its step, seen up to a share."""
    step = np.arange(1.0, TOTAL + 1)
    rng = np.random.default_rng(seed)
    reward = np.clip(curve(step) + noise * rng.standard_normal(TOTAL), 0, 1)
    seen, asked = step <= share * TOTAL, step > 0.9 * TOTAL
    run = Plan().run(reward[seen], step=step[seen])
    return Case(run, step[asked], float(curve(step[asked]).mean()))


def member(name, share=0.5):
    """A noiseless curve of a family, on steps."""
    return lambda step: ENSEMBLE[name].value(np.array(THETA[name]), step / (share * TOTAL))


def fitted(name, asked, floor=0.0, ceiling=1.0):
    return curve_fit(
        asked.seen, asked.steps, ENSEMBLE[name], (floor, ceiling), np.random.default_rng(1)
    )


# Families --------------------------------------------------------------------------------------


def test_families_are_those_that_people_use():
    assert list(CURVES) == ["exponential", "hill", "stretched"]
    assert list(ENSEMBLE) == [*CURVES, "power"]


@pytest.mark.parametrize("name", ENSEMBLE)
def test_each_family_starts_rises_and_saturates(name):
    values = ENSEMBLE[name].value(np.array(THETA[name]), np.array([0.0, 0.1, 0.5, 1.0, 3.0, 1e9]))
    assert values[0] == pytest.approx(0.15, abs=1e-6)
    assert values[-1] == pytest.approx(0.8, abs=1e-3)
    assert np.all(np.diff(values) > 0)


def test_values_of_the_families_worked_out_by_hand():
    # Half-time and rate at the last step seen, so that x = 1.
    half, one = np.array([0.2, 0.8, 0.0, 0.7]), np.array([1.0])
    left = {
        name: (0.8 - ENSEMBLE[name].value(half[: 2 + len(ENSEMBLE[name].more)], one)[0]) / 0.6
        for name in ENSEMBLE
    }
    assert left["exponential"] == pytest.approx(np.exp(-1))
    assert left["hill"] == pytest.approx(0.5)
    assert left["stretched"] == pytest.approx(np.exp(-1))
    assert left["power"] == pytest.approx(2 ** -np.exp(0.7))
    # At four times that, the shape e^.7 counts.
    four = np.array([4.0])
    shape = np.exp(0.7)
    left = {name: (0.8 - ENSEMBLE[name].value(half, four)[0]) / 0.6 for name in ENSEMBLE}
    assert left["exponential"] == pytest.approx(np.exp(-4))
    assert left["hill"] == pytest.approx(1 / (1 + 4**shape))
    assert left["stretched"] == pytest.approx(np.exp(-(4**shape)))
    assert left["power"] == pytest.approx(5**-shape)


@pytest.mark.parametrize("name", ENSEMBLE)
def test_family_recovers_a_noiseless_curve_of_its_own(name):
    asked = case(member(name))
    draws, _ = fitted(name, asked)
    assert draws.shape == (DRAWS,)
    assert np.median(draws) == pytest.approx(asked.target, abs=0.005)
    assert draws.std() < 0.02


@pytest.mark.parametrize("name", ENSEMBLE)
def test_recovery_check_rejects_the_curve_of_another_family(name):
    """A curve that some family misses by more than it allows its own."""
    other = {"exponential": "power", "hill": "stretched", "stretched": "power", "power": "hill"}
    asked = case(member(other[name]))
    assert abs(np.median(fitted(name, asked)[0]) - asked.target) > 0.005


def test_fit_is_in_reward_units():
    draws, evidence = fitted("hill", case(member("hill"), noise=0.05))
    step = np.arange(1.0, TOTAL + 1)
    unit = case(member("hill"), noise=0.05)
    wide = Case(
        unit.seen.with_updates(series={"reward": 8 * unit.seen.reward - 2}), unit.steps, 0.0
    )
    other, same = fitted("hill", wide, floor=-2.0, ceiling=6.0)
    np.testing.assert_allclose(other, 8 * draws - 2, rtol=1e-4, atol=1e-4)
    assert same == pytest.approx(evidence, rel=1e-4)
    # Time is relative to what was seen: a log in other units of steps is the same.
    slow = Case(unit.seen.with_updates(step=10 * step[: unit.seen.step.size]), 10 * unit.steps, 0.0)
    np.testing.assert_allclose(fitted("hill", slow)[0], draws, rtol=1e-6)


# Spread ----------------------------------------------------------------------------------------


def width(draws):
    return float(np.subtract(*np.quantile(draws, [0.9, 0.1])))


def curve(step):
    return 0.75 - 0.6 * np.exp(-step / 120)


@pytest.mark.parametrize("name", ENSEMBLE)
def test_draws_widen_when_less_is_seen(name):
    wide, narrow = (
        np.mean([width(fitted(name, case(curve, share, 0.08, seed))[0]) for seed in range(4)])
        for share in (0.15, 0.7)
    )
    # The noise of a bin alone, which holds fewer rows, would widen them 2.2 times.
    assert wide > 3.5 * narrow


@pytest.mark.evidence
def test_spread_of_draws_is_that_of_their_errors():
    """Forty noisy logs of one curve: four of five targets lie within the central 80 %."""
    inside = []
    for seed in range(40):
        asked = case(member("exponential"), 0.5, 0.1, seed)
        low, high = np.quantile(fitted("exponential", asked)[0], [0.1, 0.9])
        inside.append(low <= asked.target <= high)
    assert 0.7 < np.mean(inside) < 0.97


@pytest.mark.parametrize("name", ENSEMBLE)
def test_draws_widen_with_the_noise(name):
    quiet, loud = (
        np.mean([width(fitted(name, case(curve, 0.5, noise, seed))[0]) for seed in range(4)])
        for noise in (0.02, 0.2)
    )
    assert loud > 2 * quiet


def test_draws_stay_near_the_reward_range():
    """Plateaus are kept within it; only the noise of a mean may reach beyond."""
    draws, _ = fitted("hill", case(curve, 0.1, 0.02))
    assert draws.min() > -0.1
    assert draws.max() < 1.1


def test_rewards_that_are_lost_do_not_count():
    asked = case(curve, noise=0.05)
    reward = np.repeat(asked.seen.reward, 2)
    reward[1::2] = np.nan
    step = np.repeat(asked.seen.step, 2) + np.tile([0.0, 0.5], asked.seen.step.size)
    # The last step seen sets the unit of time: keep it.
    holed = Case(Plan().run(reward[:-1], step=step[:-1]), asked.steps, 0.0)
    for name in ENSEMBLE:
        np.testing.assert_allclose(fitted(name, holed)[0], fitted(name, asked)[0], rtol=1e-6)
    rng = np.random.default_rng
    np.testing.assert_allclose(last_value(holed, rng(0)), last_value(asked, rng(0)))


# Others ----------------------------------------------------------------------------------------


def test_last_value_is_that_of_the_last_fifth():
    rewards = np.concatenate([np.zeros(80), np.tile([0.4, 0.6], 10)])
    draws = last_value(Case(Plan().run(rewards), np.array([200.0]), 0.5), np.random.default_rng(0))
    assert draws.shape == (DRAWS,)
    assert draws.mean() == pytest.approx(0.5, abs=0.01)
    # At least its standard error, at most the noise of a row.
    assert 0.1 / np.sqrt(20) < draws.std() < 0.115
    loud = np.concatenate([np.zeros(80), np.tile([0.3, 0.7], 10)])
    spread = last_value(Case(Plan().run(loud), np.array([200.0]), 0.5), np.random.default_rng(0))
    assert spread.std() == pytest.approx(2 * draws.std(), rel=1e-6)
    # Three rows at least.
    few = Case(Plan().run(np.array([0.1, 0.2, 0.3, 0.4, 0.5])), np.array([9.0]), 0.5)
    assert last_value(few, np.random.default_rng(0)).mean() == pytest.approx(0.4, abs=0.02)


def mixed(asked):
    """Draws of the ensemble, the share of them that each family gave, and the weights due."""
    draws = ensemble(asked, 0.0, 1.0, np.random.default_rng(1))
    rng = np.random.default_rng(1)
    fits = {
        name: curve_fit(asked.seen, asked.steps, family, (0.0, 1.0), rng)
        for name, family in ENSEMBLE.items()
    }
    given = {name: float(np.mean(draws == own)) for name, (own, _) in fits.items()}
    evidence = np.array([fit[1] for fit in fits.values()])
    weight = np.exp(evidence - evidence.max())
    return draws, given, dict(zip(fits, weight / weight.sum(), strict=True))


@pytest.mark.evidence
@pytest.mark.parametrize(("name", "least"), [("exponential", 0.5), ("hill", 0.85)])
def test_ensemble_follows_the_family_that_fits(name, least):
    for seed in range(3):
        asked = case(member(name), noise=0.002, seed=seed)
        draws, given, due = mixed(asked)
        assert draws.shape == (DRAWS,)
        assert np.median(draws) == pytest.approx(asked.target, abs=0.005)
        assert given[name] == max(given.values()) > least
        assert sum(given.values()) == pytest.approx(1)
        # Of a thousand draws: three binomial standard errors at most.
        assert given == pytest.approx(due, abs=0.05)


def test_ensemble_spreads_where_nothing_tells_families_apart():
    draws, given, due = mixed(case(curve, share=0.12, noise=0.1))
    assert 0.1 < sorted(given.values())[1] <= max(given.values()) < 0.6
    assert given == pytest.approx(due, abs=0.05)
    parts = [fitted(name, case(curve, share=0.12, noise=0.1))[0] for name in ENSEMBLE]
    assert min(map(width, parts)) < width(draws)


def test_a_parameter_that_does_nothing_costs_half_the_log_of_the_rows():
    """By BIC; and the noise, which one row less tells, is larger by as little."""
    exponential, bins = ENSEMBLE["exponential"], 20
    idle = exponential._replace(more=(*exponential.more, ((0.0,), -1.0, 1.0)))
    asked = case(member("exponential"), noise=0.05)
    given = asked.seen, asked.steps
    one, other = (
        curve_fit(*given, curve, (0.0, 1.0), np.random.default_rng(1))[1]
        for curve in (exponential, idle)
    )
    cost = 0.5 * np.log(bins) + 0.5 * bins * np.log((bins - 3) / (bins - 4))
    assert one - other == pytest.approx(cost, abs=1e-3)


def test_more_parameters_must_earn_their_place():
    """On a curve of the simplest family the others, which hold it too, have less evidence."""
    wins = 0
    for seed in range(8):
        asked = case(member("exponential"), noise=0.05, seed=seed)
        wins += fitted("exponential", asked)[1] > fitted("stretched", asked)[1]
    assert wins >= 6


@pytest.mark.parametrize("shape", ["flat", "falling", "jump"])
def test_odd_curves_give_finite_draws(shape):
    rewards = {
        "flat": np.full(60, 0.5),
        "falling": 0.9 - rising(60) / 2,
        "jump": (np.arange(60) > 10).astype(float),
    }[shape]
    (cohort,), _ = make_cases([Plan().run(rewards, f"run{i}") for i in range(4)], 0.5)
    for name in ENSEMBLE:
        draws, evidence = fitted(name, cohort.cases[0])
        assert np.all(np.isfinite(draws))
        assert np.isfinite(evidence)
    assert np.all(np.isfinite(ensemble(cohort.cases[0], 0.0, 1.0, np.random.default_rng(0))))
