"""What a run that has not begun will come to, given its settings alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from advisor.forecast.forecaster import Forecaster, Target
from advisor.model.equations import sigmoid
from advisor.model.posterior import Posterior
from advisor.run.settings import Settings
from advisor.theory import policy_steps
from advisor.theory.arrays import FloatArray

LEFT_AFTER_COLLAPSE = 4
"""Power of a uniform number that tells which share of its start a collapsed run keeps: of 29
tiny-transformer runs half kept less than .05 of it, and the most .6."""


def planned_reward(
    posterior: Posterior,
    target: Target,
    settings: Settings,
    steps: npt.ArrayLike,
    *,
    seed: int = 0,
) -> FloatArray:
    """Mean logged reward over steps of a run that nobody has begun.

    Parameters
    ----------
    posterior : Posterior
        Fitted to other runs.
    target : Target
        Its task and model.
    settings : Settings
        Its settings, with those that trainers settle by default filled in.
    steps : array_like of shape (times,)
        Optimizer steps whose mean reward is asked for.
    seed : int
        Of the run's luck, of its collapse and of the sampling noise.

    Returns
    -------
    reward : ndarray of shape (draws,)
        Predictive draws in reward units: with the luck of a fresh seed, the slow wander and the
        noise of finite batches, as :func:`~advisor.forecast.begun_run.continued_reward` has them,
        and with the chance that the run collapses before its end.
    """
    meta, rng = posterior.meta, np.random.default_rng(seed)
    scale = meta.ceiling - meta.floor
    forecaster = Forecaster(posterior, target, seed=seed)
    times = np.atleast_1d(np.asarray(steps, dtype=float))
    last = int(times.max())
    settings = settings.or_planned_over(last)
    scored = policy_steps(
        times,
        settings.minibatches_per_refresh,
        settings.epochs_per_refresh,
        settings.lag,
    )
    expected = (forecaster.reward(settings, scored).mean(axis=1) - meta.floor) / scale
    size = expected.size
    chance = np.clip(expected, 0.02, 0.98) * (1 - np.clip(expected, 0.02, 0.98))
    within = sigmoid(forecaster.population["within_log_odds"])
    prompts = settings.prompts_per_step * times.size
    sampling = chance * (within / settings.group_size + (1 - within)) / prompts
    variance = sampling * np.exp(2 * forecaster.population["log_noise_scale"])
    variance = variance + np.exp(2 * forecaster.population["log_misfit"])
    alive = expected + np.sqrt(variance) * rng.standard_t(5, size=size)
    asked = max(1, round(prompts * settings.group_size))
    left = forecaster.group.start * rng.random(size) ** LEFT_AFTER_COLLAPSE
    left = rng.binomial(asked, left) / asked  # nothing at all is a common end
    survives = rng.random(size) < forecaster.survival(settings, last)
    return np.asarray(meta.floor + scale * np.clip(np.where(survives, alive, left), 0.0, 1.0))
