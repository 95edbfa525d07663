"""A team's history: many cohorts, each summed up, then learned from."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace

import cohort_fits
import numpy as np
import pytest
from cohort_fits import CohortFit, History, read_history, read_posteriors
from learned_priors import PastStudy, learn_from_studies, learn_priors, past_study
from past_studies import past
from preset_files import write_preset
from processor_time import at_most
from simulated_runs import Plan, simulate_runs
from studies import modules_of

from advisor.errors import InputError, NotConvergedError
from advisor.model import AS_THE_CURVE, load_priors
from advisor.runs import inspect

with modules_of("scale", ("learn",)) as found:
    COMMAND = found["learn"]

BASE = load_priors("small_models")
TEAM = {"rate_group_size": (0.45, 0.06), "log_misfit": (-4.0, 0.2)}
"""Population that made-up studies are drawn from: mean and spread, away from the preset's."""

ERROR = 0.05


def team_of(count, population=TEAM, seed=0):
    """Studies whose parameters are drawn from a population and estimated with an error."""
    rng = np.random.default_rng(seed)
    studies = []
    for number in range(count):
        said = {
            entry: (mean + spread * rng.standard_normal() + ERROR * rng.standard_normal(), ERROR)
            for entry, (mean, spread) in population.items()
        }
        studies.append(past_study(past(f"{seed}-{number}", said)))
    return studies


@pytest.mark.evidence
def test_a_summary_as_json_teaches_what_the_posterior_does_to_the_last_digit():
    posteriors = [past("a", {"log_slope": (-5.0, 0.1)}), past("b", TEAM), past("c")]
    posteriors.append(past("d", groups=(("sort", "s"), ("sort", "m"), ("mod", "s"))))
    read = [PastStudy.model_validate_json(past_study(p).model_dump_json()) for p in posteriors]
    assert learn_from_studies(read, base=BASE) == learn_priors(posteriors)


def test_a_study_kept_without_its_matrix_is_read_entry_by_entry():
    studies = team_of(3)  # whose entries are uncorrelated
    bare = [one.model_copy(update={"information": (), "score": ()}) for one in studies]
    whole, alone = (learn_from_studies(found, base=BASE) for found in (studies, bare))
    for entry in TEAM:
        before, learned, other = (getattr(one, entry) for one in (BASE, whole, alone))
        assert abs(learned.mean - before.mean) > 0.2 * before.sd
        assert other.mean == pytest.approx(learned.mean, abs=0.03 * before.sd)
        assert other.sd == pytest.approx(learned.sd, rel=0.05)


def with_squares_that_wander(posterior, name):
    """The same in which the variance of one parameter moves slowly: few draws behind it."""
    chains, draws = posterior.draws[name].shape
    slow = 1 + 0.9 * np.sin(np.linspace(0, 2 * np.pi * chains, chains * draws))
    values = posterior.draws[name]
    noise = (values - values.mean()) * slow.reshape(chains, draws) ** 0.5
    noise *= values.std() / noise.std()
    return replace(posterior, draws={**posterior.draws, name: values.mean() + noise})


def test_an_estimate_is_weighed_by_its_own_draws_and_not_by_the_worst_of_the_fit():
    prior = BASE.rate_group_size
    weak = {"rate_group_size": (prior.mean + prior.sd, 2 * prior.sd)}  # 0.2 of the variance gone
    posterior = past("weak", weak, ess=100.0)
    (value,), (error,) = past_study(posterior).said["rate_group_size"]
    assert value == pytest.approx(prior.mean + prior.sd)
    assert error == pytest.approx(2 * prior.sd)
    slow = with_squares_that_wander(posterior, "rate.group_size")
    assert slow.draws["rate.group_size"].std() == pytest.approx(
        posterior.draws["rate.group_size"].std()
    )
    assert past_study(slow).said["rate_group_size"] == ((None,), (None,))


def test_a_summary_is_small():
    posterior = past("a", TEAM)
    draws = sum(values.nbytes for values in posterior.draws.values())
    assert len(past_study(posterior).model_dump_json()) < draws / 20


