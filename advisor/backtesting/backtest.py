"""Forecast finished runs from their first part, and score against how they ended."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor.backtesting.cases import CohortCases, make_cases, nothing_to_ask
from advisor.backtesting.curves import CURVES, ensemble, last_value
from advisor.backtesting.leakage import check_no_leakage
from advisor.backtesting.result import Backtest
from advisor.backtesting.scores import Prediction, Question, predict
from advisor.errors import InputError, NotConvergedError
from advisor.forecast.analogues import Corpus
from advisor.forecast.begun import curve_of_begun_run, end_of_begun_run
from advisor.forecast.corpus_file import corpus_beside
from advisor.forecast.fit import fit, fitted_or_none
from advisor.forecast.single_run import curve_fit
from advisor.model.posterior import Posterior
from advisor.model.presets import preset_for
from advisor.model.priors import Priors, load_priors
from advisor.model.sampling import Sampling
from advisor.run.copies import mark_copies
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
    corpora = {
        cohort.name: corpus_beside([case.seen for case in cohort.cases])
        for _, cohorts, _ in asked
        for cohort in cohorts
    }
    predictions: list[Prediction] = []
    left_out: list[str] = []
    failed: list[str] = []
    uncurved: list[str] = []
    done = 0
    for share, cohorts, unusable in asked:
        left_out += unusable
        at = f" at {share:.0%}" if len(asked) > 1 else ""
        for cohort in cohorts:
            tell("Backtesting", done / total, f"{cohort.name}{at}, {len(cohort.cases)} runs")
            done += 1
            corpus, posterior = corpora[cohort.name], None
            pilots = [case.seen for case in cohort.cases]
            if corpus is None:
                try:
                    posterior = fit(pilots, priors=presets[cohort.name], sampling=sampling)
                except NotConvergedError:
                    failed.append(cohort.name + at)
                    continue
                except InputError as error:  # what is seen of it teaches nothing
                    left_out += [f"{case.seen.id}{at}: {error.problem}" for case in cohort.cases]
                    continue
            else:
                posterior, why = fitted_or_none(pilots, presets[cohort.name], sampling)
                uncurved += [f"{cohort.name}{at}: {why}"] if why else []
            own, copies = _forecasts(cohort, share, posterior, corpus)
            predictions += own
            left_out += [f"{run}{at}: its first part is that of another run" for run in copies]
    return Backtest(
        tuple(predictions), tuple(dict.fromkeys(left_out)), tuple(failed), tuple(uncurved)
    )


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
    cohort: CohortCases, seen: float, posterior: Posterior | None, corpus: Corpus | None
) -> tuple[list[Prediction], list[str]]:
    """Predictions of all methods, and the runs whose first part is that of another."""
    floor, ceiling = cohort.bounds
    if posterior is not None:
        floor, ceiling = posterior.meta.floor, posterior.meta.ceiling
    mine, others = [], []
    copies = {
        run.id
        for run in mark_copies([case.seen.with_updates(copy_of=None) for case in cohort.cases])
        if run.copy_of is not None
    }
    for number, case in enumerate(cohort.cases):
        if case.seen.id in copies:
            continue
        question = Question(cohort.name, case.seen.id, seen, None, cohort.bounds, case.target)
        shared = None
        if posterior is not None:
            shared = curve_of_begun_run(posterior, case.seen, case.steps, seed=number)
        continued = end_of_begun_run(
            case.seen, case.steps, corpus=corpus, bounds=(floor, ceiling), curve=shared
        )
        mine.append(predict(ADVISOR, question, continued.draws))
        rng = np.random.default_rng(0)
        draws = {"last value": last_value(case, rng)}
        for name, curve in CURVES.items():
            draws[name] = curve_fit(case.seen, case.steps, curve, (floor, ceiling), rng)[0]
        draws["ensemble"] = ensemble(case, floor, ceiling, rng)
        others += [predict(name, question, values) for name, values in draws.items()]
    return [*mine, *others], sorted(copies)
