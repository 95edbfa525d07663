"""The kernel: its value against equations and dense algebra, its gradient against differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cohorts import (
    PRIORS,
    RUN_PLACES,
    SCENARIOS,
    Block,
    data_of,
    flat,
    likelihood,
    luck,
    random_point,
    simulated,
    unflat,
    with_places,
    without_bins,
)
from scipy.special import expit, gammaln
from scipy.stats import multivariate_t, norm
from scipy.stats import t as student

from advisor.model import FAMILIES, LAWS, POPULATION, SPECTRUM, clock_polynomial
from advisor.model import equations as eq
from advisor.theory import Oscillator, coefficients, trajectory

OSCILLATOR = FAMILIES["oscillator"]
SPREADS = {1: "log_run_rate_spread", 2: "log_run_shape_spread"}


def case(name, family=SPECTRUM, *, placed=False, seed=0):
    """A cohort with its data and a point; of the fullest scenario one run has no bins."""
    rng = np.random.default_rng([70, seed, list(SCENARIOS).index(name)])
    cohort = simulated(name)
    if name == "all there is":
        cohort = without_bins(cohort, 2)
    data = data_of(cohort, PRIORS, family)
    if placed:
        data = with_places(data, rng)
    return cohort, data, random_point(cohort, rng, family)


# Value -----------------------------------------------------------------------------------------


def bases(cohort, point):
    """What the laws give each run, on the scale of each kind of its luck, and its group."""
    p = dict(zip(POPULATION, point["population"], strict=True))
    laws = {law: np.array([p[f"{law}.{term}"] for term in LAWS[law]]) for law in LAWS}
    x, group = cohort.covariates, cohort.group_of_run
    task = cohort.task_of_group[group]
    level = eq.group_level(
        p,
        point["task_level"][0, task],
        point["task_level"][1, task],
        point["start_logit"][group],
        point["group_offset"][0, group],
        point["group_offset"][1, group],
        x.log_parameters,
    )
    rate = eq.rate_design(x) @ laws["rate"]
    loss = eq.plateau_loss_design(x) @ laws["plateau_loss"]
    hazard = eq.hazard_design(x) @ laws["hazard"]
    hazard = hazard - np.log1p(np.exp(hazard) / eq.MOST_HAZARD)
    cold = np.log(level.cold_plateau / (1 - level.cold_plateau))
    values = (cold, loss), level.log_stiffness + rate, np.full(rate.size, p["log_dispersion"])
    return p, level, rate, loss, hazard, values


def places(cohort, point, data):
    """Factor and shift by which the offsets of each run turn into its luck, by kind."""
    p, *_, base = bases(cohort, point)
    factor, shift = np.ones_like(point["run_offset"]), np.zeros_like(point["run_offset"])
    by_cold, by_loss, constant = data["run_table"][:, RUN_PLACES:].T[:3]
    shift[0] = by_cold * base[0][0] + by_loss * base[0][1] - constant
    for kind, name in SPREADS.items():
        spread = np.exp(p[name])
        anchor, reference, weight = data["run_table"][:, RUN_PLACES + 3 * kind :].T[:3]
        reference = np.where(weight > 0, reference, spread)
        factor[kind] = (reference / spread) ** weight
        shift[kind] = weight * (base[kind] - anchor) / reference
    return factor, shift


def lucks(cohort, point, data):
    """Luck of every run, and the log density of its offsets less that of standard normals."""
    factor, shift = places(cohort, point, data)
    luck = factor * (point["run_offset"] - shift)
    added = norm.logpdf(luck) + np.log(factor) - norm.logpdf(point["run_offset"])
    return luck, added[:, np.isin(np.arange(len(cohort.runs)), cohort.run_of_bin)].sum()


def by_hand(cohort, point, data, family=SPECTRUM, *, degrees=5.0, share=0.5, tied=True):
    """Log likelihood with every covariance matrix written out."""
    p, level, rate, loss, log_hazard, _ = bases(cohort, point)
    luck, total = lucks(cohort, point, data)
    task = cohort.task_of_group[cohort.group_of_run]
    run = eq.run_level(
        p,
        level,
        rate,
        loss,
        tuple(luck),
        point["task_level"][2, task],
        cohort.minibatches * cohort.epochs,
        cohort.clipped,
    )
    uncorrected = eq.uncorrected(p, cohort.corrected)

    def mean(r, table):
        powers = p["rate.learning_rate"] ** np.arange(4)
        clock = clock_polynomial(table) @ powers
        one = eq.RunLevel(*(values[r] for values in run))
        momentum, age = cohort.momentum[r], cohort.mean_age[r]
        if not family.is_oscillator:
            return eq.expected_reward(clock, one, momentum, age, uncorrected[r])
        mode = coefficients(one.stiffness, momentum, age, uncorrected[r])
        stale = 1 - mode.damping
        damping = 1 - stale / (1 + (stale / eq.STALE_LIMIT) ** 4) ** 0.25
        mode = Oscillator(mode.mass, damping, mode.stiffness)
        return trajectory(clock, one.start, one.plateau, mode)

    within, wander = expit(p["within_log_odds"]), np.exp(2 * p["log_misfit"])
    for r in range(len(cohort.runs)):
        total += cohort.collapsed[r] * log_hazard[r]
        total -= np.exp(log_hazard[r]) * cohort.exposure[r]
        bins = cohort.run_of_bin == r
        step, size = cohort.step[bins], bins.sum()
        if size:
            apart = np.abs(np.subtract.outer(step, step))
            slow = wander * np.exp(-apart / (share * max(step[-1], 1.0)))
            sampling = cohort.noise_known + within * cohort.noise_per_completion
            sampling = sampling + (1 - within) * cohort.noise_per_prompt
            white = np.exp(2 * p["log_noise_scale"]) * sampling[bins] + 1e-6
            residual = cohort.reward[bins] - mean(r, cohort.clock[bins])
            covariance = slow + np.diag(white) if tied else np.diag(np.diag(slow) + white)
            total += multivariate_t.logpdf(residual, None, covariance, degrees)
            total -= constant(size, degrees)
        tests = cohort.run_of_eval == r
        if tests.any():
            group = cohort.group_of_run[r]
            now, base = mean(r, cohort.eval_clock[tests]), run.start[r]
            first = expit(point["eval_level"][0, group])
            # Odds of the share of the headroom gained; below the start the same share is lost.
            odds = (now - base) / (1 - now) * np.exp(point["eval_level"][1, group])
            gained = first + (1 - first) * odds / (1 + odds)
            residual = cohort.eval_reward[tests] - np.where(now < base, first * now / base, gained)
            scale = np.sqrt(np.exp(2 * p["log_eval_noise"]) + wander + 1e-6)
            total += (student.logpdf(residual, degrees, 0.0, scale) - constant(1, degrees)).sum()
    return float(total)


def constant(size, degrees):
    """What the density of a Student t adds that no parameter moves."""
    half = gammaln((degrees + size) / 2) - gammaln(degrees / 2)
    return half - size / 2 * np.log(degrees * np.pi)


@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("name", SCENARIOS)
def test_value_is_that_of_the_equations_and_dense_matrices(name, family, placed):
    for seed in range(3):
        cohort, data, point = case(name, family, placed=placed, seed=seed)
        found, _ = likelihood(data, point)
        assert np.isfinite(found)
        assert found == pytest.approx(by_hand(cohort, point, data, family), rel=1e-10, abs=1e-8)


@pytest.mark.parametrize("wrong", [{"degrees": 6.0}, {"share": 0.4}, {"tied": False}])
def test_comparison_rejects_another_formula(wrong):
    cohort, data, point = case("all there is")
    found, _ = likelihood(data, point)
    assert abs(by_hand(cohort, point, data, **wrong) - found) > 1e-3
    assert found == pytest.approx(by_hand(cohort, point, data), rel=1e-10)


@pytest.mark.parametrize("placed", [False, True])
def test_every_parameter_counts_in_the_comparison(placed):
    cohort, data, point = case("all there is", placed=placed)
    found, slope = likelihood(data, point)
    vector, silent = flat(point), []
    for index in range(vector.size):
        moved = vector.copy()
        moved[index] += 0.05
        if abs(by_hand(cohort, unflat(moved, cohort), data) - found) < 1e-6:
            silent.append(index)
    np.testing.assert_array_equal(silent, np.flatnonzero(slope == 0))
    # Luck of the run that logged nothing, and what tells of evaluations of a group without any.
    runs = len(cohort.runs)
    offsets = vector.size - 3 * runs + 2 + runs * np.arange(3)
    tested = vector.size - 3 * runs - 4 * len(cohort.groups)
    untested = [g for g in range(3) if g not in cohort.group_of_run[cohort.run_of_eval]]
    pairs = [tested + row * 3 + g for row in range(2) for g in untested]
    assert set(silent) == {*offsets, *pairs}


# Gradient --------------------------------------------------------------------------------------

STEP = 4e-3


def differences(function, vector):
    """Central differences of sixth order, by each coordinate along the last axis."""
    out = []
    for index in range(vector.size):
        total = 0.0
        for place, weight in ((1, 45), (2, -9), (3, 1)):
            for sign in (1, -1):
                moved = vector.copy()
                moved[index] += sign * place * STEP
                total += sign * weight * function(moved)
        out.append(total / (60 * STEP))
    return np.stack(out, axis=-1)


def mismatch(slope, difference):
    """Largest difference relative to a slope, of which those below 1 count as 1."""
    return np.max(np.abs(slope - difference) / np.maximum(np.abs(difference), 1.0))


@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize("family", [SPECTRUM, OSCILLATOR], ids=["spectrum", "oscillator"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_gradient_is_that_of_finite_differences(name, family, placed):
    for seed in range(2):
        cohort, data, point = case(name, family, placed=placed, seed=seed)
        _, slope = likelihood(data, point)
        found = differences(lambda v, c=cohort, d=data: likelihood(d, unflat(v, c))[0], flat(point))
        assert mismatch(slope, found) < 1e-6


@pytest.mark.evidence
@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_gradient_is_that_of_the_equations(family):
    cohort, data, point = case("all there is", family, placed=True)
    _, slope = likelihood(data, point)
    value = differences(lambda v: by_hand(cohort, unflat(v, cohort), data, family), flat(point))
    assert mismatch(slope, value) < 1e-6


@pytest.mark.evidence
def test_gradient_check_rejects_another_formula():
    cohort, data, point = case("two tasks")
    _, slope = likelihood(data, point)

    def off(**wrong):
        function = lambda v: by_hand(cohort, unflat(v, cohort), data, **wrong)  # noqa: E731
        return mismatch(slope, differences(function, flat(point)))

    assert off() < 1e-6
    assert off(degrees=5.001) > 1e-5
    assert off(share=0.501) > 1e-5


@pytest.mark.parametrize("name", ["only collapsed", "one group", "all there is"])
def test_hazard_has_its_slope_near_and_beyond_the_most(name):
    """From a hundredth of the most to where the law is cut off lest it overflow."""
    cohort, data, point = case(name)
    here = [POPULATION.index(f"hazard.{term}") for term in LAWS["hazard"]]
    level, most = here[0], np.log(eq.MOST_HAZARD)
    slopes = []
    for law in (most - 5, most - 1, most, most + 1, most + 5, 20.0, 49.99, 50.0, 50.01, 80.0):
        # Every run at this value of its law, give or take what the exponents make of it.
        point["population"][here] = [law, *(0.05 * np.arange(1, len(here)))]
        found, slope = likelihood(data, point)
        assert found == pytest.approx(by_hand(cohort, point, data), rel=1e-10)
        number = differences(lambda v: likelihood(data, unflat(v, cohort))[0], flat(point))
        assert mismatch(slope[here], number[here]) < 1e-6
        *_, log_hazard, _ = bases(cohort, point)
        rate = np.exp(log_hazard)
        by_law = (cohort.collapsed - rate * cohort.exposure) * (1 - rate / eq.MOST_HAZARD)
        assert slope[level] == pytest.approx(by_law.sum(), rel=1e-9, abs=1e-9)
        # A rate without a most has another.
        apart = abs(slope[level] - (cohort.collapsed - np.exp(law) * cohort.exposure).sum())
        assert apart > 1e-3 * cohort.exposure.sum() * np.exp(law)
        slopes.append(slope[level])
    assert abs(slopes[1]) > 0.1
    np.testing.assert_allclose(slopes[-4:], 0.0, atol=1e-9)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_oscillator_is_smooth_across_critical_damping(momentum):
    """Value and slope on both sides of the change of branch."""
    cohort, data, point = case("one run", OSCILLATOR)
    cohort = replace(cohort, momentum=np.full(1, momentum))
    data = data_of(cohort, PRIORS, OSCILLATOR)
    critical = (1 - momentum) / (2 * (1 + momentum))
    *_, (_, log_stiffness, _) = bases(cohort, point)
    for off in (-1e-3, -1e-6, 0.0, 1e-6, 1e-3):
        here = {name: values.copy() for name, values in point.items()}
        here["task_level"][1] += np.log(critical) + off - log_stiffness
        found, slope = likelihood(data, here)
        assert found == pytest.approx(by_hand(cohort, here, data, OSCILLATOR), rel=1e-10)
        number = differences(lambda v: likelihood(data, unflat(v, cohort))[0], flat(here))
        assert mismatch(slope, number) < 1e-6


# Placement -------------------------------------------------------------------------------------


def in_places(cohort, point, data):
    """The same runs in the coordinates of other places; ``point`` holds luck."""
    factor, shift = places(cohort, point, data)
    return {**point, "run_offset": point["run_offset"] / factor + shift}, np.log(factor).sum()


@pytest.mark.parametrize("name", ["one run", "two tasks", "all there is"])
def test_luck_does_not_depend_on_the_places(name):
    for seed in range(4):
        cohort, plain, point = case(name, seed=seed)
        np.testing.assert_array_equal(luck(plain, point), point["run_offset"])
        data = with_places(plain, np.random.default_rng(seed))
        elsewhere, _ = in_places(cohort, point, data)
        moved = elsewhere["run_offset"] != point["run_offset"]
        shares = data["run_table"][:, [RUN_PLACES, RUN_PLACES + 5, RUN_PLACES + 8]].T
        np.testing.assert_array_equal(moved, shares > 0)
        found = luck(data, elsewhere)
        np.testing.assert_allclose(found, point["run_offset"], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("family", [SPECTRUM, OSCILLATOR], ids=["spectrum", "oscillator"])
@pytest.mark.parametrize("name", ["one run", "two tasks", "all there is"])
def test_density_changes_with_the_places_by_their_jacobian(name, family):
    for seed in range(4):
        cohort, plain, point = case(name, family, seed=seed)
        data = with_places(plain, np.random.default_rng([73, seed]))
        elsewhere, log_jacobian = in_places(cohort, point, data)
        densities = []
        for numbers, where in ((plain, point), (data, elsewhere)):
            densities.append(Block(cohort, numbers).at(where)[0])
        assert densities[1] - densities[0] == pytest.approx(log_jacobian, rel=1e-8, abs=1e-8)
        assert abs(log_jacobian) > 1e-3
