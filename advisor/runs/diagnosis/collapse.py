"""Collapse: whether the reward has fallen away from its best, for good, and since when."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from advisor.runs.diagnosis.levels import (
    EVALUATION_ROWS,
    LOST_SHARE,
    SURE,
    WINDOW_ROWS,
    Fall,
    find_fall,
    tamed,
    trailing_mean,
    window_rows,
)
from advisor.runs.pilot_run import PilotRun
from advisor.theory import FloatArray

UNSURE = 2.5
"""Standard errors from which a fall that noise might have done is still shown."""

PASSING_SHARE = 0.5
"""Share of the level before a fall below which it counts although the reward came back: shallower
ones are met in runs that learn on."""

PASSING_SURE = 5.5
"""Standard errors from which such a fall is called real: every low stretch is looked at, and noise
that is correlated makes one of four in 3 % of runs, one of five in 1 %, and of these none."""


class Collapse(BaseModel):
    """Verdict on one run.

    Attributes
    ----------
    unstable : bool
        Trailing mean more than a third below its best (from the reward floor) at the end and for
        one window before.
    onset_step : float or None
        Optimizer step from which it stayed so: the event that a hazard is fitted to.
    fell_from : float or None
        Optimizer step at which the fall began, which texts and figures name.
    healthy_until : float or None
        Last step before the window that first looked low: later rows may already be falling.
    best, last : float
        Best and final trailing mean, in reward units.
    """

    model_config = ConfigDict(frozen=True)

    unstable: bool
    onset_step: float | None
    fell_from: float | None = None
    healthy_until: float | None
    best: float
    last: float


def find_collapse(
    step: FloatArray, reward: FloatArray, floor: float, least: int = WINDOW_ROWS
) -> Collapse:
    """Apply the stability definition to one reward series.

    Parameters
    ----------
    step : ndarray of shape (rows,)
        Optimizer steps.
    reward : ndarray of shape (rows,)
        Train reward, NaN where missing.
    floor : float
        Lowest possible reward, in the same units.
    least : int
        Rows of the trailing mean in a short series: ``EVALUATION_ROWS`` for evaluations.

    Returns
    -------
    collapse : Collapse
        With fewer rows than two windows, or never above the floor, nothing is called unstable.

    Examples
    --------
    >>> step = np.arange(1.0, 41.0)
    >>> find_collapse(step, np.where(step < 21, 0.8, 0.0), floor=0.0).onset_step
    23.0
    """
    kept = np.isfinite(reward)
    floor = float(tamed(floor))
    step, reward = step[kept], tamed(reward[kept]) - floor
    window = window_rows(reward.size, least)
    if reward.size < 2 * window:
        level = float(reward.mean()) + floor if reward.size else float("nan")
        return Collapse(unstable=False, onset_step=None, healthy_until=None, best=level, last=level)
    mean = trailing_mean(reward, window)
    best = np.maximum.accumulate(mean)
    low = (mean < (1 - LOST_SHARE) * best) & (best > 0)
    unstable = bool(low[-(window + 1) :].all())
    onset = healthy_until = None
    if unstable:
        healthy = np.flatnonzero(~low)
        first_low = 0 if healthy.size == 0 else int(healthy[-1]) + 1
        onset = float(step[first_low + window - 1])
        healthy_until = float(step[first_low - 1]) if first_low else 0.0
    return Collapse(
        unstable=unstable,
        onset_step=onset,
        healthy_until=healthy_until,
        best=float(best[-1]) + floor,
        last=float(mean[-1]) + floor,
    )


def find_final_fall(
    step: FloatArray, reward: FloatArray, floor: float, least: int = WINDOW_ROWS
) -> tuple[Collapse, Fall | None]:
    """Verdict of the definition beyond what noise does, and the fall that it rests on."""
    kept = np.isfinite(reward)
    step, reward = step[kept], reward[kept]
    verdict = find_collapse(step, reward, floor, least)
    onset = verdict.onset_step
    before = None if onset is None else int(np.searchsorted(step, onset))
    fall = find_fall(step, reward, before, floor, least)
    if not verdict.unstable:
        return verdict, fall
    sure = fall if fall is not None and fall.z >= SURE else None
    sure = sure or _to_the_lowest(step, reward, before, floor, least)
    if sure is None:
        stable = {"unstable": False, "onset_step": None, "healthy_until": None}
        return verdict.model_copy(update=stable), fall
    return verdict.model_copy(update={"fell_from": sure.onset_step}), sure


def find_any_fall(
    step: FloatArray, reward: FloatArray, floor: float, least: int = WINDOW_ROWS
) -> Collapse:
    """Verdict of `find_final_fall`, or a fall to less than half from which the reward came back."""
    verdict, _ = find_final_fall(step, reward, floor, least)
    # What kills a run once may kill its twin for good: both count as collapses of their setting.
    fall = None if verdict.unstable else find_passing_fall(step, reward, floor, least)
    if fall is None:
        return verdict
    earlier = step[step < fall.onset_step]
    return verdict.model_copy(
        update={
            "unstable": True,
            "onset_step": fall.onset_step,
            "fell_from": fall.onset_step,
            "healthy_until": float(earlier[-1]) if earlier.size else 0.0,
        }
    )


def find_passing_fall(
    step: FloatArray,
    reward: FloatArray,
    floor: float,
    least: int = WINDOW_ROWS,
    sure: float = PASSING_SURE,
) -> Fall | None:
    """First fall to less than half, by ``sure`` standard errors, that the reward came back from."""
    kept = np.isfinite(reward)
    step, reward = step[kept], reward[kept]
    window = window_rows(reward.size, least)
    if reward.size < 2 * window:
        return None
    mean = trailing_mean(reward, window) - floor
    low = mean < (1 - LOST_SHARE) * np.maximum.accumulate(mean)
    turns = np.diff(low.astype(int), prepend=0)
    begins, backs = np.flatnonzero(turns == 1), np.flatnonzero(turns == -1)
    # A last stretch from which nothing came back has a beginning only.
    for begin, back in zip(begins.tolist(), backs.tolist(), strict=False):
        end = begin + int(np.argmin(mean[begin:back])) + window
        fall = _deep(find_fall(step[:end], reward[:end], None, floor, window), floor, sure)
        if fall is not None:
            return fall
    return None


def _to_the_lowest(
    step: FloatArray, reward: FloatArray, before_row: int | None, floor: float, least: int
) -> Fall | None:
    """Sure fall up to the lowest window after ``before_row``; half of it may have been regained."""
    window = window_rows(reward.size, least)
    first = max(0, (before_row or 0) - window + 1)
    end = first + int(np.argmin(trailing_mean(reward, window)[first:])) + window
    return _deep(
        find_fall(step[:end], reward[:end], before_row, floor, window), floor, PASSING_SURE
    )


def _deep(fall: Fall | None, floor: float, sure: float) -> Fall | None:
    """A fall that is sure and deep enough to count although the reward came back."""
    if fall is None or fall.z < sure:
        return None
    return fall if fall.after - floor < PASSING_SHARE * (fall.before - floor) else None


def judged_series(run: PilotRun) -> tuple[FloatArray, FloatArray]:
    """Steps and finite rewards that are judged: held-out ones where nothing else was logged."""
    step, reward = (run.eval_step, run.eval_reward) if run.is_eval_only else (run.step, run.reward)
    kept = np.isfinite(reward)
    return step[kept], reward[kept]


def floor_of(run: PilotRun) -> float:
    """Lowest possible reward: as given, else 0 or the lowest one logged."""
    given, reward = run.reward_floor, judged_series(run)[1]
    if given is not None and (not reward.size or reward.max() > given):
        return given
    return min(0.0, float(reward.min())) if reward.size else 0.0


def judged(run: PilotRun) -> tuple[FloatArray, FloatArray, float, int]:
    """Steps, rewards, their floor, and rows of the trailing mean of a short series."""
    # Fewer where each is an evaluation.
    least = EVALUATION_ROWS if run.is_eval_only else WINDOW_ROWS
    return *judged_series(run), floor_of(run), least


def has_collapsed(run: PilotRun) -> bool:
    """Whether a run fell for good, or to less than half, beyond what noise does."""
    return find_any_fall(*judged(run)).unstable


def collapse_onset(run: PilotRun, verdict: Collapse) -> float | None:
    """Step from which a run fell, wherever one is shown; None where the verdict is stable."""
    if not verdict.unstable:
        return None
    # A verdict may rest on the floor of many runs; the step is the run's own, as on its card.
    own = find_any_fall(*judged(run))
    return own.fell_from if own.unstable else verdict.fell_from


def dead_from_the_start(runs: Sequence[PilotRun], floor: float) -> set[str]:
    """Ids of runs whose every window stays far below where their siblings began."""
    first, best, highest = {}, {}, {}
    for run in runs:
        reward = run.reward[np.isfinite(run.reward)] - floor
        window = window_rows(reward.size)
        if reward.size >= window:
            mean = trailing_mean(reward, window)
            first[run.id], best[run.id] = float(mean[0]), float(mean.max())
            # Without any reward in its first rows it began from another policy, and was not killed.
            highest[run.id] = float(reward[:window].max())
    dead = set()
    for run in runs:
        others = [
            first[other.id]
            for other in runs
            if other.id in first
            and other.id != run.id
            and (other.task, other.model) == (run.task, run.model)
        ]
        # One sibling more may have died as early: the median of the rest is what counts.
        if run.id in best and len(others) >= 2:
            alive = float(np.median(others))
            if alive > 0 and best[run.id] < 0.25 * alive <= highest[run.id]:
                dead.add(run.id)
    return dead
