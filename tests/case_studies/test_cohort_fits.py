"""A team's history: many cohorts, each summed up, then learned from."""

from __future__ import annotations

import json
from dataclasses import replace

import cohort_fits
import numpy as np
import pytest
from cohort_fits import History, read_history
from learned_priors import PastStudy, learn_from_studies, past_study
from past_studies import past
from preset_files import write_preset
from simulated_runs import Plan, simulate_runs
from studies import modules_of

from advisor.errors import InputError, NotConvergedError
from advisor.model import load_priors
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
    studies = [past_study(posterior) for posterior in posteriors]
    read = [PastStudy.model_validate_json(study.model_dump_json()) for study in studies]
    assert learn_from_studies(read, base=BASE) == learn_from_studies(studies, base=BASE)


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


# Reading ------------------------------------------------------------------------------------------


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
