"""What pilots of a language model say of its next run: shared departures, and how runs go on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated_runs import Plan, made_up_posterior, with_meta, with_priors, with_runs

from advisor.advice import stacked
from advisor.forecast import Forecaster, RunEffect, Target, analogues, final_reward
from advisor.forecast.new_configuration import CLEAR, HORIZONS, Continued, coordinates_of
from advisor.model import RUN_EFFECTS, load_priors
from advisor.runs import Settings

RATES = (1e-6, 1e-5, 1e-4)
SIZE = 1.5e9
ROWS = 30
RULES = load_priors("theory").discrepancy


def posterior_of(rates=RATES, *, parameters=SIZE, draws=1000, **named):
    return made_up_posterior(
        [Plan(rate, steps=ROWS, parameters=parameters) for rate in rates], draws=draws, **named
    )


def with_rows(posterior, reward):
    """The same posterior, each of whose pilots logged these rewards."""
    step = tuple(float(at) for at in range(1, len(reward) + 1))
    rows = {"logged_steps": step, "logged_rewards": tuple(reward), "steps": float(ROWS)}
    return with_runs(posterior, **rows)


def forecaster_of(posterior, **named):
    run = posterior.meta.runs[0]
    return Forecaster(posterior, Target(run.task, run.model, run.parameters), **named)


def at_rate(posterior, rate) -> Settings:
    return posterior.meta.runs[0].settings.model_copy(update={"learning_rate": rate})


@pytest.fixture(scope="module")
def posterior():
    return posterior_of()


def explained(posterior, rate, place):
    """Correlation of a configuration's effects with those fitted to a pilot."""
    forecaster = forecaster_of(posterior)
    effect = forecaster.effect_of(at_rate(posterior, rate))
    fitted = forecaster_of(posterior, run_effect=RunEffect.of_pilot(place)).run_effect
    return np.corrcoef(effect.ravel(), fitted.ravel())[0, 1]


def test_a_piloted_setting_keeps_its_pilots_departure_and_a_far_one_the_laws_word(posterior):
    near, between, far = (explained(posterior, rate, 1) for rate in (1e-5, 2e-5, 1e2))
    assert near > between > 0.1
    assert abs(far) < 0.05
    spread = forecaster_of(posterior).effect_of(at_rate(posterior, 1e2)).std()
    assert spread == pytest.approx(1.0, abs=0.05)


def test_stability_turns_on_the_stiffness_of_the_run_that_is_forecast(posterior):
    forecaster = forecaster_of(posterior)
    free = at_rate(posterior, RATES[1]).model_copy(update={"importance_ratio": False})
    assert forecaster.law_stiffness(free) == pytest.approx(forecaster.run(free).stiffness)


def test_what_the_seed_does_is_left_open_in_a_repeat(posterior):
    forecaster = forecaster_of(posterior)
    point = coordinates_of(at_rate(posterior, RATES[0]))
    assert point[0] == pytest.approx(np.log(RATES[0]))
    known = np.stack([posterior.flat(name)[:, 0] for name in RUN_EFFECTS])
    left = forecaster.effect_of(at_rate(posterior, RATES[0])) - known
    shared = RULES.configuration_share
    assert 0.5 * (1 - shared) < left.var() < 2 * (1 - shared**2)


def test_a_run_that_has_begun_and_small_models_are_left_to_the_laws(posterior):
    assert forecaster_of(posterior).next_run is not None
    assert forecaster_of(posterior, run_effect=RunEffect.of_pilot(0)).next_run is None
    assert forecaster_of(posterior_of(parameters=1e6)).next_run is None
    assert forecaster_of(with_rows(posterior, ())).next_run is None


