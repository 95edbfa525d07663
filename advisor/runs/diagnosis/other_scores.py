"""Scores beside the train reward: which there are, what they mean, and which stay behind it."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from advisor.runs.diagnosis.levels import (
    LEAST_ROWS,
    SMALLEST,
    SURE,
    Level,
    difference,
    level,
    trailing_mean,
)
from advisor.runs.pilot_run import PilotRun
from advisor.runs.trainers.likely import EVALUATION, is_gap, words
from advisor.theory import FloatArray

HELD_OUT = "held-out reward"

TRUE_NAMES = re.compile(r"acc|correct|answer|solv|succe|exact|pass|true|gold", re.IGNORECASE)
"""Reward parts that say what is meant."""

TRUE_WORDS = frozenset({"ndcg", "mrr", "em", "match", "oracle", "human", "win", "wins", "recall"})
"""Further words that do so; Tinker's recipes call the truth ``f`` and its stand-in ``g``."""

FORM = re.compile(r"format|length|tag|xml|think|json|syntax|parse", re.IGNORECASE)
"""Parts that judge the form of an answer, whatever else their name says."""

FEWEST = 3
"""Values of a score from which on it is looked at."""

FEWEST_PAIRS = 5
"""Evaluations in a window; fewer bound no slope."""


class OtherScore(NamedTuple):
    """A measure of answers beside the train reward."""

    name: str
    step: FloatArray
    values: FloatArray
    is_meant: bool | None
    is_part: bool = False


def other_scores(run: PilotRun) -> tuple[list[OtherScore], tuple[str, ...]]:
    """Measures beside the train reward, and the names of those with too few values to judge."""
    found: list[OtherScore] = []
    ignored: list[OtherScore] = []
    seen = np.isfinite(run.eval_reward)
    if not run.is_eval_only and seen.sum() >= FEWEST:
        found.append(OtherScore(HELD_OUT, run.eval_step[seen], run.eval_reward[seen], True))
    for name, values in run.parts.items():
        kept = np.isfinite(values)
        part = OtherScore(name, run.step[kept], values[kept], what_is_meant(name), is_part=True)
        (found if kept.sum() >= FEWEST else ignored).append(part)
    kept = np.isfinite(run.reward)
    step, reward = run.step[kept], run.reward[kept]
    for name, (at, values) in run.scores.items():
        if not reward.size or at.size < FEWEST:
            continue
        there = np.interp(at, step, reward)
        if is_gap(name):
            found.append(OtherScore(f"train reward less {name}", at, there - values, True))
            continue
        others = [there]
        # Where the held-out reward was taken at all of its steps, too.
        if run.eval_step.size and np.isin(at, run.eval_step).all():
            others.append(np.interp(at, run.eval_step, run.eval_reward))
        if not any(_are_the_same(values, other) for other in others):
            found.append(OtherScore(name, at, values, what_is_meant(name)))
    return found, tuple(one.name for one in ignored)


def _are_the_same(one: FloatArray, other: FloatArray) -> bool:
    """Whether a score is another series once more, in other units or not."""
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return bool(np.allclose(one, other))
    return bool(np.corrcoef(one, other)[0, 1] > 0.999)


def what_is_meant(name: str) -> bool | None:
    """Whether a name says what is meant (True), judges the form (False), or tells neither."""
    if FORM.search(name):
        return False
    found = frozenset(words(name))
    if TRUE_NAMES.search(name) or not TRUE_WORDS.isdisjoint(found) or name in ("f", "f1"):
        return True
    return True if name.startswith("held-out ") or not EVALUATION.isdisjoint(found) else None


def stays_behind(run: PilotRun, score: OtherScore) -> bool:
    """Whether the train reward surely rose, and a score surely gained next to nothing of it."""
    kept = np.isfinite(run.reward)
    step, reward = run.step[kept], run.reward[kept]
    # The rows just before the first value tell where the train reward stood then.
    begin = max(0, int(np.searchsorted(step, score.step[0])) - 2 * LEAST_ROWS)
    reward = reward[begin : int(np.searchsorted(step, score.step[-1], side="right"))]
    if reward.size < 2 * LEAST_ROWS:
        return False
    first, last = _ends(reward)
    # A reward that rises within some rows has no first level of many: the first few tell.
    begun = level(reward[:LEAST_ROWS])
    if max(difference(last, first), difference(last, begun)) < SURE:
        return False
    first = min(first, begun, key=lambda one: one.mean)
    room = _room(reward, first.mean, run.reward_ceiling)
    share = (last.mean - first.mean) / room if room > 0 else 0.0
    # Share of its room that the train reward must gain before anything can stay behind it.
    if share < 0.15:
        return False
    start, most = _most_gained(score.values)
    is_held_out = score.name == HELD_OUT
    own = _room(score.values, start, run.reward_ceiling if is_held_out else None)
    # Share of the train reward's gain, each as a share of its room, that a score surely lacks.
    # With less room a score is at its ceiling and cannot follow; a held-out reward has the train
    # reward's units.
    least = 0.05 * (room if is_held_out else 1.0)
    return own >= least and most < 0.2 * share * own


