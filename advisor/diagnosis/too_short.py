"""Too short to tell: too few rows, or no change beyond noise yet."""

from __future__ import annotations

from advisor.diagnosis.card import Card
from advisor.diagnosis.collapse import WINDOW_ROWS
from advisor.diagnosis.collapse_card import judged_series
from advisor.diagnosis.levels import Z95, difference, ends
from advisor.run.pilot_run import PilotRun

MODE = "too_short"
TITLE = "Too short to tell"
FEWEST = 2 * WINDOW_ROWS


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
