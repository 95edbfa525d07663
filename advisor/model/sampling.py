"""One family of curves, sampled until its chains agree, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pydantic import BaseModel

from advisor.common import DEFAULT_SEED, SAMPLING_AGAIN, Kind, Progress, kinds, note
from advisor.diagnosis import Collapse
from advisor.errors import InputError, NotConvergedError
from advisor.model.cohort import Cohort, build_cohort
from advisor.model.fast import shape_of, shapes_of
from advisor.model.likelihood import observations
from advisor.model.posterior import STACKS, Convergence, Posterior, make_posterior
from advisor.model.priors import SPECTRUM, Family, Priors, say
from advisor.model.run_fit import worst_fits
from advisor.model.storage import prior_draws
from advisor.runs import PilotRun
from advisor.theory import FloatArray

RHAT_LIMIT = 1.01
ESS_LIMIT = 400.0
DIVERGENT_SHARE = 0.001
"""Gate: beyond these nothing is published (R-hat and ESS: Vehtari et al., arXiv:1903.08008)."""

LOOSE_RHAT, LOOSE_ESS, LOOSE_DIVERGENT_SHARE = 1.05, 100.0, 0.01
"""Gate of the last attempt: what passes it, and not the strict one, is published with a caution.
Chains whose means differ by a fifth of the posterior's spread still tell an interval apart from
nothing; refusing them left four in ten real cohorts without an answer."""

MOST = 4  # Draws of a chain over those asked for: an attempt goes on so far, until its chains agree
ATTEMPTS = 2  # Each starts from other points

KEPT = 1000
"""Draws of a chain that a posterior keeps: agreement is judged of all, forecasts need no more."""

FIRST_RHAT = 1.5
"""Of a first look: chains that disagree stand for two explanations, and the answer covers both."""

CAREFUL = 0.99  # Target acceptance after an attempt with divergences: smaller steps


class Sampling(BaseModel, frozen=True, extra="forbid"):
    """How to sample.

    Attributes
    ----------
    draws, tune : int
        Per chain; four times the draws at most, until the chains agree. Of more than two thousand
        every so many is kept.
    chains : int
    target_accept : float
    seed : int
    is_first_look : bool
        One attempt under the loose gate, which the posterior's notes say.
    """

    draws: int = 1500
    tune: int = 800
    chains: int = 4
    target_accept: float = 0.97
    seed: int = DEFAULT_SEED
    is_first_look: bool = False

    @classmethod
    def first_look(cls, seed: int = DEFAULT_SEED) -> Sampling:
        """A quarter of the draws and one attempt: minutes where many runs would take an hour."""
        return cls(draws=500, tune=500, seed=seed, is_first_look=True)


def converged(
    cohort: Cohort, preset: Priors, family: Family, settings: Sampling, progress: Progress
) -> Posterior:
    """Posterior of one family that passes the gate; a note says where only the loose one."""
    complaint, over, has_diverged, agrees = None, "", False, False
    first_look = note(Kind.FIRST_LOOK)
    attempts = 1 if settings.is_first_look else ATTEMPTS
    for attempt in range(attempts):
        if attempt:
            what = "smaller steps" if has_diverged else "a longer warm-up"
            progress(SAMPLING_AGAIN, None, f"{complaint}{over}; {what}, from other starts")
            settings = settings.model_copy(
                update={
                    "tune": 2 * settings.tune,
                    "target_accept": CAREFUL if has_diverged else settings.target_accept,
                    "seed": settings.seed + 1,
                }
            )
        posterior = sampled(cohort, preset, family, settings, progress)
        found = posterior.convergence
        has_diverged = found.divergent_share > DIVERGENT_SHARE
        complaint = found.complaint(RHAT_LIMIT, ESS_LIMIT, DIVERGENT_SHARE)
        over = f" over {', '.join(found.disputed)}" if found.disputed else ""
        if complaint is None:
            return posterior.with_note(first_look) if settings.is_first_look else posterior
        agrees = found.complaint(RHAT_LIMIT, ESS_LIMIT, LOOSE_DIVERGENT_SHARE) is None
    if settings.is_first_look and found.complaint(FIRST_RHAT, 0.0, 1.0) is None:
        return posterior.with_note(first_look).with_note(
            note(Kind.CHAINS_LOOSE, complaint=complaint, attempts=attempt + 1)
        )
    if found.complaint(LOOSE_RHAT, LOOSE_ESS, LOOSE_DIVERGENT_SHARE) is None:
        kind = Kind.CHAINS_AGREE if agrees else Kind.CHAINS_LOOSE
        return posterior.with_note(note(kind, complaint=complaint, attempts=attempt + 1))
    worst, low, high = worst_fits(posterior), cohort.floor, cohort.ceiling
    read_off = {Kind.REWARD_FLOOR, Kind.REWARD_CEILING, Kind.CEILING_DOUBTED}
    is_read_off = not read_off.isdisjoint(kinds(cohort.notes))
    bounds = (low, high) if is_read_off and (low, high) != (0.0, 1.0) else None
    first = settings.is_first_look
    raise NotConvergedError(say("not_converged", complaint, attempts, first, bounds, over, worst))


def sampled(
    cohort: Cohort, preset: Priors, family: Family, settings: Sampling, progress: Progress
) -> Posterior:
    """Posterior of one family, whether or not its chains agree."""
    # numba and nutpie take a second to import: only when a fit really starts.
    from advisor.model import compat as _compat
    from advisor.model.fast.density import density_of, draw_of
    from advisor.model.fast.sampler_coordinates import place

    placed = preset.at(cohort.reference)
    placement, shape = place(cohort, placed, family), shape_of(cohort)

    def agree(draws: dict[str, FloatArray], statistics: dict[str, FloatArray]) -> bool:
        found = Convergence.of(_compat.convergence(draws), statistics, [r.id for r in cohort.runs])
        return found.complaint(RHAT_LIMIT, ESS_LIMIT, DIVERGENT_SHARE) is None

    draws, statistics = _compat.sample_density(
        density_of(placement.block),
        draw_of(placement.block, shape),
        shapes_of(shape),
        placement.start,
        **settings.model_dump(exclude={"is_first_look"}),
        most=settings.draws * (1 if settings.is_first_look else MOST),
        is_enough=agree,
        progress=progress,
    )
    progress("Checking convergence", None, "")
    every = max(1, statistics["diverging"].shape[1] // KEPT)
    return make_posterior(
        cohort,
        preset,
        family,
        {name: values[:, ::every] for name, values in draws.items()},
        {name: values[:, ::every] for name, values in statistics.items()},
        _compat.convergence(draws),
        _compat.versions(),
        seed=settings.seed,
    )


def prior_posterior(
    cohort: Cohort, priors: Priors, *, draws: int = 2000, seed: int = DEFAULT_SEED
) -> Posterior:
    """Draw from a preset what a posterior of a cohort would hold had nothing been seen of it."""
    rng, seen = np.random.default_rng(seed), observations(cohort)
    # No curve was fitted that longer runs could come out above.
    as_drawn = priors.extrapolation.model_copy(update={"gain": 0.0})
    priors = priors.model_copy(update={"extrapolation": as_drawn})
    drawn = prior_draws(priors.at(cohort.reference), seen, rng, draws)
    raw = {name: np.stack([drawn[one] for one in own], 2) for name, own in STACKS.items()}
    raw["start_logit"] = raw["start_logit"][:, :, 0]
    posterior = make_posterior(
        cohort,
        priors,
        SPECTRUM,
        raw,
        {name: np.zeros((1, draws)) for name in ("diverging", "n_steps")},
        {"population": (np.ones(1), np.full(1, float(draws)))},
        {},
        seed=seed,
    )
    nothing = {"logged_steps": (), "logged_rewards": ()}
    runs_unseen = tuple(run.model_copy(update=nothing) for run in posterior.meta.runs)
    meta = posterior.meta.model_copy(update={"runs": runs_unseen})
    return replace(posterior, meta=meta)


def cohort_of(runs: Sequence[PilotRun]) -> Cohort:
    """Turn runs into the arrays that are fitted, with collapsed runs cut at their onset."""
    seen: set[str] = set()
    for run in (run for run in runs if not run.is_eval_only):
        if run.id in seen:
            problem = f"two runs have the id '{run.id}'"
            advice = "Read both folders with one read_runs, or give each run another id"
            raise InputError(problem, path=run.path, key="id", advice=advice)
        seen.add(run.id)
    verdicts = Collapse.of_cohort(runs)
    return build_cohort(
        runs,
        {name: verdict.onset_step for name, verdict in verdicts.items()},
        {name: verdict.healthy_until for name, verdict in verdicts.items()},
        {name: verdict.fell_from for name, verdict in verdicts.items()},
    )
