"""Forecast finished runs from their first part, and score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from advisor import forecast
from advisor.backtesting.cases import Case, CohortCases, make_cases, nothing_to_ask
from advisor.backtesting.scores import (
    ADVISOR,
    NEW_RUN,
    SIMPLEST,
    Backtest,
    ForecastTask,
    Prediction,
    predict,
)
from advisor.common import EngineSettings, Item, Mapped, Progress, digest_of, mapped, progress_of
from advisor.errors import InputError, NotConvergedError
from advisor.model import (
    Posterior,
    Priors,
    RunSummary,
    Sampling,
    load_priors,
    preset_for,
    preset_names,
)
from advisor.runs import PilotRun, mark_copies
from advisor.theory import FloatArray

SHAPE = ((0.0,), -1.5, 1.5)


def backtest(
    runs: Sequence[PilotRun],
    *,
    seen: float | Sequence[float] = 0.25,
    priors: Priors | str | None = None,
    least_steps: float = 0,
    sampling: Sampling | None = None,
    progress: bool | Progress | None = None,
    on: EngineSettings | None = None,
) -> Backtest:
    """Ask how well forecasts would have done on finished runs.

    Parameters
    ----------
    runs : sequence of PilotRun
        Finished runs with their settings.
    seen : float or sequence of float
        Share of each run that the forecasts see; the mean reward over its last tenth is predicted.
        Several shares are scored on the same cohorts.
    priors : Priors or str, optional
        A preset that has not learned from these runs [default: for each cohort the one whose
        evidence it lies in, `posterior.presets.preset_for`].
    least_steps : float
        Optimizer steps below which a run is left out.
    sampling : Sampling, optional
    progress : bool or callable, optional
        True prints to standard error; a callable takes stage, share done and detail.
    on : dict, optional
        Where the cohorts are forecast: ``jobs`` and ``keep`` as
        :func:`advisor.common.mapped` takes them [default: one after the other, here].

    Returns
    -------
    backtest : Backtest

    Raises
    ------
    InputError
        No run can be asked about, a share is not between 0 and 1, or the preset has learned from
        one of the runs.
    """
    asked = [
        (share, *make_cases(runs, share, least_steps=least_steps)) for share in check_shares(seen)
    ]
    if not any(cohorts for _, cohorts, _ in asked):
        raise nothing_to_ask([line for *_, unusable in asked for line in unusable])
    items, left_out = [], []
    for share, cohorts, unusable in asked:
        left_out += unusable
        at = f" at {share:.0%}" if len(asked) > 1 else ""
        for cohort in cohorts:
            preset = chosen_preset([case.seen for case in cohort.cases], priors)
            task = CohortTask(cohort, share, at, preset, sampling or Sampling())
            items.append(Item(f"{cohort.name}{at}", task, task.marks))
    tell = progress_of(progress)
    found = mapped(forecasts, items, task="Backtesting", progress=tell, **(on or {}))
    return _collected(found, left_out)


def check_shares(seen: float | Sequence[float]) -> list[float]:
    """Shares as a list, each once."""
    shares = list(dict.fromkeys([seen] if isinstance(seen, int | float) else seen))
    for share in shares:
        if not 0 < share < 1:
            problem = f"{share:g} is no share of a run that leaves something to forecast"
            advice = "Give a number between 0 and 1, such as 0.25"
            raise InputError(problem, argument="seen", advice=advice)
    if not shares:
        raise InputError("no share of the runs is given", argument="seen", advice="Give 0.25")
    return shares


def chosen_preset(runs: Sequence[PilotRun], priors: Priors | str | None) -> Priors:
    """Preset for a cohort; refused where it learned from one of the runs, or from a part of it."""
    preset = priors if isinstance(priors, Priors) else load_priors(priors or preset_for(runs)[0])
    learned = [run for run in runs if run.fingerprint in preset.learned_from]
    if learned:
        others = f" and {len(learned) - 1} more" if len(learned) > 1 else ""
        seen = {run.fingerprint for run in runs}
        unseen = [one for one in preset_names() if seen.isdisjoint(load_priors(one).learned_from)]
        raise InputError(
            f"the preset '{preset.name}' has learned from run '{learned[0].id}'{others}: its "
            "forecasts of them would look better than they are",
            path=learned[0].path,
            argument="priors",
            advice=f"Give `priors` one that has not ({', '.join(unseen)}), or leave them out",
        )
    return preset


class CohortTask(NamedTuple):
    """One cohort at one share: all that its forecasts turn on."""

    cohort: CohortCases
    share: float
    at: str
    preset: Priors
    sampling: Sampling

    @property
    def marks(self) -> tuple[str, ...]:
        """Digests of data, priors and seed."""
        cases = [[c.seen.digest, c.steps.tolist(), c.target] for c in self.cohort.cases]
        return digest_of(cases, self.cohort.bounds, self.share), *(
            digest_of(part.model_dump(mode="json")) for part in (self.preset, self.sampling)
        )


class Forecasts(NamedTuple):
    """Predictions, runs left out, and cohorts without a pooled curve; JSON makes it a list."""

    predictions: Sequence[Prediction] = ()
    left_out: Sequence[str] = ()
    uncurved: Sequence[str] = ()


def forecasts(task: CohortTask) -> Forecasts:
    """Predictions of all methods for a cohort, and what it leaves out."""
    cohort, share, at, preset, sampling = task
    pilots = [case.seen for case in cohort.cases]
    corpus = forecast.corpus_for(pilots)
    why = ""
    if corpus is None:
        try:
            posterior: Posterior | None = forecast.fit(pilots, priors=preset, sampling=sampling)
        except InputError as error:  # what is seen of it teaches nothing
            return Forecasts(left_out=[f"{pilot.id}{at}: {error.problem}" for pilot in pilots])
    else:
        posterior, why = forecast.fitted_or_none(pilots, preset, sampling)
    predictions, copies = _forecasts(cohort, share, posterior, corpus, preset)
    left_out = [f"{run}{at}: its first part is that of another run" for run in copies]
    return Forecasts(predictions, left_out, [f"{cohort.name}{at}: {why}"] if why else [])


def _collected(found: Mapped, left_out: Sequence[str]) -> Backtest:
    """Result of all cohorts, in their order."""
    results = [Forecasts(*cohort.result) for cohort in found.outcomes if not cohort.has_failed]
    missing = [*left_out, *(line for result in results for line in result.left_out)]
    unsure = [cohort for cohort in found.failed if cohort.kind == NotConvergedError.__name__]
    return Backtest(
        tuple(Prediction.of_json(p) for result in results for p in result.predictions),
        tuple(dict.fromkeys(missing)),
        tuple(cohort.name for cohort in unsure),
        tuple(line for result in results for line in result.uncurved),
        tuple(f"{cohort.text} ({cohort.kind})" for cohort in found.failed if cohort not in unsure),
    )


def _forecasts(
    cohort: CohortCases,
    seen: float,
    posterior: Posterior | None,
    corpus: forecast.Corpus | None,
    preset: Priors,
) -> tuple[list[Prediction], list[str]]:
    """Predictions of all methods, and the runs whose first part is that of another."""
    bounds = cohort.bounds
    if posterior is not None:
        bounds = posterior.meta.floor, posterior.meta.ceiling
    mine, others = [], []
    copies = {
        run.id
        for run in mark_copies([case.seen for case in cohort.cases])
        if run.copy_of is not None
    }
    fitted = {run.id: run for run in posterior.meta.runs} if posterior else {}
    for number, case in enumerate(cohort.cases):
        if case.seen.id in copies:
            continue
        question = ForecastTask(cohort.name, case.seen.id, seen, cohort.bounds, case.target)
        asked = case.seen, case.steps
        pooled, pilots = None, []
        if posterior is not None:
            pooled = forecast.curve_of_begun_run(posterior, *asked, seed=number)
            pilots = forecast.rows_of_pilots(posterior, case.seen, bounds)
        end = forecast.end_of_begun_run(
            *asked, corpus=corpus, bounds=bounds, curve=pooled, siblings=pilots, priors=preset
        )
        mine.append(predict(ADVISOR, question, end.draws))
        rng = np.random.default_rng(0)
        draws = {SIMPLEST: last_value(case, rng)}
        if posterior is not None and case.seen.id in fitted:
            train, held_out = new_run_of(posterior, fitted[case.seen.id], case)
            draws[NEW_RUN] = train
            others += _held_out(posterior, question, case, held_out)
        for name, curve in CURVES.items():
            draws[name] = forecast.curve_fit(case.seen, case.steps, curve, bounds, rng)[0]
        draws["ensemble"] = ensemble(case, *bounds, rng)
        others += [predict(name, question, values) for name, values in draws.items()]
    return [*mine, *others], sorted(copies)


def new_run_of(
    posterior: Posterior, run: RunSummary, case: Case
) -> tuple[FloatArray, FloatArray | None]:
    """Train and held-out reward that `advise` predicts of another run of a pilot's settings."""
    steps = int(case.steps.max())
    target = forecast.Target(run.task, run.model, run.parameters)
    forecaster = forecast.Forecaster(posterior, target)
    asked = forecaster, run.settings.or_planned_over(steps), steps
    held_out = forecast.final_reward(*asked) if forecaster.is_evaluated else None
    return forecast.final_train_reward(*asked), held_out


