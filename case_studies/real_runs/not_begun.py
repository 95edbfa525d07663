"""The end of a run that has not begun: what its siblings came to, and the pooled curve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from advisor.forecast import DRAWS, Corpus, Forecaster, Target, final_rows
from advisor.forecast.predictive import logged_mean
from advisor.forecast.run_in_progress import EndOfRun, pooled, widened
from advisor.model import DEGREES, Posterior
from advisor.runs import PilotRun, Settings
from advisor.theory import FloatArray

NEW_WIDENING = 1.3
"""By which the spread of a run that has not begun is multiplied: siblings resemble each other more
than their next one, whose settings are new."""

KEPT_POWER = 4
"""Power of a uniform number that tells which share of its start a run keeps when it collapses: of
29 tiny-transformer runs half kept less than 0.05 of it, and the most 0.6."""


def new_run_reward(
    posterior: Posterior,
    target: Target,
    settings: Settings,
    steps: npt.ArrayLike,
    *,
    logging_steps: int = 1,
    seed: int = 0,
) -> FloatArray:
    """Mean logged reward over one-based steps of a run that nobody has begun, shape (draws,)."""
    rng = np.random.default_rng(seed)
    forecaster = Forecaster(posterior, target, seed=seed)
    last, rows = int(np.max(steps)), np.size(steps) * logging_steps
    settings = settings.or_planned_over(last)
    noise = rng.standard_t(DEGREES, size=forecaster.size)
    stable = logged_mean(forecaster, settings, steps, rows, noise)
    kept = rng.random(forecaster.size) ** KEPT_POWER
    # Right answers among the completions of so many rows: nothing at all is a common end.
    asked = max(1, round(settings.prompts_per_step * settings.group_size * rows))
    fallen = rng.binomial(asked, forecaster.group.start * kept) / asked
    survives = rng.random(stable.size) < forecaster.survival(settings, last)
    return forecaster.in_reward_units(np.where(survives, stable, fallen))


def curve_of_new_run(
    posterior: Posterior, run: PilotRun, steps: FloatArray, *, seed: int = 0
) -> FloatArray | None:
    """What the pooled curve says of the end of a run that has not begun, by its settings.

    Parameters and returned as for `advisor.forecast.curve_of_begun_run`; None where its task was
    not fitted.
    """
    if run.task not in posterior.meta.tasks:
        return None
    target = Target(str(run.task), str(run.model), float(run.parameters or 0))
    settings = run.hyperparameters.completed()
    averaged = run.logging_steps
    return new_run_reward(posterior, target, settings, steps, logging_steps=averaged, seed=seed)


def end_of_new_run(
    *, corpus: Corpus, curve: FloatArray | None = None, siblings: Sequence[PilotRun]
) -> EndOfRun:
    """Forecast the end of a run that has not begun, from finished siblings and its settings.

    Parameters
    ----------
    corpus : Corpus
    curve : ndarray of shape (draws,), optional
        From :func:`curve_of_new_run`.
    siblings : sequence of PilotRun
        One or more.

    Returns
    -------
    end_of_run : EndOfRun
    """
    levels = (np.arange(DRAWS) + 0.5) / DRAWS
    ends = [float(np.nanmean(one.reward[final_rows(one)])) for one in siblings]
    unit = float(np.median([np.ptp(one.reward[np.isfinite(one.reward)]) for one in siblings]))
    at = np.linspace(0, 1, corpus.sibling_errors.size)
    alike = np.asarray(float(np.median(ends)) + unit * np.interp(levels, at, corpus.sibling_errors))
    weight = 0.0 if curve is None else corpus.new_curve_weight
    parts = [(alike, 1 - weight)] + ([] if curve is None else [(curve, weight)])
    return EndOfRun(widened(pooled(parts), NEW_WIDENING), weight, curve, alike)