def _ends(values: FloatArray) -> tuple[Level, Level]:
    """Level of the first tenth of a series, and of its last fifth."""
    rows = max(LEAST_ROWS, round(0.2 * values.size))
    return level(values[: max(LEAST_ROWS, rows // 2)]), level(values[-rows:])


def _most_gained(values: FloatArray) -> tuple[float, float]:
    """Level at the start, and the most that may have been gained since, at two standard errors."""
    # Of so few values levels have no error worth stating: the extremes stand for it.
    if values.size < 12:
        start = float(values[0])
        return start, float(values[values.size // 2 :].max()) - start
    first, last = _ends(values)
    error = float(np.hypot(first.error, last.error))
    return first.mean, last.mean - first.mean + 2 * error


def _room(values: FloatArray, start: float, ceiling: float | None) -> float:
    """How far a series can rise from where it began: to its ceiling, to 1, or as far as it ever."""
    highest = float(values.max())
    top = max(ceiling, highest) if ceiling is not None else max(1.0, highest)
    return top - start


class Coupling(NamedTuple):
    """Held-out gain per unit of train gain over one window; the 95 % interval may be unbounded."""

    first_step: float
    last_step: float
    slope: float
    interval: tuple[float, float] | None


def couplings(run: PilotRun) -> list[Coupling]:
    """Slopes over a window of half the evaluations that slides over the run, to its end."""
    pairs = _paired(run)
    if pairs is None:
        return []
    times, train, held_out = pairs
    width = max(FEWEST_PAIRS, round(0.5 * times.size))
    # Deming's regression: each series over its noise, from neighbours of the whole run.
    noise = [float(np.sqrt(np.mean(np.diff(v) ** 2) / 2)) for v in (train, held_out)]
    x, y = train / noise[0], held_out / noise[1]
    found = []
    last = times.size - width
    for first in sorted(range(last, -1, -max(1, last // 50))):
        own = slice(first, first + width)
        slope, interval = _slope(x[own], y[own])
        scale = noise[1] / noise[0]
        bounds = None if interval is None else (scale * interval[0], scale * interval[1])
        found.append(
            Coupling(float(times[first]), float(times[first + width - 1]), scale * slope, bounds)
        )
    return found


def _paired(run: PilotRun) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Steps of the evaluations, train reward around them, held-out reward."""
    kept, seen = np.isfinite(run.reward), np.isfinite(run.eval_reward)
    times, held_out = run.eval_step[seen], run.eval_reward[seen]
    if times.size < FEWEST_PAIRS or not kept.any():
        return None
    size = max(1, int(kept.sum()) // (2 * times.size))
    # The middle of each mean; one of an even number of rows lies half a row late.
    smooth, middles = trailing_mean(run.reward[kept], size), run.step[kept][size // 2 :]
    train = np.interp(times, middles[: smooth.size], smooth)
    for values in (train, held_out):
        if np.ptp(values) <= SMALLEST * float(np.abs(values).max()):
            return None
    return times, train, held_out


def _slope(x: FloatArray, y: FloatArray) -> tuple[float, tuple[float, float] | None]:
    """Slope of the principal axis and its interval."""
    around_x, around_y, rows = x - x.mean(), y - y.mean(), x.size
    products = np.stack([around_x**2, around_y**2, around_x * around_y])
    total = products.sum(axis=1)
    from scipy.special import stdtrit

    angle = float(_angle(total))
    # Sums of squares without one row, from those with it.
    left_out = _angle(total[:, None] - products * (rows / (rows - 1)))
    # An axis has no direction: angles are the same modulo half a turn.
    away = (left_out - angle + np.pi / 2) % np.pi - np.pi / 2
    error = float(np.sqrt((rows - 1) / rows * ((away - away.mean()) ** 2).sum()))
    half = float(stdtrit(rows - 2, 0.975)) * error
    slope = float(np.tan(angle))
    if abs(angle) + half >= np.pi / 2:
        return slope, None
    return slope, (float(np.tan(angle - half)), float(np.tan(angle + half)))


def _angle(sums: FloatArray) -> FloatArray:
    """Angle of the first principal axis from sums of xx, yy and xy, in (-pi/2, pi/2]."""
    return np.asarray(0.5 * np.arctan2(2 * sums[2], sums[0] - sums[1]))
