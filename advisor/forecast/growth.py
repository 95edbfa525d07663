"""A mean that can rise: the log-odds of a reward grow with the share of groups that teach.

A group whose rewards are all equal gives no gradient. So the log-odds x of a reward p, as a share
of floor to ceiling, move by ``dx/dt = s T(p) (1 - p / q)``. The speed s is in log-odds a step, T is
the share of groups that teach over that at a half, and q the plateau. From a low start this is
S-shaped. Near the plateau it is the saturating exponential of the closed form (arXiv:2606.30789).
Runs of one project have nearly the same speed and plateau: each is a level of the project.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from advisor.forecast.analogues import log_odds
from advisor.model import GrowthLaw, sigmoid
from advisor.runs import PilotRun
from advisor.theory import FloatArray, PromptDifficulty, silent_group_share

USUAL_GROUP = 8
"""Completions of a group where a log does not say how many."""

CONCENTRATION = 1.0
"""Of the pass rates of prompts: most are nearly always right, or nearly always wrong."""

ODDS = np.linspace(-8.0, 8.0, 65)
"""Log-odds at which the share of groups that teach is tabulated; rewards stay within them."""

POINTS, STEPS = 150, 40
"""Means of rows that are fitted at most, and steps of the integration."""

COUNTED = 20.0
"""Rows that a log counts as at most: a run wanders round any curve, so more tell little more."""

FEWEST_SIBLINGS = 2  # Siblings from which they are the prior of a run

LOWEST, HIGHEST = np.array([-7.0, -16.0, -6.0]), np.array([6.0, 3.0, 6.0])
"""Ends of start in log-odds, log of the speed, plateau in log-odds."""


class RewardRows(NamedTuple):
    """Means of the rows of a run: steps and shares of floor to ceiling, both (points,)."""

    step: tuple[float, ...]
    share: tuple[float, ...]
    group_size: int

    @classmethod
    def of(
        cls, step: Any, reward: Any, bounds: tuple[float, float], group_size: float | None
    ) -> RewardRows:
        """Take the finite ones of a log."""
        at, value = np.asarray(step, dtype=float), np.asarray(reward, dtype=float)
        known = np.flatnonzero(np.isfinite(value))
        parts = np.array_split(known, min(POINTS, known.size))
        share = np.clip((value - bounds[0]) / (bounds[1] - bounds[0]), 0.0, 1.0)
        means = [[float(of[part].mean()) for part in parts] for of in (at, share)]
        return cls(tuple(means[0]), tuple(means[1]), counted_group(group_size))


def counted_group(group_size: float | None) -> int:
    """Completions of a group as its growth counts them."""
    return int(np.clip(group_size or USUAL_GROUP, 2, 64))


@cache
def teaching(group_size: int) -> FloatArray:
    """Share of groups that teach at ODDS, over that at a half."""
    shares = [
        1 - silent_group_share(group_size, PromptDifficulty(float(mean), CONCENTRATION))
        for mean in sigmoid(ODDS)
    ]
    return np.array(shares) / shares[ODDS.size // 2]


def growth_ahead(run: PilotRun, level: float, end: float) -> float:
    """E-folds of steps that are left of a run, by the growth that its level, a share, allows."""
    left = np.log(max(end / float(run.step[-1]), 1.0))
    odds = log_odds(level, float(sigmoid(ODDS[0])))
    taught = teaching(counted_group(run.hyperparameters.group_size))
    return float(left * np.interp(odds, ODDS, taught) * (1 - sigmoid(odds)))


def path(theta: FloatArray, end: float, taught: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log-odds along a run to step ``end``, (STEPS + 1, ...), for start, log speed, plateau."""
    odds, speed, plateau = theta[0], np.exp(theta[1]), sigmoid(theta[2])
    times, found = np.linspace(0.0, end, STEPS + 1), [odds]

    def growth(at: FloatArray) -> FloatArray:
        left = np.clip(1 - sigmoid(at) / plateau, -1.0, 1.0)
        return np.asarray(speed * np.interp(at, ODDS, taught) * left)

    for _ in range(STEPS):
        half = growth(odds + 0.5 * times[1] * growth(odds))
        odds = np.clip(odds + times[1] * half, ODDS[0], ODDS[-1])
        found.append(odds)
    return times, np.stack(found)


