"""A preset from past posteriors: what is learned, what is kept, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from learned_priors import MODEL_SPREADS, learn_priors
from past_studies import REFERENCE, hash_of, parameters, past, same_data
from preset_files import write_preset
from prior_predictive import prior_predictive

from advisor import model
from advisor.errors import InputError
from advisor.model import (
    GROUP_LEVELS,
    POPULATION,
    TASK_LEVELS,
    Posterior,
    load_priors,
    prior_entries,
)

BASE = load_priors("small_models")


def moments(priors):
    return {
        name: (getattr(entry, "mean", None), entry.sd)
        for name, entry in prior_entries(priors).items()
    }


def marks(label, runs=3):
    """Fingerprints of a past study's runs."""
    return tuple(hash_of(f"{label}-{index}") for index in range(runs))


def marked(posterior, index, fingerprint):
    """Copy in which one run has another fingerprint."""
    runs = list(posterior.meta.runs)
    runs[index] = runs[index].model_copy(update={"fingerprint": fingerprint})
    return replace(posterior, meta=posterior.meta.model_copy(update={"runs": tuple(runs)}))


def moved(learned, base=BASE):
    before = moments(base)
    return {name for name, pair in moments(learned).items() if pair != before[name]}


# What is learned -------------------------------------------------------------------------------


def test_every_level_of_the_model_can_be_learned():
    assert set(TASK_LEVELS + GROUP_LEVELS) == set(model.parameters.LEVELS)
    # All but the stiffness ratio, which no posterior samples.
    assert set(prior_entries(BASE)) - set(parameters()) == {"log_stiffness_ratio"}
    assert set(parameters()) <= set(prior_entries(BASE))


def test_posteriors_as_wide_as_their_prior_leave_the_base():
    learned = learn_priors([past(f"null-{i}") for i in range(6)])
    assert moved(learned) == set()
    for name, entry in prior_entries(learned).items():
        assert entry.source.startswith(getattr(BASE, name).source)
        assert entry.source.endswith("Kept from small_models: no posterior narrowed it.")


