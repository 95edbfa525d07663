"""Forecast finished runs from their first part, and score against how they ended."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor.backtesting.cases import CohortCases, make_cases, nothing_to_ask
from advisor.backtesting.curves import CURVES, curve_fit, ensemble, last_value
from advisor.backtesting.leakage import check_no_leakage
from advisor.backtesting.result import Backtest
from advisor.backtesting.scores import Prediction, Question, predict
from advisor.errors import InputError, NotConvergedError
from advisor.forecast.fit import fit
from advisor.forecast.predictive import begun_run_reward
from advisor.model.posterior import Posterior
from advisor.model.presets import preset_for
from advisor.model.priors import Priors, load_priors
from advisor.model.sampling import Sampling
from advisor.run.pilot_run import PilotRun
from advisor.run.progress import Progress, progress_of

ADVISOR = "advisor"


def backtest(
    runs: Sequence[PilotRun],
    *,
    seen: float | Sequence[float] = 0.25,
    priors: Priors | str | None = None,
    least_steps: float = 0,
    sampling: Sampling | None = None,
    progress: bool | Progress | None = None,
) -> Backtest:
    """Ask how well forecasts would have done on finished runs.

    Parameters
    ----------
    runs : sequence of PilotRun
        Finished runs with their settings.
    seen : float or sequence of float
        Share of each run that the forecasts see; the mean reward over its last tenth is asked. Of
        several shares each is asked about the same cohorts.
    priors : Priors or str, optional
        A preset that has not learned from these runs [default: for each cohort the one whose
        evidence it lies in, `posterior.presets.preset_for`].
    least_steps : float
        Optimizer steps below which a run is left out.
    sampling : Sampling, optional
    progress : bool or callable, optional
        True prints to standard error; a callable takes stage, share done and detail.

    Returns
    -------
    backtest : Backtest

    Raises
    ------
    InputError
        No run can be asked about, a share is not between 0 and 1, or the preset has learned from
        one of the runs.
    """
    tell = progress_of(progress)
    asked = [
        (share, *make_cases(runs, share, least_steps=least_steps)) for share in check_shares(seen)
    ]
    total = sum(len(cohorts) for _, cohorts, _ in asked)
    if not total:
        raise nothing_to_ask([line for *_, unusable in asked for line in unusable])
    presets = {
        cohort.name: chosen_preset([case.seen for case in cohort.cases], priors)
        for _, cohorts, _ in asked
        for cohort in cohorts
    }
    predictions: list[Prediction] = []
    left_out: list[str] = []
    failed: list[str] = []
    done = 0
    for share, cohorts, unusable in asked:
        left_out += unusable
        at = f" at {share:.0%}" if len(asked) > 1 else ""
        for cohort in cohorts:
            tell("Backtesting", done / total, f"{cohort.name}{at}, {len(cohort.cases)} runs")
            done += 1
            try:
                posterior = fit(
                    [case.seen for case in cohort.cases],
                    priors=presets[cohort.name],
                    sampling=sampling or Sampling(),
                )
            except NotConvergedError:
                failed.append(cohort.name + at)
                continue
            except InputError as error:  # what is seen of it teaches nothing
                left_out += [f"{case.seen.id}{at}: {error.problem}" for case in cohort.cases]
                continue
            own, twins = _forecasts(cohort, share, posterior)
            predictions += own
            left_out += [f"{run}{at}: its first part is that of another run" for run in twins]
    return Backtest(tuple(predictions), tuple(dict.fromkeys(left_out)), tuple(failed))


def check_shares(seen: float | Sequence[float]) -> list[float]:
    """Shares as a list, each once."""
    shares = list(dict.fromkeys([seen] if isinstance(seen, int | float) else seen))
    for share in shares:
        if not 0 < share < 1:
            raise InputError(
                f"{share:g} is no share of a run that leaves something to forecast",
                argument="seen",
                advice="Give a number between 0 and 1, such as 0.25",
            )
    if not shares:
        raise InputError(
            "no share of the runs to see is given", argument="seen", advice="Give 0.25"
        )
    return shares


def chosen_preset(runs: Sequence[PilotRun], priors: Priors | str | None) -> Priors:
    """Preset for a cohort."""
    preset = priors if isinstance(priors, Priors) else load_priors(priors or preset_for(runs)[0])
    check_no_leakage(runs, preset)
    return preset


def _forecasts(
    cohort: CohortCases, seen: float, posterior: Posterior
) -> tuple[list[Prediction], list[str]]:
    """Predictions of all methods, and the runs whose first part the fit took for copies."""
    place = {run.id: index for index, run in enumerate(posterior.meta.runs)}
    floor, ceiling = posterior.meta.floor, posterior.meta.ceiling
    mine, others, twins = [], [], []
    for number, case in enumerate(cohort.cases):
        if case.seen.id not in place:
            twins.append(case.seen.id)
            continue
        question = Question(cohort.name, case.seen.id, seen, None, cohort.bounds, case.target)
        continued = begun_run_reward(
            posterior, place[case.seen.id], case.seen, case.steps, seed=number
        )
        mine.append(predict(ADVISOR, question, continued))
        rng = np.random.default_rng(0)
        draws = {"last value": last_value(case, rng)}
        for name, curve in CURVES.items():
            draws[name] = curve_fit(case, curve, floor, ceiling, rng)[0]
        draws["ensemble"] = ensemble(case, floor, ceiling, rng)
        others += [predict(name, question, values) for name, values in draws.items()]
    return [*mine, *others], twins
