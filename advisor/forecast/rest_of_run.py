"""The rest of a run: its curve under weighted draws, and the wander round it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from advisor.forecast.observed_run import Seen, correlation
from advisor.forecast.reweighting import Weighed
from advisor.forecast.run_effects import DEGREES, Laws
from advisor.model import equations as eq
from advisor.theory.arrays import FloatArray, IntArray

POINTS = 24
"""Steps at which the rest of a run is told."""


@dataclass(frozen=True)
class Ahead:
    """Paths of a run from now to its end, as shares of floor to ceiling.

    Attributes
    ----------
    step : ndarray of shape (points,)
        Optimizer steps.
    curve, path : ndarray of shape (draws, points)
        Expected reward, without and with the run's slow wander.
    """

    step: FloatArray
    curve: FloatArray
    path: FloatArray


def look_ahead(
    weighed: Weighed, seen: Seen, draw: IntArray, luck: FloatArray, *, seed: int
) -> Ahead:
    """Simulate the rest of a run, its wander taken up where the log left it.

    Parameters
    ----------
    weighed : Weighed
    seen : Seen
    draw, luck
        From :meth:`Weighed.resampled`.
    seed : int
        Of the wander to come.

    Returns
    -------
    ahead : Ahead
    """
    steps = np.unique(np.linspace(seen.last, seen.end, POINTS).astype(int)).astype(float)
    laws = weighed.laws.taken(draw)
    curve = laws.reward(luck, seen.clock_at(steps))
    rng = np.random.default_rng(seed)
    size = draw.size
    mean, variance, squares = _state(weighed, laws, seen, draw, luck, float(seen.last))
    rows = seen.reward.size
    # Student t as a scale mixture: the rows say how far this run strays, and the rest strays alike.
    scale = np.sqrt((DEGREES + squares) / rng.chisquare(DEGREES + rows, size))
    misfit = np.exp(laws.population["log_misfit"])
    wander = np.empty((size, steps.size))
    wander[:, 0] = mean + scale * np.sqrt(variance) * rng.standard_normal(size)
    kept = np.exp(-np.diff(steps) / seen.correlation_steps)
    fresh = rng.standard_normal((size, kept.size))
    for at, share in enumerate(kept):
        spread = scale * misfit * np.sqrt(1 - share**2)
        wander[:, at + 1] = share * wander[:, at] + spread * fresh[:, at]
    return Ahead(steps, curve, np.clip(curve + wander, 0.0, 1.0))


def surprise(weighed: Weighed, seen: Seen, steps: FloatArray, mean: float) -> float:
    """Probability that the mean of later rows is as low as it was, by what was seen before.

    Parameters
    ----------
    weighed : Weighed
        By the rows before.
    seen : Seen
        The rows before.
    steps : ndarray of shape (rows,)
        Optimizer steps of the later rows.
    mean : float
        Their mean reward, as a share of floor to ceiling.

    Returns
    -------
    probability : float
    """
    draw, luck = weighed.resampled(weighed.laws.log_onset.size)
    laws = weighed.laws.taken(draw)
    expected = laws.reward(luck, seen.clock_at(steps)).mean(axis=1)
    at = float(steps.mean())
    wander, variance, squares = _state(weighed, laws, seen, draw, luck, at)
    chance = np.clip(expected, 0.02, 0.98) * (1 - np.clip(expected, 0.02, 0.98))
    within = eq.sigmoid(laws.population["within_log_odds"])
    settings = seen.settings
    prompts = settings.prompts_per_step * max(1.0, steps.size / settings.epochs_per_refresh)
    sampling = chance * (within / settings.group_size + 1 - within) / prompts
    variance = variance + sampling * np.exp(2 * laws.population["log_noise_scale"])
    freedom = DEGREES + seen.reward.size
    scale = np.sqrt(variance * (DEGREES + squares) / freedom)
    return float(stdtr(freedom, (mean - expected - wander) / scale).mean())


def _state(
    weighed: Weighed,
    laws: Laws,
    seen: Seen,
    draw: IntArray,
    luck: FloatArray,
    step: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean and variance of the wander at a step given the rows, and their whitened squares."""
    whitening = weighed.residuals.whitening[draw]
    left = seen.reward - laws.reward(luck, seen.clock)
    white = np.matmul(whitening, left[..., None])[..., 0]
    power = np.exp(2 * laws.population["log_misfit"])
    lean = correlation(seen, seen.step, np.array([step]))[:, 0]
    pulled = power[:, None] * np.matmul(whitening, lean)
    variance = np.maximum(power - (pulled**2).sum(axis=1), 0.0)
    return (pulled * white).sum(axis=1), variance, (white**2).sum(axis=1)
