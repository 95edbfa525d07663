"""What a pilot would be worth: how much better the decision becomes by its result.

The expected value of sample information by regression (Strong, Oakley, Breeze, "Estimating the
expected value of sample information using the probabilistic sensitivity analysis sample",
doi:10.1177/0272989X15575286): over posterior draws, regress the utility of every configuration on
what the pilot would show. The fitted value is what one would expect of it after the pilot, and the
mean of its maximum, less the maximum of the means, is the gain. No model is fitted again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor.forecast import Forecaster, stability_draws
from advisor.runs import Settings
from advisor.theory import FloatArray

LOOKS = (1 / 3, 2 / 3, 1.0)
"""Shares of what is to come of a pilot at which its reward is looked at; each time a third of its
rows is averaged."""

IDLE = 0.001
"""Gain, as a share of the reward range, up to which what is done changes nothing worth doing."""

SHUFFLES = 2
"""Times that results are dealt to the wrong draws, to see what the regression finds in noise."""


def utilities(
    forecaster: Forecaster,
    configurations: Sequence[Settings],
    steps: Sequence[int],
) -> FloatArray:
    """Reward at the end of a run, or the floor where it is lost, shape (configurations, draws)."""
    floor = forecaster.outcome_bounds[0]
    out = []
    for settings, last in zip(configurations, steps, strict=True):
        planned = settings.planned_over(last)
        level = forecaster.scaled_reward(planned, last)
        stable = stability_draws(forecaster, planned, last, level=level[:, 0])
        out.append(floor + stable * (forecaster.outcome_of(level)[:, 0] - floor))
    return np.array(out)


def shown(
    forecaster: Forecaster,
    pilot: Settings,
    steps: int,
    stable: FloatArray,
    rng: np.random.Generator,
    *,
    begun: int = 0,
) -> FloatArray:
    """What a pilot would show under each draw after its first steps, shape (draws, features).

    Those ``begun`` are behind it; without any it is a pilot that has yet to start.

    Whether it collapses (``stable`` is the probability that it does not, shape (draws,)), and,
    where it does not, its reward at three points with its wander and the noise of its batches:
    those of a new seed.
    """
    planned = pilot.planned_over(steps)
    times = np.maximum(1, np.round(begun + np.array(LOOKS) * (steps - begun))).astype(int)
    level = np.clip(forecaster.scaled_reward(planned, times), 0.01, 0.99)
    rows = max(1.0, (steps - begun) / len(LOOKS)) * pilot.prompts_per_step
    noise = np.sqrt(level * (1 - level) / rows)
    wander = np.exp(forecaster.population["log_misfit"])[:, None] * rng.standard_normal(
        (level.shape[0], 1)
    )
    seen = level + wander + noise * rng.standard_normal(level.shape)
    collapses = rng.random(level.shape[0]) > stable
    seen[collapses] = 0.0
    middle = seen[~collapses].mean(axis=0) if not collapses.all() else 0.0
    centred = np.where(collapses[:, None], 0.0, seen - middle)
    return np.column_stack(
        [
            np.ones(level.shape[0]),
            collapses.astype(float),
            centred,
            centred**2,
            centred[:, :1] * centred[:, -1:],
        ]
    )


def information_gain(utility: FloatArray, features: FloatArray, rng: np.random.Generator) -> float:
    """Expected gain of the decision by a pilot's result, in units of the utility."""
    orders = [np.arange(features.shape[0])]
    orders += [rng.permutation(features.shape[0]) for _ in range(SHUFFLES)]
    found = [_best_expected(utility, features[order]) for order in orders]
    return max(0.0, found[0] - float(np.mean(found[1:])))


def _best_expected(utility: FloatArray, features: FloatArray) -> float:
    # Products of BLAS start threads, which on a busy machine wait for each other ten times as long
    # as these small sums take.
    gram = np.einsum("di,dj->ij", features, features)
    # A tiny ridge: columns that are all zero (no draw collapses) must not break the solve.
    gram += 1e-9 * np.trace(gram) * np.eye(gram.shape[0])
    weights = np.linalg.solve(gram, np.einsum("di,cd->ic", features, utility))
    fitted = np.einsum("di,ic->dc", features, weights)
    return float(fitted.max(axis=1).mean())