@pytest.mark.evidence
def test_a_thousand_studies_teach_their_population_in_seconds_and_little_memory():
    studies = [
        one.model_copy(
            update={
                "data": f"{number}",
                "runs": tuple(
                    run.model_copy(update={"fingerprint": f"{number}-{run.id}"}) for run in one.runs
                ),
            }
        )
        for number, one in enumerate(team_of(50) * 20)
    ]
    tracemalloc.start()
    with at_most(120):
        learned = learn_from_studies(studies, base=BASE)
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(learned.learned_from) == len(BASE.learned_from) + 3000
    assert memory < 2e9


@pytest.mark.evidence
def test_what_was_learned_is_what_it_was_made_from_and_strangers_teach_something_else():
    team = learn_from_studies(team_of(60), base=BASE)
    for entry, (mean, spread) in TEAM.items():
        found = getattr(team, entry)
        assert abs(found.mean - mean) < 4 * np.hypot(spread, ERROR) / np.sqrt(60)
        assert found.sd == pytest.approx(spread, rel=0.35)
    moved = {entry: (mean + 6 * spread, spread) for entry, (mean, spread) in TEAM.items()}
    strangers = learn_from_studies(team_of(60, moved, seed=1), base=BASE)

    def misses(preset, held_out):
        """Mean log density of what held-out studies came to."""
        scores = []
        for study in held_out:
            for entry in TEAM:
                prior, (value,) = getattr(preset, entry), study.said[entry][0]
                sd = np.hypot(prior.sd, ERROR)
                scores.append(0.5 * ((value - prior.mean) / sd) ** 2 + np.log(sd))
        return float(np.mean(scores))

    held_out = team_of(30, seed=2)
    assert misses(team, held_out) < misses(BASE, held_out) < misses(strangers, held_out)


# Reading ------------------------------------------------------------------------------------------


@pytest.mark.evidence
def test_saved_posteriors_are_summed_up_one_by_one(tmp_path):
    files = [tmp_path / f"{name}.nc" for name in "abc"]
    for file in files:
        past(file.stem, TEAM).save(file)
    expected = [past_study(past(file.stem, TEAM)) for file in files]
    assert read_posteriors(files) == expected


def test_a_posterior_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "odd.nc").write_text("no posterior")
    with pytest.raises(InputError, match=r"odd\.nc"):
        read_posteriors([tmp_path / "odd.nc"])


def said_of(task):
    """In place of a fit: what the number in a cohort's first id says."""
    number = int(task.runs[0].id.removeprefix("run"))
    if number == 1:
        raise NotConvergedError("R-hat is 1.2")
    if number == 2:
        raise InputError("its runs teach nothing")
    return past_study(past(f"cohort {number}", TEAM)).model_dump(mode="json")


@pytest.fixture
def cohorts(monkeypatch):
    monkeypatch.setattr(cohort_fits, "fitted", said_of)
    runs = simulate_runs([Plan(learning_rate=10**-n) for n in (3, 3.5, 4, 4.5)])
    return [(f"cohort {number}", [run]) for number, run in enumerate(runs)]


def test_cohorts_that_say_nothing_are_named_and_the_others_count(cohorts, tmp_path):
    found = read_history(cohorts, BASE, on={"keep": tmp_path})
    assert [study is None for study in found.studies] == [False, True, True, False]
    assert found.left_out == ("cohort 1: R-hat is 1.2", "cohort 2: its runs teach nothing")
    assert len(found.learned(BASE, "team").learned_from) == len(BASE.learned_from) + 6


def test_another_preset_is_another_fit(cohorts, tmp_path):
    read_history(cohorts, BASE, on={"keep": tmp_path})
    lines = (tmp_path / "items.jsonl").read_text().splitlines()
    read_history(cohorts, BASE, on={"keep": tmp_path})
    assert (tmp_path / "items.jsonl").read_text().splitlines() == lines
    moved = BASE.log_slope.model_copy(update={"mean": BASE.log_slope.mean + 0.1})
    read_history(cohorts, BASE.model_copy(update={"log_slope": moved}), on={"keep": tmp_path})
    assert len((tmp_path / "items.jsonl").read_text().splitlines()) == 2 * len(lines)


