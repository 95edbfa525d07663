"""The curve that the posterior drew through a pilot, as that pilot's log should show it."""

from __future__ import annotations

import numpy.typing as npt

from advisor.forecast.begun_run import PilotForecaster
from advisor.model.posterior import Posterior
from advisor.theory import policy_steps
from advisor.theory.arrays import FloatArray

CURVE_DRAWS = 400
"""Draws behind a curve: a quantile of 80 % moves by less than a line's width."""


def fitted_curve(
    posterior: Posterior, run_index: int, steps: npt.ArrayLike, *, draws: int = CURVE_DRAWS
) -> FloatArray:
    """Curve that the posterior drew through one pilot, as its log should show it.

    Parameters
    ----------
    posterior : Posterior
    run_index : int
        Into ``posterior.meta.runs``.
    steps : array_like of shape (times,)
        One-based optimizer steps as logged.
    draws : int
        Thinned evenly out of the posterior.

    Returns
    -------
    reward : ndarray of shape (draws, times)
        In reward units, without sampling noise. A logged reward scores the policy of the latest
        refresh, so the curve climbs in stairs of K steps.
    """
    run = posterior.meta.runs[run_index]
    settings = run.settings.or_planned_over(int(run.steps))
    scored = policy_steps(
        steps,
        settings.minibatches_per_refresh,
        settings.epochs_per_refresh,
        settings.lag,
    )
    return PilotForecaster(posterior, run_index, draws=draws).reward(settings, scored)