@lru_cache(maxsize=256)
def fitted(
    rows: RewardRows, middle: tuple[float, float], spread: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Start, log speed and plateau of a run, (3,), and the root of their covariance.

    ``middle`` and ``spread`` are those of the prior of log speed and plateau.
    """
    from scipy.optimize import least_squares

    time, share = np.array(rows.step) - rows.step[0], np.array(rows.share)
    noise = max(float(np.std(np.diff(share))) / np.sqrt(2), 0.02)
    error = noise * np.sqrt(1 + share.size / COUNTED)
    first = np.clip(share[: max(2, share.size // 10)].mean(), 0.005, 0.95)
    means = np.array([np.log(first / (1 - first)), *middle])
    sds = np.array([1.5, *spread])
    taught = teaching(rows.group_size)
    nudge = 1e-4
    nudges = np.concatenate([np.zeros((3, 1)), nudge * np.eye(3)], axis=1)

    def curves(theta: FloatArray) -> FloatArray:
        times, odds = path(theta[:, None] + nudges, time[-1], taught)
        place = time / max(times[1], 1e-12)
        low = np.minimum(place.astype(int), STEPS - 1)
        between = odds[low] + (place - low)[:, None] * (odds[low + 1] - odds[low])
        return np.asarray(sigmoid(between))

    def misses(theta: FloatArray) -> FloatArray:
        own = (curves(theta)[:, 0] - share) / error
        return np.concatenate([own, (theta - means) / sds])

    def slopes(theta: FloatArray) -> FloatArray:
        values = curves(theta)
        own = (values[:, 1:] - values[:, :1]) / nudge / error
        return np.concatenate([own, np.diag(1 / sds)])

    fits = [
        least_squares(misses, start, jac=slopes, bounds=(LOWEST, HIGHEST))
        for start in means + np.array([[0.0, away, 0.0] for away in (0.0, 1.5, -1.5)])
    ]
    best = min(fits, key=lambda found: float(found.cost))
    return best.x, np.linalg.cholesky(np.linalg.inv(best.jac.T @ best.jac))


def grown(
    rows: RewardRows,
    end: float,
    siblings: Sequence[RewardRows],
    law: GrowthLaw,
    rng: np.random.Generator,
) -> FloatArray:
    """Draws of the share at step ``end`` of a run that has begun.

    Parameters
    ----------
    rows : RewardRows
        Of the run.
    end : float
        Optimizer step that is asked about.
    siblings : sequence of RewardRows
        Other runs of its project, whose speed and plateau are nearly the same.
    law : GrowthLaw
        Learned from other repositories.
    rng : numpy.random.Generator

    Returns
    -------
    draws : ndarray of shape (1000,)
        In [0, 1].
    """
    middle, spread = (law.log_speed, law.plateau), (law.log_speed_spread, law.plateau_spread)
    if len(siblings) >= FEWEST_SIBLINGS:
        known = np.median([fitted(one, middle, spread)[0][1:] for one in siblings], axis=0)
        middle = (float(known[0]), float(known[1]))
        spread = (law.log_speed_within, law.plateau_within)
    at, root = fitted(rows, middle, spread)
    size = 1000
    theta = at[:, None] + root @ rng.standard_normal((3, size))
    theta = np.clip(theta, LOWEST[:, None], HIGHEST[:, None])
    _, odds = path(theta, end - rows.step[0], teaching(rows.group_size))
    draws = sigmoid(odds[-1]) + law.wander * rng.standard_t(5, size)
    return np.asarray(np.clip(draws, 0.0, 1.0))
