"""An Optuna pruner that stops a trial which has collapsed, or will hardly beat the best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from optuna import Study
from optuna.pruners import BasePruner
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState
from scipy.optimize import least_squares, minimize_scalar

from advisor import InputError, PartialSettings, PilotRun, diagnose, find_collapse

__all__ = ["AdvisorPruner"]

FloatArray = NDArray[np.float64]

CHANCE = 0.1
LEAST_REWARDS = 10
"""Rewards below which nothing is pruned."""

LEAST_SHARE = 0.25
"""Share of a trial before which no forecast ends it: many runs start slowly."""

DRAWS = 1000
CURVE_ROWS, LEVEL_ROWS = 20, 400
"""Rewards are averaged into at most so many for the curve, and for the level that wanders."""

LOG_RATIOS = (-12.0, 2.0)
"""Ends of the log variance of a step of the level over that of the noise."""

LOWER, UPPER = np.array([0.0, 0.0, -4.0]), np.array([1.0, 1.0, 5.0])
"""Of the curve: start and plateau as shares of the range, log of the time over that seen."""

RIDGE = 1e-3
"""Added to the information matrix: a curve that the data do not bend has no covariance else."""


class AdvisorPruner(BasePruner):
    """Prune trials that fell for good, or whose forecast end hardly reaches the best trial's value.

    Trials report the mean train reward by optimizer step, and their value is that reward at the end
    of the run. The forecast is the trial's own: half a saturating exponential, half a level that
    wanders, both fitted to what was reported.

    Parameters
    ----------
    steps : int
        Optimizer steps at which a trial ends.
    chance : float
        Probability of reaching the best value below which a trial is pruned, in (0, 1).
    least_rewards : int
        Rewards that a trial may report before it is looked at; by its forecast it is not ended
        before a quarter of its steps.
    bounds : (float, float)
        Floor and ceiling of the reward.

    Raises
    ------
    InputError
        The chance is none, or there is no run to end.
    """

    def __init__(
        self,
        *,
        steps: int,
        chance: float = CHANCE,
        least_rewards: int = LEAST_REWARDS,
        bounds: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        if not 0 < chance < 1:
            raise InputError(f"{chance:g} is no chance", argument="chance", advice="Give 0.1, say")
        if steps < 1 or not bounds[0] < bounds[1]:
            raise InputError(
                f"runs of {steps} steps with rewards from {bounds[0]:g} to {bounds[1]:g}",
                argument="steps, bounds",
                advice="Give the steps of a trial, and floor and ceiling of its reward",
            )
        self.steps, self.chance, self.bounds = steps, chance, bounds
        self.least_rewards = max(3, least_rewards)

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether a trial is to end here."""
        step, reward = _rewards_of(trial)
        if reward.size < self.least_rewards or study.direction != StudyDirection.MAXIMIZE:
            return False
        if _has_fallen(step, reward, self.bounds[0]):
            return True
        done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        values = [one.value for one in done if one.value is not None and np.isfinite(one.value)]
        if not values or not LEAST_SHARE * self.steps <= step[-1] < self.steps:
            return False
        last = np.array([0.9 * self.steps + 1, float(self.steps)])
        floor, ceiling = self.bounds
        rng = np.random.default_rng(0)
        share = (reward - floor) / (ceiling - floor)
        draws = np.concatenate([_curve(step, share, last, rng), _level(step, share, last, rng)])
        reaches = np.clip(draws, 0.0, 1.0) >= (max(values) - floor) / (ceiling - floor)
        return bool(np.mean(reaches) < self.chance)


def _rewards_of(trial: FrozenTrial) -> tuple[FloatArray, FloatArray]:
    """Optimizer steps from 1 on, and the finite rewards reported at them."""
    rows = sorted((s, v) for s, v in trial.intermediate_values.items() if s > 0 and np.isfinite(v))
    return np.array([s for s, _ in rows], dtype=float), np.array([v for _, v in rows], dtype=float)


def _has_fallen(step: FloatArray, reward: FloatArray, floor: float) -> bool:
    """Whether the reward lies far below its best for good, and noise could not have done it."""
    if not find_collapse(step, reward, floor).unstable:
        return False
    run = PilotRun(
        id="trial",
        path="optuna",
        hyperparameters=PartialSettings(),
        step=step,
        series={"reward": reward},
        reward_floor=floor,
    )
    return diagnose(run).card("collapse").status == "FAIL"


def _curve(
    step: FloatArray, share: FloatArray, last: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Draws of the mean at the last steps by a saturating exponential, fitted by least squares."""
    time, level = _binned(step / step[-1], share, CURVE_ROWS)

    def value(theta: FloatArray, at: FloatArray) -> FloatArray:
        start, plateau, scale = theta
        return np.asarray(start - (plateau - start) * np.expm1(-at * np.exp(-scale)))

    fits = [
        least_squares(
            lambda theta: value(theta, time) - level,
            np.clip([level[0], plateau, scale], LOWER + 1e-6, UPPER - 1e-6),
            bounds=(LOWER, UPPER),
        )
        for plateau in (0.4, 0.9)
        for scale in (-1.5, 0.0, 1.5)
    ]
    best = min(fits, key=lambda one: one.cost)
    noise = max(float(np.sqrt(2 * best.cost / max(time.size - LOWER.size, 1))), 1e-3)
    information = best.jac.T @ best.jac + RIDGE * np.eye(LOWER.size)
    root = np.linalg.cholesky(np.linalg.inv(information))
    theta = best.x + noise * rng.standard_normal((DRAWS, LOWER.size)) @ root.T
    theta = np.clip(theta, LOWER, UPPER)
    mean = value(theta.T[:, :, None], last / step[-1]).mean(axis=1)
    return np.asarray(mean + noise * rng.standard_normal(DRAWS) / np.sqrt(CURVE_ROWS * 0.1 + 1))


def _level(
    step: FloatArray, share: FloatArray, last: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Draws of the same by a random walk seen through noise, its variances by likelihood."""
    time, seen = _binned(step, share, LEVEL_ROWS)
    apart = float(np.median(np.diff(time)))

    def filtered(log_ratio: float) -> tuple[float, float, float, float]:
        """-2 log likelihood profiled over the noise, level, its variance / noise, noise."""
        ratio, level, spread = float(np.exp(log_ratio)), float(seen[0]), 1.0
        squares = logs = 0.0
        for value in seen[1:].tolist():
            spread += ratio
            total = spread + 1.0
            squares += (value - level) ** 2 / total
            logs += float(np.log(total))
            level += spread / total * (value - level)
            spread -= spread**2 / total
        size = max(seen.size - 1, 1)
        noise = max(squares / size, 1e-12)
        return size * float(np.log(noise)) + logs, level, spread, noise

    found = minimize_scalar(lambda x: filtered(x)[0], bounds=LOG_RATIOS, method="bounded")
    _, level, spread, noise = filtered(float(found.x))
    ahead = max(float(last.mean()) - float(time[-1]), 0.0) / apart
    rows = max(float(np.ptp(last)) / apart, 1.0)
    variance = noise * (spread + float(np.exp(found.x)) * ahead + 1.0 / rows)
    return np.asarray(level + np.sqrt(variance) * rng.standard_normal(DRAWS))


def _binned(time: FloatArray, share: FloatArray, most: int) -> tuple[FloatArray, FloatArray]:
    parts = np.array_split(np.arange(share.size), min(most, share.size))
    return (
        np.array([time[part].mean() for part in parts]),
        np.array([share[part].mean() for part in parts]),
    )
