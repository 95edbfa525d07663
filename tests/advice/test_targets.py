"""Which model on which task, and what cannot be asked."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_runs import PLANS, Plan, made_up_posterior, with_meta, with_priors

from advisor.advice import Request, advise
from advisor.advice.support import cautions
from advisor.common import Kind, kinds
from advisor.errors import InputError
from advisor.forecast import Forecaster, Target, named_target
from advisor.model import build_cohort, load_priors

STARTS_APART = "runs that count as one model on one task start at"


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 90.0, float("nan")])
def test_level_that_is_no_probability_is_refused(posterior, level):
    with pytest.raises(InputError, match="cannot be") as caught:
        advise(posterior, level=level)
    assert caught.value.argument == "level"
    with pytest.raises(InputError, match="cannot be"):
        Request(level=level)


def test_start_reward_is_in_reward_units():
    posterior = made_up_posterior(bounds=(-10.0, 30.0))
    target = Target("sort", "tiny-m", 4e5, 2.0)
    assert Forecaster(posterior, target).reward(PLANS[4].completed, 0) == pytest.approx(2.0)
    with pytest.raises(InputError, match=r"lies outside \(-10, 30\)"):
        advise(posterior, model=target.model, start_reward=31.0)


def test_targets_are_completed_from_the_pilots(posterior):
    assert named_target(posterior) == Target("sort", "tiny-m", 4e5)
    assert named_target(posterior, "tiny-s") == Target("sort", "tiny-s", 1e5)
    assert named_target(posterior, parameters=7e9).parameters == 7e9
    assert named_target(posterior, parameters=4.1e5) == Target("sort", "tiny-m", 4e5)
    assert named_target(posterior, "tiny-s", parameters=1.02e5) == Target("sort", "tiny-s", 1e5)
    assert named_target(posterior, parameters=4.6e5).model == "model of 4.6e+05 parameters"
    assert named_target(posterior, "Qwen2.5-7B").parameters == 7e9
    assert named_target(posterior, "mine", parameters=2e6, start_reward=0.4).start_reward == 0.4
    with pytest.raises(InputError, match="the size of model 'mine' is unknown"):
        named_target(posterior, "mine")
    with pytest.raises(InputError, match=r"'tiny-s' has 1e\+05 parameters, not 2e\+05"):
        named_target(posterior, "tiny-s", parameters=2e5)


def test_a_run_a_little_longer_than_supported_is_no_other_world(posterior):
    forecaster = Forecaster(posterior, Target("sort", "tiny-m", 4e5))
    longest = posterior.meta.longest
    near, far = (kinds(cautions(forecaster, int(times * longest), {})) for times in (3.05, 3.3))
    assert Kind.LONG_BY_SIMULATION in far - near


def test_presets_that_correct_nothing_say_that_long_intervals_are_too_narrow(posterior):
    other = with_priors(with_meta(posterior, priors=load_priors("lora")), speed_law=None)
    forecaster = Forecaster(other, Target("sort", "tiny-m", 4e5))
    longest = posterior.meta.longest
    said = [cautions(forecaster, int(times * longest), {}) for times in (2.5, 8)]
    # As far out as no test went there is another caution.
    long = {Kind.LONG_UNMEASURED, Kind.TOO_LONG}
    assert [bool(long & kinds(one)) for one in said] == [False, True]


def test_a_long_run_of_a_language_model_says_what_its_forecast_rests_on():
    plans = [Plan(rate, steps=30, parameters=1.5e9) for rate in (1e-6, 1e-5)]
    large = with_meta(made_up_posterior(plans), priors=load_priors("lora"))
    run = large.meta.runs[0]
    forecaster = Forecaster(large, Target(run.task, run.model, run.parameters))
    said = [cautions(forecaster, int(times * large.meta.longest), {}) for times in (2.5, 8)]
    assert [Kind.LONG_BY_PUBLIC_RUNS in kinds(one) for one in said] == [False, True]


def test_pilots_that_start_apart_are_a_caution_and_other_warnings_none():
    run = Plan().run(np.linspace(0.1, 0.5, 60))
    warned = run.with_updates(warnings=(f"{STARTS_APART} -1.5 to 0.3", "a step is missing"))
    found = build_cohort([warned], {}, {}).notes
    apart, missing = [one for one in found if one.about == run.id][:2]
    assert (apart.kind, apart.audience) == (Kind.WEIGHTY_WARNING, "caution")
    assert (missing.kind, missing.audience) == (Kind.RUN_WARNING, "assumption")


@pytest.mark.parametrize(("parameters", "is_first"), [(5e8, True), (8e6, False)])
def test_a_language_model_that_no_pilot_ran_is_to_be_piloted_first(parameters, is_first):
    plans = [Plan(rate, model="a", parameters=1e6) for rate in (1e-4, 3e-4, 1e-3)]
    posterior = made_up_posterior(plans)
    advice = advise(
        posterior, steps=90, weigh_pilots=False, level=0.05, model="b", parameters=parameters
    )
    assert (Kind.UNPILOTED_LANGUAGE_MODEL in kinds(advice.notes)) == is_first
    said = "Pilot it before the full run"
    assert any(said in line for line in str(advice).splitlines()[:3]) == is_first
