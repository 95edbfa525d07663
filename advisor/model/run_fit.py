"""What a fit did: how far it left its priors, and whether its curve reproduces each pilot.

Whitened and divided by its length, the residual of a run is a random direction. Contrasts of bins
and the length have exact distributions for each draw, and their probabilities are averaged (Gelman,
Meng, Stern, Statistica Sinica 6, 1996). They are cautious because the curve was fitted to the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from advisor.errors import StudyError
from advisor.model import equations as eq
from advisor.model.likelihood import Expectation, Observations, covariance, expected_by
from advisor.model.parameters import LAWS, LEVELS, POPULATION
from advisor.model.posterior import Posterior
from advisor.model.priors import say
from advisor.theory import FloatArray, IntArray

FEWEST_BINS = 6  # Bins below which neither a third nor a swing of a run can be judged
DRAWS = 500  # Draws of the posterior that are used; the results are smooth in them
NAMED = 0.01  # Chance of a check below which a run is named by it

TOGETHER = 0.05
"""Chance below which a run is named where all pilots together are further off than ``NAMED``: what
the curves lack shows a little in every run."""

FEWEST_EVALUATIONS = 4
"""Evaluations below which their end cannot be distinguished from those before."""

DIRECTIONS = 4  # Random directions for each draw and run: the least chance is one in two thousand
WIDTH = 2  # Bins of either end of a change: a single one may be an odd batch

THIRD = 3

MOST_SAID = 3  # Runs that are described at most; where a fit fails, of half of all at most


def informed_share(posterior: Posterior) -> dict[str, float]:
    """Share of the prior's variance that the pilots removed, per term (arXiv:1803.08393)."""
    terms = [f"{law}.{term}" for law, terms in LAWS.items() for term in terms]
    return {
        name: 1.0 - float(np.std(posterior.as_in_priors(name))) ** 2 / prior.sd**2
        for name in (*terms, "curvature_exponent")
        for prior in [getattr(posterior.meta.priors, name.replace(".", "_"))]
    }


def log_prior(posterior: Posterior) -> FloatArray:
    """Log density of the scaled priors at each draw, up to a constant, shape (draws,)."""
    total, priors = np.zeros(posterior.flat(LEVELS[0]).shape[0]), posterior.meta.placed_priors
    for name in (*POPULATION, *LEVELS):
        prior = getattr(priors, name.replace(".", "_"))
        values = posterior.as_in_priors(name).reshape(total.size, -1)
        total -= 0.5 * (((values - prior.mean) / prior.sd) ** 2).sum(axis=1)
    return total


class Residuals(NamedTuple):
    """Rewards less their curves, (draws, runs, bins), roots of covariances, bins of each run."""

    seen: Observations
    expected: Expectation
    left: FloatArray
    root: FloatArray
    counts: IntArray

    def white(self, run: int) -> FloatArray:
        """Whitened residuals of a run, shape (draws, bins): about one where the curve fits."""
        bins = int(self.counts[run])
        left, root = self.left[:, run, :bins], self.root[:, run, :bins, :bins]
        return np.asarray(np.linalg.solve(root, left[..., None])[..., 0], dtype=float)


def residuals(posterior: Posterior) -> Residuals | None:
    """Residuals of the pilots; None of a posterior that was made by hand."""
    seen = posterior.observations
    if seen is None:
        return None
    total = posterior.flat("is_oscillator").size
    kept = np.unique(np.linspace(0, total - 1, min(DRAWS, total)).astype(int))
    expected = expected_by(posterior, seen, kept)
    spread = covariance(
        expected.sampling_variance + eq.LEAST_VARIANCE,
        expected.residual_variance,
        seen.constant["correlation"],
    )
    try:
        root = np.linalg.cholesky(spread)
    except np.linalg.LinAlgError as error:
        raise StudyError(
            "the posterior's draws are not those of its pilots", advice="Fit the pilots again"
        ) from error
    left = np.asarray(seen.train_reward - expected.train_reward)
    return Residuals(seen, expected, left, root, (seen.is_logged > 0).sum(axis=1))