def _held_out(
    posterior: Posterior, question: ForecastTask, case: Case, draws: FloatArray | None
) -> list[Prediction]:
    """Held-out rewards at the end of a run that logs them: forecast, and the last that is seen."""
    if draws is None or case.held_out is None or not case.seen.eval_reward.size:
        return []
    bounds = posterior.meta.eval_floor, posterior.meta.eval_ceiling
    asked = question._replace(
        cohort=f"{question.cohort}, held-out", bounds=bounds, target=case.held_out
    )
    last = np.repeat(case.seen.eval_reward[-1], forecast.DRAWS)
    return [predict(NEW_RUN, asked, draws), predict(SIMPLEST, asked, last)]


def _hill(theta: FloatArray, time: FloatArray) -> FloatArray:
    odds = (np.maximum(time, 1e-9) * np.exp(-theta[2])) ** np.exp(theta[3])
    return np.asarray(theta[0] + (theta[1] - theta[0]) * odds / (1 + odds))


def _stretched(theta: FloatArray, time: FloatArray) -> FloatArray:
    x = (np.maximum(time, 1e-9) * np.exp(-theta[2])) ** np.exp(theta[3])
    return np.asarray(theta[0] + (theta[1] - theta[0]) * -np.expm1(-x))


def _power(theta: FloatArray, time: FloatArray) -> FloatArray:
    left = np.exp(-np.exp(theta[3]) * np.log1p(time * np.exp(-theta[2])))
    return np.asarray(theta[0] + (theta[1] - theta[0]) * (1 - left))


