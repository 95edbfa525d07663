"""Fit: from runs to a converged posterior, or an honest refusal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pydantic import BaseModel, ConfigDict

from advisor._compat import Progress, silent
from advisor.diagnosis import Collapse
from advisor.diagnosis.fall import find_final_fall
from advisor.errors import InputError, NotConvergedError
from advisor.posterior.continued import continued_reward
from advisor.posterior.families import FAMILIES, SPECTRUM, Family
from advisor.posterior.posterior import Posterior, make_posterior, mix
from advisor.posterior.presets import preset_for
from advisor.posterior.stacking import held_out_scores, stacked_weights
from advisor.posterior.structure import shape_of, shapes_of
from advisor.priors import Priors, load_priors
from advisor.runs.cohort import Cohort, build_cohort
from advisor.runs.part import first_part
from advisor.runs.pilot_run import PilotRun

RHAT_LIMIT = 1.01
ESS_LIMIT = 400.0
DIVERGENT_SHARE = 0.001
"""Gate: beyond these nothing is published (R-hat and ESS: Vehtari et al., arXiv:1903.08008)."""

MORE_DRAWS = (1, 2, 5)
"""Draws of the attempts, as multiples of what was asked for; each starts from other points."""

CAREFUL = 0.97
"""Target acceptance after an attempt with divergences: smaller steps."""

HELD_OUT_SHARE = 0.67
"""Share of each log that families see when they are compared; they forecast the rest."""

LEAST_SEEN = 8
"""Rewards seen of a run below which its forecast tells nothing of the family."""


class Sampling(BaseModel):
    """How to sample.

    Attributes
    ----------
    draws, tune : int
        Per chain.
    chains : int
    target_accept : float
    seed : int
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    draws: int = 1000
    tune: int = 500
    chains: int = 4
    target_accept: float = 0.9
    seed: int = 1