@pytest.mark.parametrize("entry", ["learning_rate", "parameters", "at_learning_rate"])
def test_another_law_of_the_speed_is_another_fit(cohorts, tmp_path, entry):
    read_history(cohorts, BASE, on={"keep": tmp_path})
    count = len((tmp_path / "items.jsonl").read_text().splitlines())
    law = BASE.speed_law.model_copy(update={entry: 2 * getattr(BASE.speed_law, entry)})
    read_history(cohorts, BASE.model_copy(update={"speed_law": law}), on={"keep": tmp_path})
    assert len((tmp_path / "items.jsonl").read_text().splitlines()) == 2 * count


@pytest.mark.parametrize("name", ["RHAT", "ESS", "DIVERGENT"])
def test_another_gate_is_another_fit(cohorts, monkeypatch, name):
    before = CohortFit(tuple(cohorts[0][1]), BASE).marks
    monkeypatch.setattr(cohort_fits, name, 2 * getattr(cohort_fits, name))
    assert CohortFit(tuple(cohorts[0][1]), BASE).marks != before


def test_what_no_draw_turns_on_is_no_other_fit(cohorts):
    before = CohortFit(tuple(cohorts[0][1]), BASE).marks
    other = BASE.model_copy(update={"domain": None, "extrapolation": AS_THE_CURVE})
    assert CohortFit(tuple(cohorts[0][1]), other).marks == before


def test_a_copy_of_a_cohort_counts_once():
    one, other = team_of(2)
    found = History((one, None, one, other), ())
    assert found.told == [one, other]


@pytest.mark.evidence
def test_a_cohort_is_fitted_and_its_prior_divided_out():
    runs = simulate_runs([Plan(learning_rate=rate) for rate in (1e-4, 3e-4, 1e-3, 3e-3)])
    found = read_history([("sort", runs)], BASE)
    (study,) = found.told
    assert [run.id for run in study.runs] == [run.id for run in runs]
    (value,), (error,) = study.said["rate_learning_rate"]
    assert abs(value - 1.0) < 4 * error  # what the simulator has


# The command --------------------------------------------------------------------------------------