@pytest.mark.parametrize("entry", sorted(set(parameters()) - set(MODEL_SPREADS.values())))
def test_only_what_the_data_say_is_learned(entry):
    prior = getattr(BASE, entry)
    target = prior.mean + prior.sd
    learned = learn_priors(
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
    found = learn_priors(studies, base=base).curvature_exponent
    assert found.mean == pytest.approx(thetas.mean(), abs=truth / 30**0.5)
    assert found.sd == pytest.approx(thetas.std(), rel=0.15)


@pytest.mark.evidence
def test_the_law_of_the_speed_is_handed_on_and_estimates_are_moved_along_it():
    law = BASE.speed_law
    here = BASE.at(REFERENCE).log_slope
    assert abs(here.mean - BASE.log_slope.mean) > 0.2
    agrees = learn_priors([past(f"law-{i}", {"log_slope": (here.mean, 0.05)}) for i in range(4)])
    assert agrees.speed_law == law
    assert agrees.log_slope.mean == pytest.approx(BASE.log_slope.mean, abs=0.01)
    untouched = learn_priors([past("other", {"rate_group_size": (0.5, 0.04)})])
    assert untouched.at(REFERENCE).log_slope.mean == here.mean
    # Control: without a law the levels stand where they were measured.
    flat = BASE.model_copy(update={"speed_law": None})
    studies = [past(f"flat-{i}", {"log_slope": (here.mean, 0.05)}) for i in range(4)]
    found = learn_priors(studies, base=flat).log_slope
    assert abs(found.mean - here.mean) < abs(found.mean - BASE.log_slope.mean)


def test_one_study_at_most_halves_a_sd():
    found = learn_priors([past("one", {"rate_group_size": (BASE.rate_group_size.mean, 1e-4)})])
    assert found.rate_group_size.sd / BASE.rate_group_size.sd == pytest.approx(0.5, abs=0.01)


@pytest.mark.evidence
def test_the_preset_of_a_past_fit_does_not_matter():
    said = {"rate_group_size": (0.5, 0.04), "log_slope": (-6.0, 0.3), "log_misfit": (-4.0, 0.2)}
    learned = [
        learn_priors(
            [past(f"any-{i}", said, priors=load_priors(preset)) for i in range(3)], base=BASE
        )
        for preset in ("small_models", "full_finetuning", "uninformative")
    ]
    assert moved(learned[0]) == {*said, "log_model_spread"}
    for other in learned[1:]:
        for entry in said:
            found, sd = getattr(learned[0], entry), getattr(BASE, entry).sd
            assert getattr(other, entry).mean == pytest.approx(found.mean, abs=0.02 * sd)
            assert getattr(other, entry).sd == pytest.approx(found.sd, rel=0.02)


def test_tasks_are_pooled_over_posteriors():
    tasks = [[("a", "m"), ("b", "m")], [("c", "m")], [("d", "m"), ("e", "m"), ("f", "m")]]
    slopes = [[-6.0, -5.0], [-5.5], [-6.5, -5.2, -5.8]]
    learned = learn_priors(
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


@pytest.mark.evidence
def test_one_task_with_many_models_is_one_task():
    models = [("a", f"m{i}") for i in range(8)]
    many = learn_priors([past("many", {"start_logit": (1.0, 0.1)}, groups=models)])
    one = learn_priors([past("one", {"start_logit": (1.0, 0.1)}, groups=models[:1])])
    assert many.start_logit.sd == pytest.approx(one.start_logit.sd, rel=0.02)
    tasks = [(f"t{i}", "m") for i in range(8)]
    eight = learn_priors([past("eight", {"start_logit": (1.0, 0.1)}, groups=tasks)])
    assert eight.start_logit.sd < 0.7 * one.start_logit.sd
    assert "pooled over 1 task," in many.start_logit.source
    assert "pooled over 8 tasks," in eight.start_logit.source


@pytest.mark.evidence
def test_one_task_in_many_studies_is_one_task():
    said = {"log_slope": (-5.0, 0.1)}
    again = learn_priors([past(f"again-{i}", said) for i in range(5)])
    once = learn_priors([past("once", said)])
    assert again.log_slope.sd == pytest.approx(once.log_slope.sd, rel=0.02)


# What it remembers -----------------------------------------------------------------------------


def test_sources_name_the_posteriors_that_spoke():
    quiet = past("quiet", runs=7)
    loud = past("loud", {"log_misfit": (-4.0, 0.1)}, runs=12, groups=[("a", "m"), ("b", "m")])
    learned = learn_priors([quiet, loud])
    source = learned.log_misfit.source
    assert "Learned from 1 of 2 posteriors" in source
    assert f"{hash_of('loud')[:8]} (12 runs, 2 tasks)" in source
    assert hash_of("quiet")[:8] not in source
    before = BASE.log_misfit
    assert f"small_models said {before.mean:g} with sd {before.sd:g}" in source
    assert learned.learned_from == (*marks("quiet", 7), *marks("loud", 12))
    assert learned.evidence == f"{BASE.evidence}; 2 posteriors of 19 runs, 1e5 parameters"
    assert "small_models" in learned.description


def test_learning_goes_on_from_a_learned_preset():
    first = learn_priors([past("first", {"log_misfit": (-4.0, 0.1)})], name="mine")
    second = learn_priors(
        [past("second", {"log_misfit": (-4.0, 0.1)})], base=first, name="mine-too"
    )
    assert second.learned_from == (*marks("first"), *marks("second"))
    assert second.log_misfit.sd < first.log_misfit.sd
    with pytest.raises(InputError, match=r"'mine' .* learned from run 'first-0' of posterior 2"):
        learn_priors([past("other"), past("first")], base=first)


def test_a_learned_preset_loads_and_predicts(tmp_path):
    learned = learn_priors([past("a", {"log_slope": (-5.0, 0.1)})], name="mine")
    write_preset(tmp_path / "mine.toml", learned)
    loaded = load_priors(tmp_path / "mine.toml")
    assert loaded == learned
    assert loaded.name == "mine"
    narrow, broad = prior_predictive(loaded).bands("time"), prior_predictive(BASE).bands("time")
    assert np.log(np.divide(*narrow[0.8][::-1])) < np.log(np.divide(*broad[0.8][::-1]))


def test_what_a_learned_preset_rests_on_follows_from_its_runs():
    posterior = past("large")
    runs = tuple(
        run.model_copy(
            update={
                "parameters": 4e7,
                "settings": run.settings.model_copy(update={"adapter": "lora"}),
            }
        )
        for run in posterior.meta.runs
    )
    large = replace(posterior, meta=posterior.meta.model_copy(update={"runs": runs}))
    learned = learn_priors([large])
    assert learned.domain.adapters == ("full", "lora")
    assert learned.domain.most_parameters == 4e7
    assert learned.domain.least_parameters == BASE.domain.least_parameters
    assert learned.stability_line == BASE.stability_line
    alone = learn_priors([large], base="theory", name="alone")
    assert alone.domain.adapters == ("lora",)
    assert alone.domain.least_parameters == 4e7


def test_a_saved_posterior_teaches_the_same(tmp_path):
    posterior = past("saved", {"hazard_level": (-9.0, 0.5)})
    posterior.save(tmp_path / "posterior.nc")
    assert learn_priors([Posterior.load(tmp_path / "posterior.nc")]) == learn_priors([posterior])


# Refusals --------------------------------------------------------------------------------------


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(InputError, match="no posterior to learn from"):
        learn_priors([])


def test_the_same_data_twice_are_refused():
    first, second, third = past("one"), past("two"), past("three")
    with pytest.raises(InputError, match=r"posterior 1 and posterior 3 .* the same data") as no:
        learn_priors([first, second, same_data(third, first)])
    assert hash_of("one")[:8] in str(no.value)
    learn_priors([first, second, third])


def test_a_run_in_two_posteriors_is_refused():
    first, second = past("one"), past("two")
    overlapping = marked(second, 1, first.meta.runs[2].fingerprint)
    with pytest.raises(InputError, match="run 'two-1' is in posterior 1 and in posterior 2"):
        learn_priors([first, overlapping])


def test_runs_that_cannot_be_known_again_are_no_copies():
    """Neither of each other nor of what a base has learned from."""
    first, second = marked(past("one"), 1, ""), marked(past("two"), 1, "")
    learned = learn_priors([first, second], name="mine")
    assert len(learned.learned_from) == 4
    assert "" not in learned.learned_from
    learn_priors([marked(past("three"), 1, "")], base=learned, name="ours")


def test_different_presets_need_a_base():
    posteriors = [past("one"), past("two", priors=load_priors("lora"))]
    with pytest.raises(InputError, match=r"different presets \(small_models, lora\)") as no:
        learn_priors(posteriors)
    assert no.value.argument == "base"
    assert moved(learn_priors(posteriors, base="lora"), load_priors("lora")) == set()


def test_two_versions_of_a_preset_need_a_base():
    other = BASE.model_copy(update={"evidence": "an older version"})
    with pytest.raises(InputError, match=r"\(small_models of different versions\)"):
        learn_priors([past("one"), past("two", priors=other)])


@pytest.mark.parametrize("name", ["lora", "", " "])
def test_a_name_that_is_taken_or_empty_is_refused(name):
    with pytest.raises(InputError, match="is no name for a new preset"):
        learn_priors([past("one")], name=name)


def test_unknown_base_is_refused():
    with pytest.raises(InputError, match="no prior preset 'nobody'"):
        learn_priors([past("one")], base="nobody")


def test_population_names_and_entries_correspond():
    for name in POPULATION:
        assert parameters()[name.replace(".", "_")] == name


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
    return replace(posterior, meta=posterior.meta.model_copy(update={"runs": runs}))


def test_the_rates_of_the_best_runs_become_what_is_known():
    one = with_rates(past("one"), (1e-4, 1e-3, 1e-2), (0.2, 0.9, 0.1))
    other = with_rates(past("other"), (1e-5, 1e-4, 1e-3), (0.8, 0.2, 0.1))
    known = learn_priors([one, other]).known_optimum
    assert known.learning_rate == pytest.approx(1e-4)
    assert known.projects == 2


def test_posteriors_without_rows_leave_what_the_base_knows():
    base = load_priors("full_finetuning")
    assert learn_priors([past("bare")], base=base).known_optimum == base.known_optimum
    assert learn_priors([past("bare")]).known_optimum is None
