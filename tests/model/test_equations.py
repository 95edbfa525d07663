"""The structural equations: values by hand, limits, and one meaning in numpy and in PyTensor."""

from __future__ import annotations

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.model import (
    CLOCK_EXPONENTS,
    POPULATION,
    Covariates,
    clock_polynomial,
)
from advisor.model import equations as eq
from advisor.theory import cumulative_clock, schedule_factors

LADDER = settings(max_examples=100)
SHARES = st.floats(0.001, 0.999)
ODDS = st.floats(-8, 8)
SIZE = 60


def logit(share):
    return np.log(share) - np.log1p(-share)


# Laws ------------------------------------------------------------------------------------------


def test_designs_worked_out_by_hand():
    one = Covariates(1.0, 2.0, 3.0, 5.0, 7.0, 11.0)
    np.testing.assert_array_equal(eq.rate_design(one), [1, 2, 3])
    np.testing.assert_array_equal(eq.plateau_loss_design(one), [1, 1, -5, 18, 5])
    np.testing.assert_array_equal(eq.hazard_design(one), [1, 1, -5, 7, 11, 5])


def test_at_the_reference_only_the_level_of_a_law_counts():
    here = Covariates(*[0.0] * 6)
    assert not eq.rate_design(here).any()
    for design in (eq.plateau_loss_design(here), eq.hazard_design(here)):
        assert design.tolist() == [1.0, *[0.0] * (design.size - 1)]


# Clock -----------------------------------------------------------------------------------------

SCHEDULES = {
    "warm-up": ("constant", 40),
    "linear": ("linear", 0),
    "cosine": ("cosine", 0),
    "warm-up and linear": ("linear", 40),
    "warm-up and cosine": ("cosine", 40),
}


