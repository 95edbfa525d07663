"""Too short to tell: too few rows, or no change beyond noise yet; or surely nothing learned."""

from __future__ import annotations

import numpy as np

from advisor.runs.diagnosis.card import Card
from advisor.runs.diagnosis.collapse import WINDOW_ROWS
from advisor.runs.diagnosis.collapse_card import floor_of, judged_series
from advisor.runs.diagnosis.levels import Z95, Level, difference, ends
from advisor.runs.pilot_run import PilotRun
from advisor.runs.trainers import setting_name
from advisor.theory import FloatArray

MODE = "too_short"
TITLE, NOTHING = "Too short to tell", "Nothing learned"
FEWEST = 2 * WINDOW_ROWS

ENOUGH = 20
"""Rows from which a run that gained nothing is said to have learned nothing."""

LEAST_GAIN = 0.1
"""Share of what there was to gain below which a gain, at its upper bound, is none."""

LEAST_ROOM = 0.3
"""Share of the reward's range that must have been left to gain."""


def too_short(run: PilotRun) -> Card:
    """Judge whether the reward has moved by more than its noise."""
    step, reward = judged_series(run)
    common = {"mode": MODE, "title": TITLE, "source": "two windows of the stability definition"}
    if reward.size < FEWEST:
        return Card(
            **common,
            status="WARNING",
            headline=f"{reward.size} rows with a reward: too few to judge anything.",
            number=float(reward.size),
            unit="rows",
            threshold=float(FEWEST),
            change="Run longer, or log every step (logging_steps=1).",
        )
    first, last = ends(reward)
    moved = difference(last, first)
    span = (float(step[0]), float(step[-1]))
    gap = last.mean - first.mean
    if _learned_nothing(run, first, last, reward):
        return _nothing(common, run, (first, last), reward.size, span)
    if abs(moved) < Z95:
        error = (first.error**2 + last.error**2) ** 0.5
        return Card(
            **common,
            status="INFO",
            headline=f"No change beyond noise: {first.mean:.3g} at the start, {last.mean:.3g} at "
            "the end. Speed and plateau cannot be told from this run alone.",
            number=gap,
            unit="change of the reward",
            interval=(gap - Z95 * error, gap + Z95 * error),
            threshold=0.0,
            steps=span,
        )
    return Card(
        **common,
        status="PASS",
        headline=f"{reward.size} rows; the reward moved from {first.mean:.3g} to {last.mean:.3g}.",
        number=float(reward.size),
        unit="rows",
        threshold=float(FEWEST),
        steps=span,
    )


def _learned_nothing(run: PilotRun, first: Level, last: Level, reward: FloatArray) -> bool:
    """Whether the run surely gained next to nothing of what there was to gain."""
    if reward.size < ENOUGH or abs(difference(last, first)) >= Z95:
        return False
    known = run.reward_ceiling
    top = max(1.0, float(reward.max())) if known is None else max(known, float(reward.max()))
    room, error = top - first.mean, float(np.hypot(first.error, last.error))
    return bool(
        room > LEAST_ROOM * (top - floor_of(run))
        and last.mean - first.mean + Z95 * error < LEAST_GAIN * room
    )


def _nothing(
    common: dict[str, str],
    run: PilotRun,
    levels: tuple[Level, Level],
    rows: int,
    span: tuple[float, float],
) -> Card:
    """Card of a run that learned nothing."""
    first, last = levels
    gap, error = last.mean - first.mean, Z95 * float(np.hypot(first.error, last.error))
    rate = setting_name(run, "learning_rate")
    return Card(
        **{**common, "title": NOTHING},
        status="WARNING",
        headline=f"{rows} rows and no gain: {first.mean:.3g} at the start, {last.mean:.3g} at the "
        f"end, {gap + error:.2g} more at best.",
        number=gap,
        unit="change of the reward",
        interval=(gap - error, gap + error),
        threshold=0.0,
        steps=span,
        change=f"Where completions of a group differ in reward, check that each gets its own "
        f"advantage, and raise {rate} threefold; where they do not, take easier prompts. "
        "If no more can be had, give reward_ceiling.",
    )
