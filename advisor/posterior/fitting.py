"""Fit: from runs to a converged posterior, or an honest refusal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from advisor._compat import Progress, silent
from advisor.diagnosis import Collapse, find_collapse
from advisor.errors import InputError, NotConvergedError
from advisor.posterior.posterior import Posterior, make_posterior
from advisor.posterior.structure import shape_of, shapes_of
from advisor.priors import Priors, load_priors
from advisor.runs.cohort import Cohort, build_cohort
from advisor.runs.pilot_run import PilotRun

RHAT_LIMIT = 1.02
ESS_LIMIT = 200.0
DIVERGENT_SHARE = 0.005
"""Gate: above these nothing is published (R-hat and bulk ESS: Vehtari et al., arXiv:1903.08008)."""


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
    target_accept: float = 0.85
    seed: int = 1


def fit(
    runs: Sequence[PilotRun],
    *,
    priors: Priors | str = "full_finetuning",
    sampling: Sampling | None = None,
    progress: Progress = silent,
) -> Posterior:
    """Fit the hierarchical model to pilot runs.

    Parameters
    ----------
    runs : sequence of PilotRun
        From :func:`advisor.read_runs`.
    priors : Priors or str
        A preset or its name.
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
        The runs do not hold what a fit needs.
    NotConvergedError
        R-hat, effective sample size or divergences failed twice.
    """
    preset = load_priors(priors) if isinstance(priors, str) else priors
    settings = sampling or Sampling()
    cohort = cohort_of(runs)
    progress("Loading the sampler", None, "compiled at its first use, then kept on disk")
    from advisor import _compat
    from advisor.posterior.density import density_callback, expand_callback
    from advisor.posterior.mode import place

    placement = place(cohort, preset)
    for attempt in range(2):
        draws, statistics = _compat.sample_density(
            (density_callback.address, expand_callback.address),
            placement.block,
            shapes_of(shape_of(cohort)),
            placement.start,
            **settings.model_dump(),
            progress=progress,
        )
        progress("Checking convergence", None, "")
        posterior = make_posterior(
            cohort,
            preset,
            draws,
            statistics,
            _compat.convergence(draws),
            _compat.versions(),
            seed=settings.seed,
        )
        complaint = posterior.convergence.complaint(RHAT_LIMIT, ESS_LIMIT, DIVERGENT_SHARE)
        if complaint is None:
            return posterior
        if attempt == 0:
            progress("Sampling again", None, f"{complaint}; twice the draws, smaller steps")
            settings = settings.model_copy(
                update={
                    "draws": 2 * settings.draws,
                    "tune": 2 * settings.tune,
                    "target_accept": 0.97,
                    "seed": settings.seed + 1,
                }
            )
    raise NotConvergedError(
        f"The sampler did not converge in two attempts: {complaint}. No number is given, because "
        "it could be wrong by any amount. Usual causes: runs of different tasks under one name, "
        "rewards on different scales, or a run that changed its settings half-way; leave out the "
        "run whose curve looks odd and fit again."
    )


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
        verdicts[run.id] = find_collapse(run.step, run.reward, floor)
    return build_cohort(
        runs,
        {name: verdict.onset_step for name, verdict in verdicts.items()},
        {name: verdict.healthy_until for name, verdict in verdicts.items()},
    )
