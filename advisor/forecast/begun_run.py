"""What a run that has begun will come to, given what its log shows so far."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from advisor.forecast.forecaster import Forecaster, Target
from advisor.model.equations import RUN_OFFSETS, sigmoid
from advisor.model.posterior import Posterior
from advisor.run.pilot_run import PilotRun
from advisor.theory import policy_steps
from advisor.theory.arrays import FloatArray

AFTER_COLLAPSE_SPREAD = 0.9
"""Log-odds spread of a collapsed run's final reward round its latest one; of 28 tiny-transformer
runs that had collapsed by step 50 of 200, three crept up again and none came back."""

LATEST_SHARE = 0.2
"""Share of the rows, at the end of a log, that tell where a collapsed run stands."""

JEFFREYS = 0.5
"""Successes added to what a collapsed run still gets right: none seen does not mean never."""


class PilotForecaster(Forecaster):
    """Forecaster of a pilot that has run: its own fitted luck in place of a fresh seed's."""

    def __init__(self, posterior: Posterior, index: int, *, draws: int) -> None:
        run = posterior.meta.runs[index]
        super().__init__(posterior, Target(run.task, run.model, run.parameters), draws=draws)
        self._run_noise = np.stack([self.draw(name)[:, index] for name in RUN_OFFSETS])


def continued_reward(
    posterior: Posterior,
    index: int,
    run: PilotRun,
    steps: npt.ArrayLike,
    *,
    draws: int = 1000,
    seed: int = 0,
) -> FloatArray:
    """Mean logged reward of a pilot over steps that it has not reached yet.

    Parameters
    ----------
    posterior : Posterior
        Fitted to the run, among others.
    index : int
        Of the run in ``posterior.meta.runs``.
    run : PilotRun
        What was seen of it.
    steps : array_like of shape (times,)
        Optimizer steps whose mean reward is asked for.
    draws : int
        Thinned evenly out of the posterior.
    seed : int
        Of the wander and of the sampling noise.

    Returns
    -------
    reward : ndarray of shape (draws,)
        Predictive draws in reward units, with the run's slow wander and the noise of its finite
        batches. Of a run that has collapsed it is where it stands, with a spread: none of the
        curves holds any more.
    """
    meta = posterior.meta
    rng = np.random.default_rng(seed)
    scale = meta.ceiling - meta.floor
    forecaster = PilotForecaster(posterior, index, draws=draws)
    size = forecaster.draw("start").shape[0]
    settings = meta.runs[index].settings
    times = np.atleast_1d(np.asarray(steps, dtype=float))
    completions = settings.prompts_per_step * settings.group_size
    if meta.runs[index].collapse_step is not None:
        rewards = run.reward[np.isfinite(run.reward)]
        latest = (rewards[-max(3, round(LATEST_SHARE * rewards.size)) :] - meta.floor) / scale
        trials = completions * latest.size
        share = (np.clip(latest.mean(), 0, 1) * trials + JEFFREYS) / (trials + 2 * JEFFREYS)
        odds = np.log(share / (1 - share)) + AFTER_COLLAPSE_SPREAD * rng.standard_normal(size)
        asked = max(1, round(completions * times.size))
        return np.asarray(meta.floor + scale * rng.binomial(asked, sigmoid(odds)) / asked)
    settings = settings.or_planned_over(int(times.max()))
    scored = policy_steps(
        times,
        settings.minibatches_per_refresh,
        settings.epochs_per_refresh,
        settings.lag,
    )
    expected = (forecaster.reward(settings, scored).mean(axis=1) - meta.floor) / scale
    chance = np.clip(expected, 0.02, 0.98) * (1 - np.clip(expected, 0.02, 0.98))
    within = sigmoid(forecaster.population["within_log_odds"])
    prompts = settings.prompts_per_step * times.size
    sampling = chance * (within / (completions * times.size) + (1 - within) / prompts)
    variance = sampling * np.exp(2 * forecaster.population["log_noise_scale"])
    variance = variance + np.exp(2 * forecaster.population["log_misfit"])
    noisy = expected + np.sqrt(variance) * rng.standard_t(5, size=size)
    return np.asarray(meta.floor + scale * np.clip(noisy, 0.0, 1.0))
