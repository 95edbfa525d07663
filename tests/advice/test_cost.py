"""What a run costs: step times taken apart, scaled to another model, turned into GPU-hours."""

from __future__ import annotations

import numpy as np
import pytest
from decisions import with_runs
from simulated_runs import Plan, made_up_posterior, rising

from advisor.advice import CostModel, advise, learn_cost
from advisor.errors import InputError
from advisor.forecast import Target

SMALL, LARGE = Target("sort", "tiny-s", 1e5), Target("sort", "tiny-m", 4e5)


def pilots(plans, seconds, tokens=None):
    """Posterior of pilots that took so long for a step; draws do not matter here."""
    updates = [
        {"seconds_per_step": each, "completion_tokens": None if tokens is None else tokens[at]}
        for at, each in enumerate(seconds)
    ]
    return with_runs(made_up_posterior(plans, draws=2), updates)


def batches(plan):
    """Completions generated for, and trained on in, one optimizer step."""
    trained = plan.prompts * plan.group_size
    return trained / plan.epochs, trained


def seconds_of(plan, fixed, generated, trained):
    fresh, all_of_them = batches(plan)
    return fixed + generated * fresh + trained * all_of_them


VARIED = [
    Plan(group_size=group, epochs=epochs, prompts=prompts)
    for group in (4, 16, 64)
    for epochs in (1, 4)
    for prompts in (8.0, 32.0)
]


def test_price_of_a_run_worked_out_by_hand():
    price = CostModel(fixed=2.0, generated=0.25, trained=0.125, tokens=50.0, gpus=4, source="here")
    settings = Plan(group_size=8, epochs=2).completed
    found = price(settings, 100)
    assert (found.steps, found.completions, found.tokens) == (100, 6400, 320_000)
    # 2 s + 64 x 0.25 s + 128 x 0.125 s = 34 s on four GPUs, a hundred times.
    assert found.gpu_hours == pytest.approx(4 * 3400 / 3600)
    assert found.paid == found.gpu_hours
    unknown = CostModel(source="here")(settings, 100)
    assert (unknown.tokens, unknown.gpu_hours) == (None, None)
    assert unknown.paid == unknown.completions == 6400


@pytest.mark.parametrize(
    ("fixed", "generated", "trained"),
    [(10.0, 0.05, 0.02), (0.0, 0.1, 0.01), (30.0, 0.01, 0.04), (5.0, 0.08, 0.0)],
)
def test_step_times_are_taken_apart_where_epochs_vary(fixed, generated, trained):
    seconds = [seconds_of(plan, fixed, generated, trained) for plan in VARIED]
    found = learn_cost(pilots(VARIED, seconds), SMALL)
    # A tenth of one pilot's weight pulls each term: a hundredth in squares, beside twelve pilots.
    mean, slack = float(np.mean(seconds)), 0.02
    generating, training = np.mean([batches(plan) for plan in VARIED], axis=0)
    assert found.fixed == pytest.approx(fixed, abs=slack * mean)
    assert found.generated * generating == pytest.approx(generated * generating, abs=slack * mean)
    assert found.trained * training == pytest.approx(trained * training, abs=slack * mean)
    for plan in VARIED:
        wanted = seconds_of(plan, fixed, generated, trained)
        assert found.seconds_per_step(plan.completed) == pytest.approx(wanted, abs=slack * mean)
    assert found.source == "step times of 12 pilots"


def test_times_of_another_model_are_scaled_by_its_parameters():
    plans = [Plan(model="tiny-s"), Plan(model="tiny-s", group_size=32)]
    posterior = pilots(plans, [3.0, 9.0])
    own, other = (learn_cost(posterior, t) for t in (SMALL, Target("sort", "tiny-8M", 8e6)))
    for name in ("fixed", "generated", "trained"):
        assert getattr(other, name) == pytest.approx(80 * getattr(own, name))
    assert other.source == "step times of 2 pilots of tiny-s, scaled by the number of parameters"
    assert own.source == "step times of 2 pilots"


def test_tokens_are_the_mean_of_what_was_logged():
    plans = [Plan(), Plan(1e-3), Plan(1e-4)]
    found = learn_cost(pilots(plans, [8.0] * 3, [100.0, None, 300.0]), SMALL)
    assert found.tokens == 200
    assert learn_cost(pilots(plans, [8.0] * 3), SMALL).tokens is None


def test_time_of_a_step_as_given_replaces_the_logs():
    plans = [Plan(group_size=4), Plan(group_size=12)]
    found = learn_cost(pilots(plans, [3.0, 9.0]), SMALL, gpus=8, seconds_per_step=30.0)
    # At the mean batch, 8 x 16 completions.
    typical = Plan(group_size=8).completed
    assert found.seconds_per_step(typical) == pytest.approx(30.0)
    assert found(typical, 120).gpu_hours == pytest.approx(8.0)
    assert found.source == "30 s per step, as given"
    assert found.generated / (found.generated + found.trained) == pytest.approx(0.7)


@pytest.mark.parametrize(
    "value",
    [
        0.0,
        -1.0,
        float("nan"),
        float("inf"),
    ],
)
def test_time_of_a_step_that_is_none_is_refused(posterior, value):
    with pytest.raises(InputError) as caught:
        advise(posterior, seconds_per_step=value)
    assert caught.value.argument == "seconds_per_step"


# Step times of a log ---------------------------------------------------------------------------


def logged(times, **updates):
    """A pilot of twelve rows that logged these times."""
    run = Plan().run(rising(12))
    series = {**run.series, "step_time_seconds": np.resize(times, 12).astype(float)}
    return run.with_updates(series=series, **updates)


def test_step_time_is_the_median_of_the_rows():
    assert logged([4.0]).seconds_per_step == 4
    # The first step compiles and the last evaluates: neither is typical.
    assert logged([90.0, *[4.0] * 10, 60.0]).seconds_per_step == 4
    assert logged([np.nan, 0.0, 6.0]).seconds_per_step == 6
    assert Plan().run(rising(12)).seconds_per_step is None
    assert logged([np.nan]).seconds_per_step is None


def test_posterior_remembers_what_the_logs_say():
    from simulated_runs import cohort_of_plans

    from advisor.model import build_cohort
    from advisor.model.posterior import _summaries

    run = logged([4.0])
    silent = np.r_[np.nan, np.full(5, 0.5), np.zeros(6)]
    more = {"completion_length": np.full(12, 70.0), "silent_group_share": silent}
    run = run.with_updates(series=run.series | more)
    (summary,) = _summaries(build_cohort([run], {"run": None}, {"run": None}))
    assert (summary.seconds_per_step, summary.completion_tokens) == (4, 70)
    assert summary.first_silent_share == 0.5
    (unknown,) = _summaries(cohort_of_plans([Plan()]))
    assert (unknown.seconds_per_step, unknown.completion_tokens) == (None, None)