def log_of(folder, run):
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"step": int(step), "reward": float(reward)}
        for step, reward in zip(run.step, run.reward, strict=True)
    ]
    (folder / f"{run.id}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A history of one task, with a log that breaks off and one too short to be a run."""
    monkeypatch.setattr(
        cohort_fits, "fitted", lambda task: said_of(task._replace(runs=task.runs[:1]))
    )
    at = tmp_path / "history"
    runs = simulate_runs([Plan(steps=60)] * 5)
    for run in runs:
        log_of(at, run)
    (at / "broken.jsonl").write_text('{"step": 1, "rew')
    (at / "short.jsonl").write_text('{"step": 1, "reward": 0.5}\n')
    return at


SETTINGS = {
    "learning_rate": 3e-4,
    "group_size": 8,
    "prompts_per_step": 16,
    "task": "sort",
    "model": "tiny-s",
    "parameters": 1e5,
    "minibatches_per_refresh": 1,
    "epochs_per_refresh": 1,
}


def learn(folder, tmp_path, capsys, *words, code=0):
    given = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
    out = str(tmp_path / "team.toml")
    ended = COMMAND.main([str(folder), "--out", out, *given, *words])
    captured = capsys.readouterr()
    assert ended == code, captured.err + captured.out
    return captured


def test_broken_runs_of_a_history_are_named_and_passed_over(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        cohort_fits, "fitted", lambda task: past_study(past("x", TEAM)).model_dump()
    )
    said = learn(folder, tmp_path, capsys, "--jobs", "1")
    assert "passed over" in said.err
    assert "broken.jsonl" in said.err
    assert "short" in said.err
    assert "was learned itself" not in said.err
    learned = load_priors(tmp_path / "team.toml")
    assert learned.rate_group_size.sd < BASE.rate_group_size.sd


def never(task):
    raise AssertionError("nothing was to be fitted")


def base_that_knows(runs, at):
    marks = tuple(run.fingerprint for run in runs)
    write_preset(at, BASE.model_copy(update={"name": "old", "learned_from": marks}))
    return "--base", str(at)


def test_runs_that_the_base_has_learned_from_are_passed_over(folder, tmp_path, capsys, monkeypatch):
    fitted = tmp_path / "fitted"  # a function travels by copy

    def fit(task):
        fitted.write_text(" ".join(sorted(run.id for run in task.runs)))
        return past_study(past("x", TEAM)).model_dump(mode="json")

    monkeypatch.setattr(cohort_fits, "fitted", fit)
    runs = inspect(folder, overrides=SETTINGS).runs
    words = base_that_knows(runs[:2], tmp_path / "old.toml")
    said = learn(folder, tmp_path, capsys, "--jobs", "1", *words)
    assert fitted.read_text().split() == sorted(run.id for run in runs[2:])
    for run in runs[:2]:
        assert f"passed over {run.id}: the base 'old' has learned from it" in said.err
    assert "Note: the base 'old' was learned itself." in said.err


def test_nothing_is_fitted_where_the_base_has_learned_from_every_run(
    folder, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(cohort_fits, "fitted", never)
    words = base_that_knows(inspect(folder, overrides=SETTINGS).runs, tmp_path / "old.toml")
    said = learn(folder, tmp_path, capsys, "--jobs", "1", *words, code=2)
    assert "no source can be learned from (7 passed over" in said.err
    assert "the base 'old' has learned from it" in said.err


@pytest.mark.evidence
def test_posteriors_that_count_twice_are_refused_by_file_before_any_fit(
    folder, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(cohort_fits, "fitted", never)
    files = [str(tmp_path / f"{name}.nc") for name in "ab"]
    for file in files:
        past("same", TEAM).save(file)
    said = learn(folder, tmp_path, capsys, "--jobs", "1", *files, code=2)
    assert f"{files[0]} and {files[1]} were fitted to the same data" in said.err


def test_runs_that_a_posterior_was_fitted_to_and_runs_that_begin_alike_are_passed_over(
    folder, tmp_path, capsys, monkeypatch
):
    runs = inspect(folder, overrides=SETTINGS).runs
    posterior = past("beside", TEAM)
    own = posterior.meta.runs
    marked = own[0].model_copy(update={"fingerprint": runs[0].fingerprint})
    posterior = replace(
        posterior, meta=posterior.meta.model_copy(update={"runs": (marked, *own[1:])})
    )
    file = str(tmp_path / "beside.nc")
    posterior.save(file)
    forked = (folder / f"{runs[1].id}.jsonl").read_text().splitlines()
    forked = forked[:30] + forked[:-31:-1]  # goes on otherwise
    rows = [json.loads(row) | {"step": step} for step, row in enumerate(forked, 1)]
    (folder / "zz_fork.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    fitted = tmp_path / "fitted"

    def fit(task):
        fitted.write_text(" ".join(sorted(run.id for run in task.runs)))
        return past_study(past("x", TEAM)).model_dump(mode="json")

    monkeypatch.setattr(cohort_fits, "fitted", fit)
    said = learn(folder, tmp_path, capsys, "--jobs", "1", file)
    assert f"passed over {runs[0].id}: a posterior that is given too was fitted to it" in said.err
    assert f"passed over zz_fork: it begins as {runs[1].id} does" in said.err
    assert len(fitted.read_text().split()) == len(runs) - 1


def test_a_name_that_is_taken_is_refused_before_any_fit(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cohort_fits, "fitted", never)
    said = learn(folder, tmp_path, capsys, "--jobs", "1", "--name", "lora", code=2)
    assert "'lora' is no name for a new preset" in said.err
