"""Fit pilot runs; where chains get lost in a learned preset, under a narrower one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from advisor import model
from advisor.common import SAMPLING_AGAIN, Kind, Progress, note, progress_of
from advisor.errors import InputError, NotConvergedError
from advisor.forecast.analogues import describe, kind_of
from advisor.model import Posterior, Priors, Sampling
from advisor.runs import PilotRun, read_runs


def fit(
    runs: Sequence[PilotRun] | str | Path,
    *,
    priors: Priors | str | None = None,
    family: str = model.SPECTRUM.name,
    sampling: Sampling | None = None,
    progress: bool | Progress | None = None,
) -> Posterior:
    """Fit the hierarchical model to pilot runs.

    Parameters
    ----------
    runs : sequence of PilotRun, or path-like
        From :func:`advisor.read_runs`, or what that reads.
    priors : Priors or str, optional
        A preset or its name [default: the one whose evidence the runs lie in, `preset_for`].
    family : str
        Of the reward curve: ``spectrum``, or ``oscillator`` for the closed form of one damped mode.
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
        The runs do not hold what a fit needs, or the family is unknown.
    NotConvergedError
        R-hat, effective sample size or divergences failed in two attempts.
    """
    tell = progress_of(progress)
    runs = read_runs(runs) if isinstance(runs, str | Path) else runs
    named, why = (priors, None) if priors is not None else model.preset_for(runs)
    preset = model.load_priors(named) if isinstance(named, str) else named
    settings, chosen = sampling or Sampling(), model.family_of(family)
    cohort = model.cohort_of(runs)
    if why is not None:
        adapters = {run.hyperparameters.adapter for run in runs}
        is_unsure = "lora" in adapters and len(adapters) > 1
        kind = Kind.PRESET_UNSURE if is_unsure else Kind.PRESET_CHOSEN
        chosen_so = note(kind, preset=preset.name, why=why)
        cohort = replace(cohort, notes=(*cohort.notes, chosen_so))
    tell("Loading the sampler", None, "compiled at its first use, then kept on disk")
    try:
        return model.converged(cohort, preset, chosen, settings, tell)
    except NotConvergedError:
        if not preset.learned_from:
            raise
        narrower = "small_models" if model.all_small(run.parameters for run in runs) else "theory"
        swapped = note(Kind.PRESET_SWAPPED, preset=preset.name, narrower=narrower)
        tell(SAMPLING_AGAIN, None, str(swapped))
        preset = model.load_priors(narrower)
        cohort = replace(cohort, notes=(*cohort.notes, swapped))
        return model.converged(cohort, preset, chosen, settings, tell)


def fitted_or_none(
    runs: Sequence[PilotRun], priors: Priors | str | None = None, sampling: Sampling | None = None
) -> tuple[Posterior | None, str]:
    """Fit the runs of a cohort that do not fall, or say why no curve can be pooled over them."""
    # A run that falls fits no closed form: its end would pull down those of its siblings.
    upright = [run for run in runs if not is_falling(run)]
    if not upright:
        return None, "every run falls"
    if not any(run.has_moved for run in upright):  # its curve would be the preset's
        return None, "no run's reward moved by more than its noise"
    try:
        return fit(upright, priors=priors, sampling=sampling), ""
    except (InputError, NotConvergedError) as error:
        return None, error.problem if isinstance(error, InputError) else str(error)


def is_falling(run: PilotRun) -> bool:
    """Whether the last third of what is seen of a run lies below the first by more than noise."""
    known = np.isfinite(run.reward)
    if known.sum() < PilotRun.LEAST_REWARDS:
        return False
    step = run.step[known]
    seen = describe(step, run.reward[known], float(step[-1]), kind_of(run))
    return -seen.gained > max(3.0 * seen.error, 0.1 * seen.unit)
