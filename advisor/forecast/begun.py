"""The end of one run: what the pooled curve says and what became of runs like it, in one answer.

A curve that the cohort pools knows settings and siblings, and is wrong where a run does what no
curve foretells; analogues know nothing of settings, and are never far off; a curve and a wandering
level fitted to the run alone know its own rows best. All are mixed with weights that were learned
on repositories left out, so an answer there always is, and pooling costs little where it does not
help.
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
from advisor.forecast.predictive import begun_run_reward
from advisor.forecast.single_run import EXPONENTIAL, curve_fit, local_level
from advisor.model import Posterior
from advisor.runs import LEAST_REWARDS, PilotRun
from advisor.theory import FloatArray

SIZE = 1000
"""Draws of an answer."""

BELIEVED_WITHIN = 1.5
"""Ranges seen between the end of a curve and the analogues' at which the curve counts half: where
no run like this one went, it has seldom been right."""

ALONE_WEIGHT = 0.2
"""Share of the curve, and of the wandering level, that are fitted to the run alone."""

LOG_SHARES = np.log(SCORED_SHARES)
"""Logs of the shares seen for which the weight of the curve is known."""


class EndOfRun(NamedTuple):
    """Mean reward over the last tenth of a run.

    Attributes
    ----------
    draws : ndarray of shape (size,)
        In reward units.
    curve_weight : float
        Share of the pooled curve in them.
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
    bounds: tuple[float, float],
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
        Finished runs of other repositories; None where none is of this kind of model: then the
        pooled curve speaks alone.
    bounds : (float, float)
        Floor and ceiling of the reward.
    curve : ndarray of shape (draws,), optional
        From :func:`curve_of_begun_run`.
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

    def believed(draws: FloatArray) -> float:
        away = (float(np.median(draws)) - float(np.median(likely))) / seen.unit
        return 1 / (1 + (away / BELIEVED_WITHIN) ** 2)

    weight, widening = (
        float(np.interp(seen.features[0], LOG_SHARES, by_share))
        for by_share in (corpus.curve_weights, corpus.pool_widenings)
    )
    weight = 0.0 if curve is None else weight * believed(curve)
    alone = _alone(run, np.asarray(steps, dtype=float), bounds)
    shared = 1 - ALONE_WEIGHT * len(alone)
    parts = [(likely, shared * (1 - weight))]
    parts += [] if curve is None else [(curve, shared * weight)]
    parts += [(draws, ALONE_WEIGHT * believed(draws)) for draws in alone]
    of_curve = shared * weight / sum(part for _, part in parts)
    return EndOfRun(widened(pooled(parts), widening), of_curve, curve, likely)


def _alone(
    run: PilotRun, steps: FloatArray, bounds: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """What a curve and a wandering level say that are fitted to the run alone."""
    rng = np.random.default_rng(0)
    return curve_fit(run, steps, EXPONENTIAL, bounds, rng)[0], local_level(run, steps, rng)


def pooled(parts: Sequence[tuple[FloatArray, float]]) -> FloatArray:
    """Linear pool of draws with weights, as evenly spaced quantiles of each by their shares."""
    shares = np.cumsum([weight for _, weight in parts])
    ends = [0, *np.round(SIZE * shares / shares[-1]).astype(int)]
    drawn = [
        np.quantile(draws, (np.arange(count) + 0.5) / count)
        for (draws, _), count in zip(parts, np.diff(ends), strict=True)
        if count
    ]
    return np.sort(np.concatenate(drawn))


def widened(draws: FloatArray, widening: float) -> FloatArray:
    """Ordered draws, their distance from the median multiplied."""
    median = draws[SIZE // 2]
    return np.asarray(median + widening * (draws - median))
