"""Fit pilot runs; several families of curves are weighted by how well each forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from advisor.errors import InputError, NotConvergedError
from advisor.forecast.falling import is_falling
from advisor.forecast.predictive import begun_run_reward
from advisor.model.cohort import Cohort
from advisor.model.families import FAMILIES, SPECTRUM, Family
from advisor.model.fit_clock import FitClock
from advisor.model.posterior import Posterior, mix
from advisor.model.presets import all_small, preset_for
from advisor.model.priors import Priors, load_priors
from advisor.model.sampling import Sampling, cohort_of, converged, sampled
from advisor.model.stacking import held_out_scores, stacked_weights
from advisor.run.moved import NONE_MOVED, none_moved
from advisor.run.pilot_run import PilotRun
from advisor.run.progress import SAMPLING_AGAIN, Progress, progress_of

NARROWER, NARROWER_OF_SMALL = "theory", "small_models"
"""What is taken where chains get lost in a preset that learned from runs: such a one leaves room
for much."""

HELD_OUT_SHARE = 0.67
"""Share of each log that families see when they are compared; they forecast the rest."""

LEAST_SEEN = 8
"""Rewards seen of a run below which its forecast tells nothing of the family."""


def fit(
    runs: Sequence[PilotRun],
    *,
    priors: Priors | str | None = None,
    families: Sequence[str] = (SPECTRUM.name,),
    sampling: Sampling | None = None,
    progress: bool | Progress | None = None,
) -> Posterior:
    """Fit the hierarchical model to pilot runs.

    Parameters
    ----------
    runs : sequence of PilotRun
        From :func:`advisor.read_runs`.
    priors : Priors or str, optional
        A preset or its name [default: the one whose evidence the runs lie in, `preset_for`].
    families : sequence of str
        Families of curves, by the names in `families.FAMILIES`. Several are weighted by how well
        each forecasts the last third of the logs, and their draws are mixed.
    sampling : Sampling, optional
        Chains, draws, seed.
    progress : bool or callable, optional
        True prints to standard error; a callable takes stage, share done and detail.

    Returns
    -------
    posterior : Posterior

    Raises
    ------
    InputError
        The runs do not hold what a fit needs, or a family is unknown.
    NotConvergedError
        R-hat, effective sample size or divergences failed in three attempts, of a learned preset
        also under the narrower one.
    """
    tell = FitClock(progress_of(progress))
    chosen_priors, why = (priors, None) if priors is not None else preset_for(runs)
    preset = load_priors(chosen_priors) if isinstance(chosen_priors, str) else chosen_priors
    settings = sampling or Sampling()
    chosen = [_family(name) for name in dict.fromkeys(families)]
    cohort = cohort_of(runs)
    if why is not None:
        note = f"prior preset '{preset.name}' chosen: {why}"
        cohort = replace(cohort, notes=(*cohort.notes, note))
    tell("Loading the sampler", None, "compiled at its first use, then kept on disk")
    try:
        fits = _fits(cohort, preset, chosen, settings, tell)
    except NotConvergedError:
        if not preset.learned_from:
            raise
        narrower = NARROWER_OF_SMALL if all_small(runs) else NARROWER
        note = f"the chains did not agree under preset '{preset.name}': fitted under '{narrower}'"
        tell(SAMPLING_AGAIN, None, note)
        preset = load_priors(narrower)
        cohort = replace(cohort, notes=(*cohort.notes, note))
        fits = _fits(cohort, preset, chosen, settings, tell)
    return fits[0] if len(fits) == 1 else mix(fits, _weights(runs, preset, chosen, settings, tell))


def _fits(
    cohort: Cohort,
    preset: Priors,
    families: Sequence[Family],
    settings: Sampling,
    clock: FitClock,
) -> list[Posterior]:
    """Posterior of each family under one preset."""
    fits = []
    once = settings.chains * (settings.draws + settings.tune)
    for place, family in enumerate(families, start=1):
        comparisons = len(families) if len(families) > 1 else 0
        clock.later = float(once * (len(families) - place + comparisons))
        fits.append(converged(cohort, preset, family, settings, clock))
    return fits


def fitted_or_none(
    runs: Sequence[PilotRun],
    priors: Priors | str | None = None,
    sampling: Sampling | None = None,
) -> tuple[Posterior | None, str]:
    """Fit the runs of a cohort that do not fall, or say why no curve can be pooled over them.

    A run that falls and has not yet fallen for good fits no closed form: its end would pull down
    those of its siblings.

    Parameters
    ----------
    runs : sequence of PilotRun
    priors, sampling
        As for :func:`fit`.

    Returns
    -------
    posterior : Posterior or None
    why : str
        Empty where there is a posterior.
    """
    upright = [run for run in runs if not is_falling(run)]
    if not upright:
        return None, "every run falls"
    if none_moved(upright):  # its curve would be the preset's
        return None, NONE_MOVED
    try:
        return fit(upright, priors=priors, sampling=sampling), ""
    except InputError as error:
        return None, error.problem
    except NotConvergedError as error:
        return None, str(error)


def _family(name: str) -> Family:
    if name not in FAMILIES:
        raise InputError(
            f"there is no family of curves '{name}'",
            argument="families",
            advice=f"Choose among {', '.join(FAMILIES)}",
        )
    return FAMILIES[name]


def _weights(
    runs: Sequence[PilotRun],
    preset: Priors,
    families: Sequence[Family],
    settings: Sampling,
    clock: FitClock,
) -> dict[str, float]:
    """Weights of families by their forecasts of the last third of the logs."""
    prior = {family.name: float(getattr(preset.family_runs, family.name)) for family in families}
    begun, rest = {}, {}
    for run in runs:
        part = None if run.is_eval_only else run.first_part(HELD_OUT_SHARE)
        if part is None or int(np.isfinite(part.reward).sum()) < LEAST_SEEN:
            continue
        later = (run.step > HELD_OUT_SHARE * run.step[-1]) & np.isfinite(run.reward)
        if later.any():
            begun[run.id], rest[run.id] = part, (run.step[later], float(run.reward[later].mean()))
    scores = {}
    once = settings.chains * (settings.draws + settings.tune)
    for place, family in enumerate(families, start=1):
        clock("Comparing families", None, f"{family.title} on the last third of the logs")
        clock.later = float(once * (len(families) - place))
        clock.begin(once, 0, 1)
        try:
            posterior = sampled(
                cohort_of(list(begun.values())), preset, family, settings, clock.heard
            )
        except InputError:  # what is left of the logs shows no curve: the prior decides
            total = sum(prior.values())
            return {name: count / total for name, count in prior.items()}
        clock.end()
        draws, targets = [], []
        for index, summary in enumerate(posterior.meta.runs):
            if summary.collapse_step is None:
                steps, target = rest[summary.id]
                part = begun[summary.id]
                forecast = begun_run_reward(posterior, index, part, steps, seed=index)
                draws.append(forecast)
                targets.append(target)
        scores[family.name] = held_out_scores(draws, targets)
    return stacked_weights(scores, prior)