CURVES = {
    "exponential": forecast.EXPONENTIAL,
    "hill": forecast.Curve(_hill, (forecast.TIME, SHAPE)),
    "stretched": forecast.Curve(_stretched, (forecast.TIME, SHAPE)),
}
"""Families by name; ``hill`` is ScaleRL's form (arXiv:2510.13786)."""

ENSEMBLE = {**CURVES, "power": forecast.Curve(_power, (forecast.TIME, SHAPE))}
"""Families that are weighted by fit, after Domhan et al. (IJCAI 2015)."""


def last_value(case: Case, rng: np.random.Generator) -> FloatArray:
    """Mean of the last fifth of what is seen, with its standard error and the noise of a mean."""
    reward = case.seen.reward[np.isfinite(case.seen.reward)]
    tail = reward[-max(3, reward.size // 5) :]
    return np.asarray(tail.mean() + tail.std(ddof=1) * rng.standard_normal(forecast.DRAWS))


def ensemble(case: Case, floor: float, ceiling: float, rng: np.random.Generator) -> FloatArray:
    """Families weighted by their Bayesian information criterion."""
    bounds = (floor, ceiling)
    fits = [
        forecast.curve_fit(case.seen, case.steps, curve, bounds, rng) for curve in ENSEMBLE.values()
    ]
    return mixed(fits, rng)


def mixed(fits: Sequence[tuple[FloatArray, float]], rng: np.random.Generator) -> FloatArray:
    """Draws of several curves, each by its weight; from draws and -BIC / 2 of each."""
    evidence = np.array([one[1] for one in fits])
    weight = np.exp(evidence - evidence.max())
    choice = rng.choice(len(fits), size=forecast.DRAWS, p=weight / weight.sum())
    return np.stack([one[0] for one in fits])[choice, np.arange(forecast.DRAWS)]
