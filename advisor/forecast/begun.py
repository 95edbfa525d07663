"""The end of one run: what the pooled curve says and what became of runs like it, in one answer.

A curve that the cohort pools knows settings and siblings, and is wrong where a run does what no
curve foretells; analogues know nothing of settings, and are never far off. Both are mixed with a
weight that was learned on repositories left out, so an answer there always is, and pooling costs
little where it does not help.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from advisor.errors import InputError
from advisor.forecast.analogues import (
    SCORED_SHARES,
    Corpus,
    describe,
    end_of_run,
    is_share,
    tabulated,
)
from advisor.forecast.forecaster import Target
from advisor.forecast.predictive import begun_run_reward, final_rows, new_run_reward
from advisor.model.posterior import Posterior
from advisor.run.pilot_run import LEAST_REWARDS, PilotRun
from advisor.theory.arrays import FloatArray

SIZE = 1000
"""Draws of an answer."""

BELIEVED_WITHIN = 1.0
"""Ranges seen between the curve's end and the analogues' at which the curve counts half: where no
run like this one went, it has seldom been right."""

LOG_SHARES = np.log(SCORED_SHARES)
"""Logs of the shares seen for which the weight of the curve is known."""


class EndOfRun(NamedTuple):
    """Mean reward over the last tenth of a run.

    Attributes
    ----------
    draws : ndarray of shape (size,)
        In reward units.
    curve_weight : float
        Share of the draws that are the pooled curve's.
    curve, likely : ndarray of shape (draws,) or None
        What the pooled curve, and what the analogues, say by themselves.
    """

    draws: FloatArray
    curve_weight: float
    curve: FloatArray | None
    likely: FloatArray | None


def curve_of_begun_run(
    posterior: Posterior, run: PilotRun, steps: FloatArray, *, seed: int = 0
) -> FloatArray | None:
    """What the pooled curve says of the end of a run that the cohort was fitted with.

    Parameters
    ----------
    posterior : Posterior
    run : PilotRun
        What is seen of it.
    steps : ndarray of shape (times,)
        Optimizer steps of its last tenth, to its end.
    seed : int

    Returns
    -------
    reward : ndarray of shape (draws,) or None
        In reward units; None for a run that the posterior left out.
    """
    place = {one.id: index for index, one in enumerate(posterior.meta.runs)}
    if run.id not in place:
        return None
    return begun_run_reward(posterior, place[run.id], run, steps, seed=seed)


def end_of_begun_run(
    run: PilotRun,
    steps: FloatArray,
    *,
    corpus: Corpus | None,
    curve: FloatArray | None = None,
    siblings: Sequence[PilotRun] = (),
) -> EndOfRun:
    """Forecast the end of a run of which a part is seen.

    Parameters
    ----------
    run : PilotRun
        What is seen of it.
    steps : ndarray of shape (times,)
        Optimizer steps of its last tenth, to its end.
    corpus : Corpus or None
        Finished runs of other repositories; None where none is of this kind of model.
    curve : ndarray of shape (draws,), optional
        From :func:`curve_of_begun_run`; without one analogues speak alone.
    siblings : sequence of PilotRun
        Finished runs of the same cohort.

    Returns
    -------
    end_of_run : EndOfRun

    Raises
    ------
    InputError
        Fewer than three rewards are seen, or there is neither corpus nor curve.
    """
    if curve is not None and corpus is None:
        return EndOfRun(curve, 1.0, curve, None)
    known = np.isfinite(run.reward)
    if corpus is None or known.sum() < LEAST_REWARDS:
        raise InputError(
            f"run '{run.id}' shows {known.sum()} rewards, and no curve is pooled over its cohort",
            path=run.path,
            key="reward",
            advice=f"Wait for {LEAST_REWARDS} rewards",
        )
    step, reward = run.step[known], run.reward[known]
    end = float(np.max(steps))
    seen = describe(step, reward, end, is_share=is_share(run))
    kin = tabulated({"siblings": siblings}, [float(step[-1]) / end], corpus) if siblings else None
    likely = end_of_run(corpus, seen, kin, size=SIZE)
    if curve is None:
        return EndOfRun(likely, 0.0, None, likely)
    weight, widening = (
        float(np.interp(seen.features[0], LOG_SHARES, by_share))
        for by_share in (corpus.curve_weights, corpus.pool_widenings)
    )
    away = (float(np.median(curve)) - float(np.median(likely))) / seen.unit
    weight /= 1 + (away / BELIEVED_WITHIN) ** 2
    draws = pooled(curve, likely, weight)
    median = draws[SIZE // 2]
    return EndOfRun(median + widening * (draws - median), weight, curve, likely)


def curve_of_new_run(
    posterior: Posterior, run: PilotRun, steps: FloatArray, *, seed: int = 0
) -> FloatArray | None:
    """What the pooled curve says of the end of a run that has not begun, by its settings.

    Parameters and returned as for :func:`curve_of_begun_run`; None where its task was not fitted.
    """
    if run.task not in posterior.meta.tasks:
        return None
    target = Target(str(run.task), str(run.model), float(run.parameters or 0))
    return new_run_reward(posterior, target, run.hyperparameters.completed(), steps, seed=seed)


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
    levels = (np.arange(SIZE) + 0.5) / SIZE
    ends = [float(np.nanmean(one.reward[final_rows(one)])) for one in siblings]
    unit = float(np.median([np.ptp(one.reward[np.isfinite(one.reward)]) for one in siblings]))
    at = np.linspace(0, 1, corpus.sibling_errors.size)
    alike = np.asarray(float(np.median(ends)) + unit * np.interp(levels, at, corpus.sibling_errors))
    if curve is None:
        return EndOfRun(alike, 0.0, None, alike)
    weight = corpus.new_curve_weight
    return EndOfRun(pooled(curve, alike, weight), weight, curve, alike)


def pooled(curve: FloatArray, likely: FloatArray, weight: float) -> FloatArray:
    """Linear pool of two sets of draws, as evenly spaced quantiles of each by their shares."""
    of_curve = round(weight * SIZE)
    parts = [
        np.quantile(draws, (np.arange(count) + 0.5) / count)
        for draws, count in ((curve, of_curve), (likely, SIZE - of_curve))
        if count
    ]
    return np.sort(np.concatenate(parts))