def tabulated(factors, exponent):
    """Clock by the polynomial, and by direct summation."""
    table = np.stack([cumulative_clock(factors, a) for a in CLOCK_EXPONENTS], axis=1)
    powers = exponent ** np.arange(4)
    return clock_polynomial(table) @ powers, cumulative_clock(factors, exponent)


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.4, 1.0, 2.5])
def test_polynomial_clock_of_a_constant_schedule_is_exact(exponent):
    guess, direct = tabulated(schedule_factors("constant", 300), exponent)
    np.testing.assert_allclose(guess, direct, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("exponent", [0.5, 0.7, 0.85, 1.0, 1.15, 1.3, 1.5])
def test_polynomial_clock_is_within_one_percent_of_the_direct_sum(schedule, exponent):
    name, warmup = SCHEDULES[schedule]
    guess, direct = tabulated(schedule_factors(name, 200, warmup_steps=warmup), exponent)
    # Inside a warm-up that has covered a fiftieth of the way, up to 3.5 % of what there is by then.
    late = direct > 0.1 * direct[-1]
    np.testing.assert_allclose(guess[late], direct[late], rtol=0.01)
    assert np.abs(guess - direct).max() < 0.01 * direct[-1]


def test_clock_check_rejects_another_exponent_and_no_schedule():
    factors = schedule_factors("linear", 200, warmup_steps=40)
    guess, _ = tabulated(factors, 1.0)
    assert abs(guess[-1] / cumulative_clock(factors, 1.1)[-1] - 1) > 0.03
    assert abs(guess[-1] / 200 - 1) > 0.3


# Parts -----------------------------------------------------------------------------------------


@LADDER
@given(share=SHARES, odds=ODDS)
def test_shifted_share_moves_the_log_odds(share, odds):
    moved = eq.shifted_share(share, odds)
    assert 0 < moved < 1
    assert logit(moved) == pytest.approx(logit(share) + odds, abs=1e-6)
    assert eq.shifted_share(moved, -odds) == pytest.approx(share, abs=1e-9)
    assert eq.shifted_share(share, 0.0) == share


def test_sigmoid_does_not_overflow():
    np.testing.assert_allclose(
        eq.sigmoid(np.array([-1e4, -2.0, 0.0, 2.0, 1e4])),
        [0, 1 / (1 + np.exp(2)), 0.5, 1 / (1 + np.exp(-2)), 1],
        atol=1e-15,
    )


@LADDER
@given(
    stiffness=st.floats(1e-6, 1e3),
    interval=st.integers(2, 64),
    limit=st.floats(0.05, 5),
)
def test_clipping_caps_the_progress_of_one_refresh(stiffness, interval, limit):
    def clipped(k=stiffness, K=interval, on=1.0):
        return eq.clipped_stiffness(k, K, limit, on)

    assert clipped(K=1) == stiffness
    assert clipped(on=0.0) == stiffness
    assert clipped() < stiffness
    # The steps after the first cover at most the limit, and nearly that once k K is far beyond it.
    assert clipped() * (interval - 1) < limit
    assert clipped(k=1e9) * (interval - 1) == pytest.approx(limit, rel=1e-6)
    assert clipped(k=1e-9) == pytest.approx(1e-9, rel=1e-5)
    assert clipped(k=1.1 * stiffness) > clipped()
    # More steps per refresh: less progress per step, but never less per refresh.
    assert clipped(K=interval + 1) < clipped()


def test_uncorrected_share_is_one_without_a_ratio_and_learned_with_one():
    population = {"uncorrected_log_odds": np.array([-40.0, 0.0, 40.0])}
    np.testing.assert_array_equal(eq.uncorrected(population, 0.0), [1, 1, 1])
    np.testing.assert_allclose(eq.uncorrected(population, 1.0), [0, 0.5, 1], atol=1e-15)


# Collapse rate ---------------------------------------------------------------------------------


@LADDER
@given(law=st.floats(-30, 15), step=st.floats(1e-3, 10))
def test_hazard_rises_with_its_law_and_stays_below_the_most(law, step):
    assert eq.hazard(law) < eq.hazard(law + step) <= eq.MOST_HAZARD
    # Rates in a row: the time to a fall is that which the law says and that which it takes.
    assert 1 / eq.hazard(law) == pytest.approx(np.exp(-law) + 1 / eq.MOST_HAZARD, rel=1e-12)


# Anchors ---------------------------------------------------------------------------------------

SPOKEN = {"plateau_loss.level": -5.0, "plateau_loss.learning_rate": 1.5, "hazard.level": -6.0}


def test_levels_have_a_way_back_for_many_draws_at_once():
    rng = np.random.default_rng(95)
    names, stiffness = POPULATION, rng.normal(-4, 2, 500)
    population = {name: rng.normal(0, 3, 500) for name in names}
    there = eq.at_reference(population, stiffness)
    back = eq.at_anchor(there, stiffness)
    assert tuple(there) == tuple(back) == names
    for name in names:
        np.testing.assert_allclose(back[name], population[name], rtol=1e-12, atol=1e-12)
        is_level = name in ("plateau_loss.level", "hazard.level")
        assert np.all((there[name] == population[name]) != is_level)


def test_levels_at_the_reference_worked_out_by_hand():
    # Twice as stiff as the anchor: the loss is 2^1.5 times as large, the rate that to the 1.3.
    there = eq.at_reference(SPOKEN, np.log(0.1))
    assert np.exp(there["plateau_loss.level"]) == pytest.approx(np.exp(-5) * 2**1.5)
    assert np.exp(there["hazard.level"]) == pytest.approx(np.exp(-6) * (np.exp(-5) * 2**1.5) ** 1.3)
    # At the anchors nothing moves.
    hot = SPOKEN | {"plateau_loss.level": 0.0}
    assert eq.at_reference(hot, np.log(0.05)) == hot


@LADDER
@given(
    log_factor=st.floats(-7, 7),
    log_stiffness=st.floats(-9, 0),
    loss=st.floats(-10, 2),
    by_rate=st.floats(0.5, 3),
)
def test_anchored_levels_do_not_know_which_learning_rates_were_piloted(
    log_factor, log_stiffness, loss, by_rate
):
    """The same task and model, read along its own laws at another reference learning rate."""

    def spoken(moved, exponent=1.0, by_hazard=eq.HAZARD_PER_LOSS * by_rate):
        here = {
            "plateau_loss.level": loss + by_rate * moved,
            "plateau_loss.learning_rate": by_rate,
            "hazard.level": -4.0 + by_hazard * moved,
        }
        return eq.at_anchor(here, log_stiffness + exponent * moved)

    # Of a stiffness that is proportional to the learning rate, as is expected before any pilot,
    # and a collapse rate that follows the loss.
    here = spoken(0.0)
    assert spoken(log_factor) == pytest.approx(here, abs=1e-9)
    steep = spoken(log_factor, by_hazard=eq.HAZARD_PER_LOSS * by_rate + 0.5)
    assert steep["hazard.level"] - here["hazard.level"] == pytest.approx(0.5 * log_factor, abs=1e-9)
    blunt = spoken(log_factor, exponent=0.75)["plateau_loss.level"] - here["plateau_loss.level"]
    assert blunt == pytest.approx(0.25 * by_rate * log_factor, abs=1e-9)


# Levels ----------------------------------------------------------------------------------------

MEANS = {
    "curvature_exponent": 0.3,
    "log_progress_limit": np.log(0.4),
    "log_headroom_spread": np.log(0.5),
    "log_model_spread": np.log(0.2),
    "log_run_rate_spread": np.log(0.1),
    "log_run_plateau_spread": np.log(0.25),
    "log_run_shape_spread": np.log(0.5),
    "log_run_loss_spread": np.log(0.75),
    "uncorrected_log_odds": 0.0,
    "log_dispersion": np.log(0.6),
}


def test_group_level_worked_out_by_hand():
    group = eq.group_level(MEANS, 0.0, np.log(0.02), np.log(0.25), 2.0, -1.0, np.log(8.0))
    headroom = np.e / (1 + np.e)
    assert group.start == pytest.approx(0.2)
    assert group.cold_plateau == pytest.approx(0.2 + 0.8 * headroom)
    assert np.exp(group.log_stiffness) == pytest.approx(0.02 / headroom * 8**0.3 * np.exp(-0.2))


def test_plateau_at_the_reference_is_that_of_a_run_there_without_luck():
    population = MEANS | {"plateau_loss.level": -2.0, "plateau_loss.size": 0.3}
    group = eq.GroupLevel(0.2, 0.8, np.log(0.02))
    here = eq.reference_plateau(population, group, np.log(2.0))
    assert here == pytest.approx(0.8 * np.exp(-np.exp(-2.0) * 2**0.3))
    x = Covariates(0.0, 0.0, 0.0, np.log(2.0), 0.0, 0.0)
    loss = eq.plateau_loss_design(x) @ [-2.0, 9.0, 9.0, 9.0, 0.3]
    run = eq.run_level(MEANS, group, 0.0, loss, (0.0, 0.0, 0.0), 0.0, 1.0, 1.0)
    assert here == pytest.approx(run.plateau)


def test_run_level_worked_out_by_hand():
    group = eq.GroupLevel(0.2, 0.8, np.log(0.02))
    luck = (2.0, -1.0, 3.0)
    run = eq.run_level(MEANS, group, np.log(3.0), np.log(0.1), luck, np.log(1.4), 9.0, 1.0)
    assert run.start == 0.2
    # Odds 4 moved by exp(0.5); of the tenth that is lost to temperature, exp(-1.5) remains.
    odds = 4 * np.exp(0.5)
    assert run.plateau == pytest.approx(odds / (1 + odds) * np.exp(-0.1 * np.exp(-1.5)))
    raw = 0.06 * np.exp(-0.1)
    assert run.stiffness == pytest.approx(raw / (1 + raw * 8 / 0.4))
    assert run.dispersion == pytest.approx(0.6 * np.exp(1.5))
    assert run.onset == pytest.approx(1.4)


def curve(
    clock,
    stiffness=0.05,
    *,
    momentum=0.9,
    age=0.0,
    share=0.0,
    dispersion=1.0,
    onset=1.0,
    single=0.0,
):
    return eq.expected_reward(
        np.asarray(clock, dtype=float),
        eq.RunLevel(0.2, 0.8, stiffness, dispersion, onset),
        momentum,
        age,
        share,
        single,
    )


def test_slow_start_bends_the_curve_and_keeps_its_ends():
    time = np.array([0.0, 1.0, 5.0, 20.0, 1e6])
    plain, slow = (curve(time, momentum=0.0, dispersion=0.5, onset=onset) for onset in (1.0, 1.5))
    np.testing.assert_allclose([slow[0], plain[0]], 0.2)
    assert slow[1] < plain[1]
    np.testing.assert_allclose(slow[-1], plain[-1], atol=1e-6)
    # k t = 1: there the onset does not count.
    assert slow[3] == pytest.approx(plain[3])


@LADDER
@given(stiffness=st.floats(1e-4, 50), age=st.floats(0, 1e4), share=st.floats(0, 1))
def test_curve_stays_between_start_and_plateau_however_stale(stiffness, age, share):
    values = curve(np.arange(0, 200, 5.0), stiffness, age=age, share=share)
    assert np.all(np.isfinite(values))
    assert np.all((values > 0.2 - 1e-12) & (values < 0.8 + 1e-12))
    assert np.all(np.diff(values) >= 0)
    fresh = curve(np.arange(0, 200, 5.0), stiffness)
    assert np.all(values >= fresh - 1e-12)


# PyTensor --------------------------------------------------------------------------------------

GROUP_INPUTS = ("headroom_logit", "log_slope", "start_logit", "headroom", "stiffness", "size")
LUCK_INPUTS = ("plateau_luck", "stiffness_luck", "shape_luck")
RUN_INPUTS = ("rate", "loss", *LUCK_INPUTS, "log_onset", "interval", "clipped")
CURVE_INPUTS = ("clock", "momentum", "age", "corrected")
INPUTS = tuple(MEANS)


def chain(values, xp=np):
    """Every level in one go, on whatever the values are."""
    population = {name: values[name] for name in INPUTS}
    group = eq.group_level(population, *(values[name] for name in GROUP_INPUTS), xp)
    run = eq.run_level(
        population,
        group,
        values["rate"],
        values["loss"],
        tuple(values[name] for name in LUCK_INPUTS),
        values["log_onset"],
        values["interval"],
        values["clipped"],
        xp,
    )
    share = eq.uncorrected(population, values["corrected"], xp)
    curve = values["clock"], run, values["momentum"], values["age"], share
    reward = eq.expected_reward(*curve, xp=xp)
    return [*group, *run, reward]


# What the chain returns; in the graph the gradients of the last follow.
OUTPUTS = len(eq.GroupLevel._fields) + len(eq.RunLevel._fields) + 1


NAMES = (*INPUTS, *GROUP_INPUTS, *RUN_INPUTS, *CURVE_INPUTS)
DISCRETE = {"interval", "clipped", "corrected"}
SPREADS = {name for name in INPUTS if name.endswith("_spread")}


@pytest.fixture(scope="module")
def graph():
    inputs = {name: pt.dvector(name) for name in NAMES}
    outputs = chain(inputs, pt)
    smooth = [inputs[name] for name in NAMES if name not in DISCRETE]
    gradients = pytensor.grad(outputs[-1].sum(), smooth)
    return pytensor.function([*inputs.values()], [*outputs, *gradients], mode="FAST_COMPILE")


def evaluate(graph, values):
    return graph(*(values[name] for name in NAMES))


def random_values(rng, reach=2.0):
    """Inputs in a box of ``reach`` standard deviations of broad priors, whatever the pilots."""
    means = dict.fromkeys(SPREADS, -1.5) | {"log_slope": -5.0, "headroom_logit": 1.0}
    values = {
        name: means.get(name, 0.0)
        + (0.7 if name in SPREADS else 1.0) * rng.uniform(-reach, reach, SIZE)
        for name in (*INPUTS, *GROUP_INPUTS, *RUN_INPUTS[:5])
    }
    # A shape, not a scale: a start half or twice as steep.
    values["log_onset"] = 0.2 * rng.uniform(-reach, reach, SIZE)
    values["interval"] = rng.choice([1.0, 2.0, 8.0, 64.0], SIZE)
    values["clipped"] = rng.choice([0.0, 1.0], SIZE)
    values["corrected"] = rng.choice([0.0, 1.0], SIZE)
    values["clock"] = rng.uniform(0, 300, SIZE)
    values["momentum"] = rng.choice([0.0, 0.5, 0.9, 0.99], SIZE)
    values["age"] = rng.choice([0.0, 0.5, 8.0, 100.0], SIZE)
    return values


@pytest.mark.evidence
@pytest.mark.parametrize("seed", range(5))
def test_numpy_and_pytensor_agree(graph, seed):
    values = random_values(np.random.default_rng(seed))
    for number, symbol in zip(chain(values), evaluate(graph, values)[:OUTPUTS], strict=True):
        np.testing.assert_allclose(symbol, number, rtol=1e-10)


@pytest.mark.evidence
@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("size", 2),
        ("loss", 4),
        ("plateau_luck", 4),
        ("interval", 5),
        ("shape_luck", 6),
        ("log_onset", 7),
        ("age", 8),
        ("momentum", 8),
    ],
)
def test_parity_check_rejects_another_input(graph, name, output):
    values = random_values(np.random.default_rng(0))
    symbol = evaluate(graph, values)[output]
    other = chain({**values, name: 0.9 * values[name]})[output]
    assert np.max(np.abs(symbol / other - 1)) > 1e-4