def strays(posterior: Posterior) -> dict[str, float]:
    """How far runs are from their curves, over what noise explains; the farthest first."""
    found = residuals(posterior)
    if found is None:
        return {}
    far = {
        str(found.seen.coords["run"][run]): float(np.sqrt((found.white(run) ** 2).mean()))
        for run in range(found.counts.size)
        if found.counts[run] >= FEWEST_BINS
    }
    return dict(sorted(far.items(), key=lambda item: -item[1]))


def worst_fits(posterior: Posterior) -> str:
    """Runs that their curves fit worst, in words; empty where there is nothing to choose from."""
    try:
        far = {run: ratio for run, ratio in strays(posterior).items() if np.isfinite(ratio)}
    except StudyError:  # draws of chains that got lost may be anything
        return ""
    named = list(far.items())[: min(MOST_SAID, len(far) // 2)]
    return ", ".join(f"'{run}' ({ratio:.1f} times the noise)" for run, ratio in named)


@dataclass(frozen=True)
class RunFit:
    """How well the curve that was fitted to a pilot reproduces it."""

    run: str
    chance: dict[str, float]
    first: float
    last: float
    fall: float
    above: float
    held_out_above: float
    ratio: float
    named_by: str | None = None

    @property
    def text(self) -> str:
        """What of the run the curve does not reproduce; empty where it reproduces all."""
        return say("misfit", self)


def run_fits(posterior: Posterior) -> tuple[RunFit, ...]:
    """Check each pilot against the curve that was fitted to it."""
    found = residuals(posterior)
    if found is None:
        return ()
    seen, expected, counts = found.seen, found.expected, found.counts
    held_out = seen.held_out_reward - expected.held_out_reward
    in_scales = held_out / expected.held_out_scale
    span = posterior.meta.eval_ceiling - posterior.meta.eval_floor
    fits = []
    for run in map(int, np.flatnonzero(counts >= FEWEST_BINS)):
        own = np.flatnonzero(seen.run_of_evaluation == run)
        left = held_out[:, own].mean(axis=0)
        fits.append(_with_evaluations(_run_fit(found, run), left, in_scales[:, own], span))
    return _named(fits)


def misfit_caution(posterior: Posterior) -> str:
    """One sentence on the pilots that their curves do not reproduce; empty without any."""
    named = [fit for fit in run_fits(posterior) if fit.named_by is not None]
    if not named:
        return ""
    named.sort(key=lambda fit: min(fit.chance.values()))
    return say("misfits", named[:MOST_SAID], len(named) - MOST_SAID)


def _named(fits: Sequence[RunFit]) -> tuple[RunFit, ...]:
    """Runs with the check that names each, alone or because all are off in the same way."""
    from scipy.stats import norm

    together = {}
    for name in {name for fit in fits for name in fit.chance}:
        own = [fit.chance[name] for fit in fits if name in fit.chance]
        together[name] = float(norm.sf(norm.isf(own).sum() / np.sqrt(len(own))))
    out = []
    for fit in fits:
        below = [
            name
            for name, chance in fit.chance.items()
            if chance < (TOGETHER if together[name] < NAMED else NAMED)
        ]
        worst = min(below, key=lambda name: fit.chance[name], default=None)
        out.append(replace(fit, named_by=worst))
    return tuple(out)


def _run_fit(found: Residuals, run: int) -> RunFit:
    """Checks of one run."""
    seen, bins, white = found.seen, int(found.counts[run]), found.white(run)
    left, root = found.left[:, run, :bins], found.root[:, run, :bins, :bins]
    begins, ends, contrasts = _changes(bins)
    step = seen.constant["step"][run, :bins]
    span, mean = seen.ceiling - seen.floor, left.mean(axis=0)
    third = max(1, bins // THIRD)
    largest = int(np.argmax(np.abs(contrasts @ mean)))
    return RunFit(
        run=str(seen.coords["run"][run]),
        chance=_chances(root, white),
        first=float(step[begins[largest]]),
        last=float(step[ends[largest]]),
        fall=float(-contrasts[largest] @ mean) * span,
        above=float(mean[-third:].mean()) * span,
        held_out_above=0.0,
        ratio=float(np.sqrt((white**2).mean())),
    )


def _with_evaluations(fit: RunFit, left: FloatArray, in_scales: FloatArray, span: float) -> RunFit:
    """Fit with the check of its evaluations, which are independent Student t."""
    count = left.size
    if count < FEWEST_EVALUATIONS:
        return fit
    third = max(1, count // THIRD)
    turn = np.r_[np.full(count - third, -1 / (count - third)), np.full(third, 1 / third)]
    free = np.random.default_rng(1).standard_t(eq.DEGREES, (DIRECTIONS, *in_scales.shape))
    chance = _share_above(np.abs(free @ turn), np.abs(in_scales @ turn))
    return replace(
        fit,
        chance=fit.chance | {"held_out": chance},
        held_out_above=float(left[-third:].mean()) * span,
    )


def _chances(root: FloatArray, white: FloatArray) -> dict[str, float]:
    """Probability of each check, from roots of covariances and whitened residuals."""
    from scipy.stats import f as ratio_of_variances
    from scipy.stats import t as student

    bins = white.shape[-1]
    third = max(1, bins // THIRD)
    late = np.r_[np.zeros(bins - third), np.ones(third)]
    lean = _leanings(late[None], root, white)[:, 0]
    freedom = bins - 1
    in_errors = np.abs(lean) * np.sqrt(freedom / np.maximum(1 - lean**2, np.finfo(float).tiny))
    contrasts = _changes(bins)[2]
    free = np.random.default_rng(0).standard_normal((DIRECTIONS, *white.shape))
    return {
        "level": float(np.mean(2 * student.sf(in_errors, freedom))),
        "change": _share_above(
            np.abs(_leanings(contrasts, root, free)).max(axis=-1),
            np.abs(_leanings(contrasts, root, white)).max(axis=-1),
        ),
        "swings": _share_above(_swings(free), _swings(white)),
        "spread": float(np.mean(ratio_of_variances.sf((white**2).mean(axis=1), bins, eq.DEGREES))),
    }


def _changes(bins: int) -> tuple[IntArray, IntArray, FloatArray]:
    """First bins, last bins, and contrasts of the mean of some bins with that of earlier ones."""
    begins, ends = np.triu_indices(bins - WIDTH + 1, WIDTH)
    contrasts = np.zeros((begins.size, bins))
    rows = np.arange(begins.size)
    for offset in range(WIDTH):
        contrasts[rows, begins + offset] -= 1 / WIDTH
        contrasts[rows, ends + offset] += 1 / WIDTH
    return begins, ends + WIDTH - 1, contrasts


def _leanings(contrasts: FloatArray, root: FloatArray, white: FloatArray) -> FloatArray:
    """Cosine between whitened residuals and contrasts, shape (..., draws, contrasts)."""
    across = contrasts @ root
    across = across / np.linalg.norm(across, axis=-1, keepdims=True)
    length = np.linalg.norm(white, axis=-1)[..., None]
    return np.asarray((across @ white[..., None])[..., 0] / length)


def _swings(white: FloatArray) -> FloatArray:
    """Lag-one correlation of whitened residuals round zero, shape (...)."""
    return np.asarray((white[..., 1:] * white[..., :-1]).sum(axis=-1) / (white**2).sum(axis=-1))


def _share_above(by_chance: FloatArray, found: FloatArray) -> float:
    """Share of random directions, of shape (directions, draws), that are further off: in (0, 1)."""
    return float((1 + (by_chance >= found).sum()) / (2 + by_chance.size))
