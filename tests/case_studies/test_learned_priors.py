"""A preset from past posteriors: what is learned, what is kept, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from learned_priors import MODEL_SPREADS, learn_from_studies, past_study
from past_studies import REFERENCE, parameters, past
from preset_files import write_preset
from prior_predictive import prior_predictive
from simulated_runs import with_meta, with_runs

from advisor import model
from advisor.model import (
    GROUP_LEVELS,
    TASK_LEVELS,
    load_priors,
    prior_entries,
)

BASE = load_priors("small_models")


def learned_from(posteriors, base=BASE, name="team"):
    return learn_from_studies([past_study(one) for one in posteriors], base=base, name=name)


def moments(priors):
    return {
        name: (getattr(entry, "mean", None), entry.sd)
        for name, entry in prior_entries(priors).items()
    }


def moved(learned, base=BASE):
    before = moments(base)
    return {name for name, pair in moments(learned).items() if pair != before[name]}


# What is learned -------------------------------------------------------------------------------


def test_every_level_of_the_model_can_be_learned():
    assert set(TASK_LEVELS + GROUP_LEVELS) == set(model.parameters.LEVELS)
    # All but the stiffness ratio, which no posterior samples.
    assert set(prior_entries(BASE)) - set(parameters()) == {"log_stiffness_ratio"}
    assert set(parameters()) <= set(prior_entries(BASE))


@pytest.mark.parametrize("entry", sorted(set(parameters()) - set(MODEL_SPREADS.values())))
def test_only_what_the_data_say_is_learned(entry):
    prior = getattr(BASE, entry)
    target = prior.mean + prior.sd
    learned = learned_from(
        [past(f"only-{entry}-{i}", {entry: (target, 0.2 * prior.sd)}) for i in range(3)]
    )
    # How far models lie apart is told by how far their levels do.
    assert moved(learned) == {entry, MODEL_SPREADS.get(entry, entry)}
    found = getattr(learned, entry)
    assert prior.mean < found.mean < target
    assert found.sd < prior.sd


@pytest.mark.evidence
@pytest.mark.parametrize("truth", [0.15, 0.6])
def test_the_spread_between_studies_is_recovered(truth):
    rng = np.random.default_rng(21)
    thetas = 1.0 + truth * rng.standard_normal(30)
    studies = [
        past(f"spread-{truth}-{i}", {"curvature_exponent": (theta, 0.05)})
        for i, theta in enumerate(thetas)
    ]
    broad = BASE.curvature_exponent.model_copy(update={"mean": 0.0, "sd": 0.5})
    base = BASE.model_copy(update={"curvature_exponent": broad})
    found = learned_from(studies, base=base).curvature_exponent
    assert found.mean == pytest.approx(thetas.mean(), abs=truth / 30**0.5)
    assert found.sd == pytest.approx(thetas.std(), rel=0.15)


def test_tasks_are_pooled_over_posteriors():
    tasks = [[("a", "m"), ("b", "m")], [("c", "m")], [("d", "m"), ("e", "m"), ("f", "m")]]
    slopes = [[-6.0, -5.0], [-5.5], [-6.5, -5.2, -5.8]]
    learned = learned_from(
        [
            past(f"tasks-{i}", {"log_slope": (level, 0.05)}, groups=groups)
            for i, (groups, level) in enumerate(zip(tasks, slopes, strict=True))
        ]
    )
    found = learned.at(REFERENCE).log_slope
    everything = np.concatenate(slopes)
    assert "pooled over 6 tasks" in found.source
    assert abs(found.mean - everything.mean()) < 0.3 < abs(BASE.log_slope.mean - everything.mean())
    assert everything.std() < found.sd < BASE.log_slope.sd


# What it remembers -----------------------------------------------------------------------------


def test_a_learned_preset_loads_and_predicts(tmp_path):
    learned = learned_from([past("a", {"log_slope": (-5.0, 0.1)})], name="mine")
    write_preset(tmp_path / "mine.toml", learned)
    loaded = load_priors(tmp_path / "mine.toml")
    assert loaded == learned
    assert loaded.name == "mine"
    narrow, broad = prior_predictive(loaded).bands("time"), prior_predictive(BASE).bands("time")
    assert np.log(np.divide(*narrow[0.8][::-1])) < np.log(np.divide(*broad[0.8][::-1]))


def test_what_a_learned_preset_rests_on_follows_from_its_runs():
    posterior = past("large")
    settings = posterior.meta.runs[0].settings.model_copy(update={"adapter": "lora"})
    large = with_runs(posterior, parameters=4e7, settings=settings)
    learned = learned_from([large])
    assert learned.domain.adapters == ("full", "lora")
    assert learned.domain.most_parameters == 4e7
    assert learned.domain.least_parameters == BASE.domain.least_parameters
    assert learned.stability_line == BASE.stability_line
    alone = learned_from([large], base=load_priors("theory"), name="alone")
    assert alone.domain.adapters == ("lora",)
    assert alone.domain.least_parameters == 4e7


# What does best ---------------------------------------------------------------------------------


def with_rates(posterior, rates, ends):
    """Copy whose runs had these learning rates and ended at these rewards."""
    runs = tuple(
        run.model_copy(
            update={
                "settings": run.settings.model_copy(update={"learning_rate": rate}),
                "logged_rewards": (0.1,) * 19 + (end,),
            }
        )
        for run, rate, end in zip(posterior.meta.runs, rates, ends, strict=True)
    )
    return with_meta(posterior, runs=runs)


def test_the_rates_of_the_best_runs_become_what_is_known():
    one = with_rates(past("one"), (1e-4, 1e-3, 1e-2), (0.2, 0.9, 0.1))
    other = with_rates(past("other"), (1e-5, 1e-4, 1e-3), (0.8, 0.2, 0.1))
    known = learned_from([one, other]).known_optimum
    assert known.learning_rate == pytest.approx(1e-4)
    assert known.projects == 2
