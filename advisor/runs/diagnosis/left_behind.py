"""Scores beside the train reward: which there are, what they mean, and which stay behind it."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from advisor.runs.diagnosis.fall import SURE
from advisor.runs.diagnosis.levels import LEAST_ROWS, Level, difference, level
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

ENDS = 0.2
"""Share of the rows that make the first and the last level."""

FEW = 12
"""Values below which levels of a score have no error worth stating: its extremes stand for it."""

NOTABLE = 0.15
"""Share of its room that the train reward must gain before anything can stay behind it."""

BEHIND = 0.2
"""Share of the train reward's gain, each as a share of its room, that a score surely lacks."""

LEAST_ROOM = 0.05
"""Room below which a score is at its ceiling and cannot follow; of the train reward's for a
held-out reward, which has its units."""


class Beside(NamedTuple):
    """A measure of answers beside the train reward.

    ``is_meant`` is None where its name tells neither that it says what is meant nor that it judges
    the form. ``is_part`` is whether it is a part of what is optimised.
    """

    name: str
    step: FloatArray
    values: FloatArray
    is_meant: bool | None
    is_part: bool = False


def scores_beside(run: PilotRun) -> tuple[list[Beside], tuple[str, ...]]:
    """Measures beside the train reward, and the names of those with too few values to judge."""
    found, ignored = [], []
    seen = np.isfinite(run.eval_reward)
    if not run.is_eval_only and seen.sum() >= FEWEST:
        found.append(Beside(HELD_OUT, run.eval_step[seen], run.eval_reward[seen], True))
    for name, values in run.parts.items():
        kept = np.isfinite(values)
        if kept.sum() < FEWEST:
            ignored.append(name)
        else:
            found.append(
                Beside(name, run.step[kept], values[kept], what_is_meant(name), is_part=True)
            )
    kept = np.isfinite(run.reward)
    step, reward = run.step[kept], run.reward[kept]
    for name, (at, values) in run.scores.items():
        if not reward.size or at.size < FEWEST:
            continue
        there = np.interp(at, step, reward)
        if is_gap(name):
            found.append(Beside(f"train reward less {name}", at, there - values, True))
        elif not any(_are_the_same(values, other) for other in (there, *_held_out(run, at))):
            found.append(Beside(name, at, values, what_is_meant(name)))
    return found, tuple(ignored)


def _held_out(run: PilotRun, at: FloatArray) -> list[FloatArray]:
    """Held-out reward at the steps of a score, where it was taken at all of them."""
    if not run.eval_step.size or not np.isin(at, run.eval_step).all():
        return []
    return [np.interp(at, run.eval_step, run.eval_reward)]


def _are_the_same(one: FloatArray, other: FloatArray) -> bool:
    """Whether a score is another series once more, in other units or not."""
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return bool(np.allclose(one, other))
    return bool(np.corrcoef(one, other)[0, 1] > SAME)


SAME = 0.999
"""Correlation from which two columns are one."""


def what_is_meant(name: str) -> bool | None:
    """Whether a name says what is meant (True), judges the form (False), or tells neither."""
    if FORM.search(name):
        return False
    found = frozenset(words(name))
    if TRUE_NAMES.search(name) or not TRUE_WORDS.isdisjoint(found) or name in ("f", "f1"):
        return True
    return True if name.startswith("held-out ") or not EVALUATION.isdisjoint(found) else None


def stays_behind(run: PilotRun, score: Beside) -> bool:
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
    if share < NOTABLE:
        return False
    start, most = _most_gained(score.values)
    is_alike = score.name == HELD_OUT
    own = _room(score.values, start, run.reward_ceiling if is_alike else None)
    return own >= LEAST_ROOM * (room if is_alike else 1.0) and most < BEHIND * share * own


def _ends(values: FloatArray) -> tuple[Level, Level]:
    """Level of the first tenth of a series, and of its last fifth."""
    rows = max(LEAST_ROWS, round(ENDS * values.size))
    return level(values[: max(LEAST_ROWS, rows // 2)]), level(values[-rows:])


def _most_gained(values: FloatArray) -> tuple[float, float]:
    """Level at the start, and the most that may have been gained since, at two standard errors."""
    if values.size < FEW:
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