@pytest.mark.parametrize("level", [0.3, 0.6, 0.85])
def test_a_pilot_that_does_not_fall_ends_no_lower_than_it_stands(posterior, level):
    reward = np.linspace(level - 0.1, level + 0.1, ROWS)
    stands = float(reward[-ROWS // 3 :].mean())
    steady = with_rows(posterior, reward)
    for rate in RATES:
        for steps in (ROWS, 3 * ROWS, 10 * ROWS):
            settings = at_rate(steady, rate).planned_over(steps)
            ends = final_reward(forecaster_of(steady), settings, steps)
            # Up to the noise of its rows and what the neighbours' departures add.
            assert np.median(ends) > stands - 0.06
    # The laws alone put it elsewhere: the pilots' rows are what binds.
    laws = forecaster_of(with_rows(posterior, ()))
    ends = [np.median(final_reward(laws, at_rate(posterior, r), 3 * ROWS)) for r in RATES]
    assert max(ends[0], ends[2]) < 0.4


def test_what_a_run_starts_from_does_not_turn_on_where_its_pilots_stand(posterior):
    steady = with_rows(posterior, np.full(ROWS, 0.85))
    settings, early = at_rate(steady, 1e-5).planned_over(90), [0, 1, 90]
    forecaster = forecaster_of(steady)
    level, curve = (of(settings, early) for of in (forecaster.scaled_reward, forecaster.curve))
    assert level[:, :2] == pytest.approx(curve[:, :2], abs=0.01)
    assert np.median(forecaster.scaled_reward(settings, [ROWS])) > 0.8


def test_one_that_falls_may_end_lower(posterior):
    falling = with_rows(posterior, np.linspace(0.9, 0.4, ROWS))
    rising = with_rows(posterior, np.linspace(0.4, 0.9, ROWS))
    ends = [
        np.median(final_reward(forecaster_of(one), at_rate(one, 1e-5), 3 * ROWS))
        for one in (falling, rising)
    ]
    assert ends[0] < ends[1] - 0.1


def test_departures_of_ends_are_known_at_each_horizon_and_kept_beyond():
    one = Continued(20.0, 0.5, np.log([10.0, 20.0, 40.0]), np.array([[0.0], [1.0], [2.0]]))
    steps = np.array([5.0, 10.0, 20.0, 40.0, 400.0])
    assert [one.end(last)[0] for last in steps] == pytest.approx([0, 0, 1, 2, 2])
    assert 0 < one.end(15.0)[0] < 1


def turns(values, steps, least=0.01):
    """Logs of the steps at which a path turns by more than ``least`` of the reward's range."""
    found, kept, way = [], values[0], 0
    for value, step in zip(values, steps, strict=True):
        if abs(value - kept) > least:
            if way and np.sign(value - kept) != way:
                found.append(np.log(step))
            kept, way = value, np.sign(value - kept)
        elif way * (value - kept) > 0:
            kept = value
    return found


@pytest.mark.parametrize("seed", range(10))
def test_no_forecast_turns_twice_within_an_e_fold(seed):
    """Median and both ends of the interval, along 200 steps, from pilots that rise, stand, fall."""
    rng = np.random.default_rng(seed)
    steps = np.arange(ROWS, 201)
    for direction in (-0.2, 0.0, 0.15, 0.3, 0.5):
        rows = 0.4 + direction * np.arange(ROWS) / ROWS + 0.03 * rng.standard_normal(ROWS)
        posterior = with_rows(posterior_of(seed=seed + 1, draws=300), np.clip(rows, 0, 1))
        settings = at_rate(posterior, rng.choice(RATES)).planned_over(200)
        path = forecaster_of(posterior).scaled_reward(settings, steps)
        for values in np.quantile(path, (0.1, 0.5, 0.9), axis=0):
            found = turns(values, steps)
            assert not np.any(np.diff(found) < 1), (direction, found)


def test_a_forecast_passes_through_where_its_pilot_stands(posterior):
    """Whatever the pooled curve has: its own rows are what the reader has just seen."""
    off = []
    for level in (0.2, 0.5, 0.9):
        steady = with_rows(posterior, np.linspace(level - 0.02, level + 0.02, ROWS))
        settings = at_rate(steady, RATES[1]).planned_over(200)
        forecaster = forecaster_of(steady)
        path = forecaster.scaled_reward(settings, [ROWS, 200])
        # Its rows are still, the curve rises on between the middle of its last third and its end.
        assert np.median(path[:, 0]) == pytest.approx(level, abs=0.06)
        off.append(np.median(forecaster.curve(settings, [ROWS])) - level)
    assert np.abs(off).max() > 0.2  # control


def test_rows_of_a_long_pilot_that_are_not_remembered_count(monkeypatch):
    told = []

    def spied(*given, thinned):
        told.append((len(given[1]), thinned))
        return analogues.describe(*given, thinned=thinned)

    monkeypatch.setattr("advisor.forecast.new_configuration.describe", spied)
    plan = Plan(1e-5, steps=1200, parameters=SIZE)
    forecaster_of(made_up_posterior([plan], draws=10)).scaled_reward(plan.completed, [2400])
    assert told == [(400, 3)]


def test_a_decaying_rate_decays_over_each_length_that_analogues_tell_of():
    """Else what the curve gains beyond a pilot's schedule is added to what the analogues gain."""
    plan = Plan(1e-5, steps=ROWS, parameters=SIZE, schedule="linear")
    known = forecaster_of(made_up_posterior([plan], draws=100)).next_run
    asked = {}

    def level(settings, steps):
        asked[float(steps[0])] = settings.planned_steps
        return np.full((known.known.shape[1], len(steps)), 0.4)

    known.path(plan.completed, np.array([5.0 * ROWS]), level)
    del asked[np.ceil(0.95 * 5 * ROWS)]  # of the run itself
    assert asked.pop(float(ROWS)) == ROWS
    del asked[float(np.ceil(ROWS - ROWS // 3 + 1))]  # of the pilot's last third
    assert asked.keys() == set(np.ceil(0.95 * ROWS * HORIZONS))
    assert all(steps == np.ceil(0.95 * planned) for steps, planned in asked.items())


def test_settings_together_and_one_by_one_agree(posterior):
    forecaster, steps = forecaster_of(posterior), 90
    each = [at_rate(posterior, rate).planned_over(steps) for rate in (2e-6, 3e-5, 1e-4)]
    (places, together, last), *rest = stacked(each, [steps] * 3, forecaster.size)
    assert not rest
    assert places == [0, 1, 2]
    found = forecaster.scaled_reward(together, last)
    for own, settings in zip(found, each, strict=True):
        assert own == pytest.approx(forecaster.scaled_reward(settings, last), rel=1e-9)


def test_what_two_pilots_miss_by_hardly_goes_together(posterior):
    steady = forecaster_of(with_rows(posterior, np.linspace(0.2, 0.3, ROWS)))
    ends = [steady.outcome(at_rate(steady.posterior, rate), [300])[:, 0] for rate in RATES]
    apart = np.corrcoef(np.argsort(np.argsort(ends)))
    assert np.abs(apart[np.triu_indices(3, 1)]).max() < 0.2
    # Settings that follow the same pilot share what it misses by.
    near = steady.outcome(at_rate(steady.posterior, 1.02e-5), [300])[:, 0]
    assert np.corrcoef(np.argsort(np.argsort([ends[1], near])))[0, 1] > 0.7


@pytest.mark.parametrize("level", [0.6, 0.9])
def test_train_rows_above_their_curve_lift_no_held_out_reward(posterior, level):
    reward = np.linspace(level - 0.02, level + 0.02, ROWS)
    forecaster = forecaster_of(with_rows(with_meta(posterior, evaluated=(True,)), reward))
    settings = at_rate(posterior, 1e-5).planned_over(ROWS)
    curve = np.median(forecaster.outcome_of(forecaster.curve(settings, [ROWS])))
    assert curve < level - 0.1
    assert np.median(forecaster.outcome(settings, [ROWS])) == pytest.approx(curve, abs=0.02)


def test_a_run_twice_as_long_often_ends_where_its_pilot_stands(posterior):
    # Still for its last fifth, so that what stays there can be told from what curves say.
    reward = np.r_[np.linspace(0.30, 0.45, ROWS - 8), np.full(8, 0.5)]
    forecaster = forecaster_of(with_rows(posterior, reward))
    settings = at_rate(posterior, 1e-5)
    shares = [
        np.mean(np.abs(forecaster.scaled_reward(settings, [steps])[:, 0] - 0.5) < 2e-3)
        for steps in (2 * ROWS, 4 * ROWS)
    ]
    assert shares[0] == pytest.approx(RULES.stands, abs=0.08)
    assert shares[1] < 0.1


@pytest.mark.parametrize(("parameters", "factor"), [(1.35e8, RULES.small_spread), (SIZE, 1.0)])
def test_ends_of_models_smaller_than_public_ones_spread_further(parameters, factor):
    known = forecaster_of(posterior_of(parameters=parameters)).next_run
    odds = np.random.default_rng(0).normal(0.3, 1.0, 501)
    for times, doublings in ((0.5, 0), (1, 0), (2, 1), (8, 3)):
        spread, middle = known._spread(odds, times * ROWS), np.median(odds)
        assert spread - middle == pytest.approx((1 + (factor - 1) * doublings) * (odds - middle))


def test_longer_runs_are_lifted_by_the_share_of_its_headroom_that_a_pilot_gained(posterior):
    """In log-odds, for each e-fold beyond twice the pilot; the end is that of the last tenth."""
    reward = np.linspace(0.4, 0.5, ROWS)
    first, last = reward[: ROWS // 3].mean(), reward[-ROWS // 3 :].mean()

    def end(gain):
        rules = RULES.model_copy(update={"gain": gain})
        forecaster = forecaster_of(with_rows(with_priors(posterior, discrepancy=rules), reward))
        settings = at_rate(posterior, RATES[1]).planned_over(8 * ROWS)
        return np.median(analogues.log_odds(forecaster.scaled_reward(settings, [8 * ROWS]), CLEAR))

    lift = (last - first) / (1 - first) * np.log(0.95 * 8 / 2)
    assert end(3.0) - end(2.0) == pytest.approx(lift, rel=0.02)


def test_small_models_that_do_not_fall_come_out_higher_far_beyond_their_pilots():
    def shift(parameters, reward):
        posterior = with_rows(posterior_of(parameters=parameters), reward)
        forecaster = forecaster_of(posterior)
        settings = at_rate(posterior, RATES[1]).planned_over(8 * ROWS)
        level = forecaster.curve(settings, [ROWS, 8 * ROWS])
        known = forecaster.next_run
        # The curve and the analogues of a model's size are its own: only what is added is compared.
        known.corpus = replace(known.corpus, features=np.zeros_like(known.corpus.features))
        found = known.path(settings, np.array([8.0 * ROWS]), lambda *_: level[:, 1:])
        return np.median(analogues.log_odds(found, CLEAR)) - np.median(
            analogues.log_odds(level[:, 1:], CLEAR)
        )

    rising, falling = np.linspace(0.4, 0.5, ROWS), np.linspace(0.5, 0.4, ROWS)
    assert shift(1.35e8, rising) - shift(SIZE, rising) > 0.2
    assert abs(shift(1.35e8, falling) - shift(SIZE, falling)) < 0.15