def fit(
    runs: Sequence[PilotRun],
    *,
    priors: Priors | str | None = None,
    families: Sequence[str] = (SPECTRUM.name,),
    sampling: Sampling | None = None,
    progress: Progress = silent,
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
    progress : callable, optional
        Called with (what is happening, share done or None, detail).

    Returns
    -------
    posterior : Posterior

    Raises
    ------
    InputError
        The runs do not hold what a fit needs, or a family is unknown.
    NotConvergedError
        R-hat, effective sample size or divergences failed in three attempts.
    """
    chosen_priors, why = (priors, None) if priors is not None else preset_for(runs)
    preset = load_priors(chosen_priors) if isinstance(chosen_priors, str) else chosen_priors
    settings = sampling or Sampling()
    chosen = [_family(name) for name in dict.fromkeys(families)]
    cohort = cohort_of(runs)
    if why is not None:
        note = f"prior preset '{preset.name}' chosen: {why}"
        cohort = replace(cohort, notes=(*cohort.notes, note))
    progress("Loading the sampler", None, "compiled at its first use, then kept on disk")
    fits = [_converged(cohort, preset, family, settings, progress) for family in chosen]
    if len(fits) == 1:
        return fits[0]
    return mix(fits, _weights(runs, preset, chosen, settings, progress))


def _family(name: str) -> Family:
    if name not in FAMILIES:
        raise InputError(
            f"there is no family of curves '{name}'",
            key="families",
            advice=f"Choose among {', '.join(FAMILIES)}",
        )
    return FAMILIES[name]


def _converged(
    cohort: Cohort, preset: Priors, family: Family, settings: Sampling, progress: Progress
) -> Posterior:
    """Posterior of one family that passes the gate, in as many attempts as it takes."""
    complaint, has_diverged = None, False
    for attempt, times in enumerate(MORE_DRAWS):
        if attempt:
            detail = f"{complaint}; {times} times the draws, from other starts"
            progress("Sampling again", None, detail)
            settings = settings.model_copy(
                update={
                    "draws": settings.draws * times // MORE_DRAWS[attempt - 1],
                    "tune": 2 * settings.tune if attempt == 1 else settings.tune,
                    "target_accept": CAREFUL if has_diverged else settings.target_accept,
                    "seed": settings.seed + 1,
                }
            )
        posterior = _sampled(cohort, preset, family, settings, progress)
        has_diverged = posterior.convergence.divergent_share > DIVERGENT_SHARE
        complaint = posterior.convergence.complaint(RHAT_LIMIT, ESS_LIMIT, DIVERGENT_SHARE)
        if complaint is None:
            return posterior
    raise NotConvergedError(
        f"The sampler did not converge in {len(MORE_DRAWS)} attempts: {complaint}. No number is "
        "given, because it could be wrong by any amount. Chains that disagree stand for two "
        "explanations of the same logs, between which they cannot move. Usual causes: runs of "
        "different tasks under one name, rewards on different scales, or a run that changed its "
        "settings half-way; leave out the run whose curve looks odd and fit again."
    )


def _sampled(
    cohort: Cohort, preset: Priors, family: Family, settings: Sampling, progress: Progress
) -> Posterior:
    # numba and nutpie take a second to import: only when a fit really starts.
    from advisor import _compat
    from advisor.posterior.density import density_callback, expand_callback
    from advisor.posterior.mode import place

    placement = place(cohort, preset, family)
    draws, statistics = _compat.sample_density(
        (density_callback.address, expand_callback.address),
        placement.block,
        shapes_of(shape_of(cohort)),
        placement.start,
        **settings.model_dump(),
        progress=progress,
    )
    progress("Checking convergence", None, "")
    return make_posterior(
        cohort,
        preset,
        family,
        draws,
        statistics,
        _compat.convergence(draws),
        _compat.versions(),
        seed=settings.seed,
    )


def _weights(
    runs: Sequence[PilotRun],
    preset: Priors,
    families: Sequence[Family],
    settings: Sampling,
    progress: Progress,
) -> dict[str, float]:
    """Weights of families by their forecasts of the last third of the logs."""
    prior = {family.name: float(getattr(preset.family_runs, family.name)) for family in families}
    begun, rest = {}, {}
    for run in runs:
        part = None if run.is_eval_only else first_part(run, HELD_OUT_SHARE)
        if part is None or int(np.isfinite(part.reward).sum()) < LEAST_SEEN:
            continue
        later = (run.step > HELD_OUT_SHARE * run.step[-1]) & np.isfinite(run.reward)
        if later.any():
            begun[run.id], rest[run.id] = part, (run.step[later], float(run.reward[later].mean()))
    scores = {}
    for family in families:
        progress("Comparing families", None, f"{family.title} on the last third of the logs")
        try:
            posterior = _sampled(cohort_of(list(begun.values())), preset, family, settings, silent)
        except InputError:  # what is left of the logs shows no curve: the prior decides
            total = sum(prior.values())
            return {name: count / total for name, count in prior.items()}
        draws, targets = [], []
        for index, summary in enumerate(posterior.meta.runs):
            if summary.collapse_step is None:
                steps, target = rest[summary.id]
                part = begun[summary.id]
                forecast = continued_reward(posterior, index, part, steps, seed=index)
                draws.append(forecast)
                targets.append(target)
        scores[family.name] = held_out_scores(draws, targets)
    return stacked_weights(scores, prior)


def cohort_of(runs: Sequence[PilotRun]) -> Cohort:
    """Turn runs into the arrays that are fitted, with collapsed runs cut at their onset.

    Raises
    ------
    InputError
        Two runs share an id, or the runs do not hold what a fit needs.
    """
    verdicts: dict[str, Collapse] = {}
    # Where no floor is given a loss is measured from the one that the cohort will infer.
    trained = [run for run in runs if not run.is_eval_only]
    given = [run.reward_floor for run in trained if run.reward_floor is not None]
    inferred = min([0.0, *(float(np.nanmin(run.reward)) for run in trained)])
    floor = given[0] if given else inferred
    for run in trained:
        if run.id in verdicts:
            raise InputError(
                f"two runs have the id '{run.id}'",
                path=run.path,
                key="id",
                advice="Read both folders with one read_runs, or give each run another id",
            )
        # What noise can do is no collapse: it must not teach that a setting kills.
        verdicts[run.id], _ = find_final_fall(run.step, run.reward, floor)
    return build_cohort(
        runs,
        {name: verdict.onset_step for name, verdict in verdicts.items()},
        {name: verdict.healthy_until for name, verdict in verdicts.items()},
    )
