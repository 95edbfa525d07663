"""The door to the forecasts says what every answer says."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_runs import Plan, made_up_posterior, rising, with_meta, with_priors

import advisor
from advisor.errors import InputError
from advisor.forecast import Forecaster, Target, stability
from advisor.monitoring import Watch

PLANS = (Plan(1e-4), Plan(3e-4), Plan(1e-3, collapse=25))
LARGE = Plan(1e-4, parameters=5e8, model="of-a-language")
END = 180


@pytest.fixture(scope="module")
def posterior():
    return made_up_posterior(PLANS, draws=500, width=0.15)


@pytest.fixture(scope="module")
def of_a_language_model():
    return made_up_posterior([LARGE, Plan(3e-4, parameters=5e8, model="of-a-language")])


def ends(values):
    return np.quantile(values, [0.1, 0.5, 0.9])


@pytest.mark.parametrize("name", ["posterior", "of_a_language_model"])
def test_it_says_what_advise_and_what_if_say(name, request):
    posterior = request.getfixturevalue(name)
    answer = advisor.advise(posterior, steps=END)
    said = posterior.predict(answer.settings, END)
    reward = [answer.reward.low, answer.reward.median, answer.reward.high]
    np.testing.assert_allclose(ends(said.final_train_reward), reward)
    stable = answer.stability.probability
    assert float(said.is_stable.mean()) == pytest.approx(stable, abs=1 / said.draw.size)
    row = advisor.what_if(posterior, learning_rate=answer.settings.learning_rate, steps=END)
    assert ends(said.final_train_reward)[[0, 2]] == pytest.approx(
        row[["reward_low", "reward_high"]].to_numpy(dtype=float)[0], abs=1e-9
    )
    other = posterior.predict(answer.settings.model_copy(update={"learning_rate": 1e-6}), END)
    assert abs(ends(other.final_train_reward) - reward).max() > 0.05


def with_rate_spread(posterior, spread, name="another", size=5e8):
    """Forecaster of a model, where the best rates of models spread so."""
    rules = posterior.meta.priors.discrepancy.model_copy(update={"model_rate_spread": spread})
    return Forecaster(with_priors(posterior, discrepancy=rules), Target("sort", name, size))


HOTTER = LARGE.completed.model_copy(update={"learning_rate": 3e-4})


@pytest.mark.parametrize("spread", [0.5, 1.5])
def test_the_rate_that_suits_a_new_model_spreads_as_it_is_said_to(of_a_language_model, spread):
    """So its log stiffness does by that, times the exponent of the rate."""
    known, new = (with_rate_spread(of_a_language_model, one) for one in (0.0, spread))
    moved = np.log(new.law_stiffness(HOTTER) / known.law_stiffness(HOTTER))
    multiples = moved / new.population["rate.learning_rate"]
    error = spread / np.sqrt(new.size)
    assert multiples.std() == pytest.approx(spread, abs=3 * error / np.sqrt(2))
    assert multiples.mean() == pytest.approx(0.0, abs=3 * error)
    assert error < 0.1 * spread


def test_a_model_that_no_pilot_ran_is_known_less_well(of_a_language_model):
    """Controls: a spread of nothing, and a new small model, whose speed goes by its size."""

    def said(spread, name="another", size=5e8):
        forecaster = with_rate_spread(of_a_language_model, spread, name, size)
        found = stability(forecaster, HOTTER, END)
        return found.by_model, np.ptp(ends(forecaster.law_stiffness(HOTTER)))

    spread = of_a_language_model.meta.priors.discrepancy.model_rate_spread
    piloted, new, as_piloted = said(spread, LARGE.model), said(spread), said(0.0)
    assert spread > 0.5
    assert new[0] < as_piloted[0] - 0.01
    assert new[1] > 1.5 * as_piloted[1]
    assert piloted == said(0.0, LARGE.model)
    assert said(spread, size=1e6) == said(0.0, size=1e6)


def test_what_pilots_show_beyond_the_laws_carries_over(of_a_language_model):
    """In log-odds; control: the laws alone."""
    settings = of_a_language_model.meta.runs[0].settings
    own, new = (
        Forecaster(of_a_language_model, Target("sort", name, 5e8))
        for name in (LARGE.model, "another")
    )

    def odds(share):
        return np.log(share / (1 - share))

    beyond = [
        np.median(odds(one.scaled_reward(settings, END)) - odds(one.curve(settings, END)))
        for one in (own, new)
    ]
    assert beyond[0] == pytest.approx(beyond[1], abs=0.05)
    assert abs(beyond[0]) > 0.1


def test_what_carries_over_is_of_the_same_task_before_the_same_model():
    """Control: the other pilot, of the same model on another task."""
    size = {"parameters": 5e8, "steps": 60}
    posterior = made_up_posterior(
        [Plan(1e-4, model="one", **size), Plan(1e-4, task="mod", model="two", **size)], draws=500
    )
    settings = posterior.meta.runs[0].settings

    def beyond(task, model):
        forecaster = Forecaster(posterior, Target(task, model, 5e8))
        shares = forecaster.scaled_reward(settings, END), forecaster.curve(settings, END)
        return np.subtract(*(np.log(share / (1 - share)) for share in shares))

    new, of_the_task, of_the_model = (
        beyond(*named) for named in (("sort", "two"), ("sort", "one"), ("mod", "two"))
    )
    near = np.abs(np.stack([of_the_task, of_the_model]) - new) < 1e-6
    assert near[0].mean() > 0.9
    assert near[1].mean() < 0.1


def test_several_settings_share_their_draws(posterior):
    own = posterior.meta.runs[0].settings
    twice = [own, own.model_copy(update={"learning_rate": 2 * own.learning_rate})]
    said = posterior.predict(twice, [10, 90, END], draws=100)
    assert dict(said.sizes) == {"configuration": 2, "draw": 100, "step": 3}
    assert list(said.learning_rate.values) == [own.learning_rate, 2 * own.learning_rate]
    alone = posterior.predict(own, [10, 90, END], draws=100)
    np.testing.assert_array_equal(said.train_reward[0], alone.train_reward[0])


def test_a_begun_run_goes_on_as_watch_has_it(posterior):
    begun = PLANS[0].run(rising(END, time=40)).before(60)
    said = posterior.predict(None, END, given=begun, seed=0)
    told = Watch(posterior, planned_steps=END, seed=0).update(begun)
    final = [told.final.low, told.final.median, told.final.high]
    np.testing.assert_allclose(ends(said.final_train_reward), final)
    assert float(said.is_stable.mean()) == pytest.approx(1 - told.p_unstable, abs=0.001)
    assert said.step[0] >= 60
    stands = float(begun.reward[-5:].mean())
    assert abs(float(said.train_reward[0, :, 0].median()) - stands) < 0.1
    new = posterior.predict(posterior.meta.runs[0].settings, END)
    assert float(said.train_reward[0, :, 0].std()) < float(new.train_reward.isel(step=33).std())


def test_rows_that_were_fitted_do_not_count_twice(posterior):
    """A pilot weighs no draws again; a run that was not fitted does."""
    run = PLANS[0].run(rising(60, end=0.6))
    pilot, *others = posterior.meta.runs
    pilots = (pilot.model_copy(update={"fingerprint": run.fingerprint}), *others)
    fitted = with_meta(posterior, runs=pilots)
    once, twice = (one.predict(None, END, given=run) for one in (fitted, posterior))
    assert not np.array_equal(once.final_train_reward, twice.final_train_reward)


@pytest.mark.parametrize("first", [0, 25])
def test_no_quantile_turns_twice_within_an_e_fold(first):
    """Along 200 steps of a new run; a seam put in is found."""
    for seed in range(first, first + 25):
        posterior = made_up_posterior([LARGE], seed=seed, draws=100)
        said = posterior.predict(posterior.meta.runs[0].settings, np.arange(1, 201), draws=200)
        bands = np.quantile(said.train_reward[0], [0.1, 0.5, 0.9], axis=0)
        assert not any(turns_twice(band) for band in bands)
    seam = bands[1] + 0.1 * ((np.arange(200) > 90) & (np.arange(200) < 110))
    assert turns_twice(seam)


def turns_twice(band, least=5e-3):
    """Whether a series changes direction twice within a factor e of steps, by more than noise."""
    steps = np.arange(1, band.size + 1)
    kept = [0]
    for at in range(1, band.size):
        if abs(band[at] - band[kept[-1]]) > least:
            kept.append(at)
    signs = np.sign(np.diff(band[kept]))
    turns = steps[np.array(kept)[1:-1][np.diff(signs) != 0]]
    return bool(np.any(turns[1:] < np.e * turns[:-1]))


@pytest.mark.parametrize(
    ("settings", "steps", "given", "word"),
    [(None, 100, False, "settings"), ("own", 0, False, "steps"), ("own", 100, True, "settings")],
)
def test_what_cannot_be_asked_is_named(posterior, settings, steps, given, word):
    own = posterior.meta.runs[0].settings if settings == "own" else None
    run = PLANS[0].run(np.full(30, 0.5)) if given else None
    with pytest.raises(InputError, match=word):
        posterior.predict(own, steps, given=run)


def test_a_run_that_is_over_has_no_rest(posterior):
    with pytest.raises(InputError, match="has done 60 steps"):
        posterior.predict(None, 40, given=PLANS[0].run(np.full(60, 0.5)))
