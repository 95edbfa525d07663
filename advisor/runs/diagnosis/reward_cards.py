"""What the reward alone shows: that it has fallen for good, or too little to tell anything."""

from __future__ import annotations

from typing import Any

import numpy as np

from advisor.runs.diagnosis.card import CARDS, Card, card_of, finding, not_applicable
from advisor.runs.diagnosis.collapse import (
    PASSING_SURE,
    UNSURE,
    find_collapse,
    find_final_fall,
    find_passing_fall,
    floor_of,
    judged,
    judged_series,
)
from advisor.runs.diagnosis.levels import (
    LOST_SHARE,
    SURE,
    WINDOW_ROWS,
    Z95,
    Fall,
    Level,
    difference,
    ends,
    level,
    series_of,
    window_rows,
)
from advisor.runs.pilot_run import PilotRun
from advisor.theory import FloatArray

EXTINCT = 8
"""Evaluations at the floor to the last digit, from which on a policy is dead: the fewest that show
one success at all show none with a chance of 0.37, eight times in a row below a thousandth."""


def collapse(run: PilotRun) -> Card:
    """Judge the reward's last fall."""
    step, reward, floor, least = judged(run)
    verdict, fall = find_final_fall(step, reward, floor, least)
    passing = None
    if not verdict.unstable:
        passing = find_passing_fall(step, reward, floor, least)
        passing = passing or _plain_fall(step, reward, floor, least)
        extinct = None if passing else _extinct(run, step, reward, floor)
        if extinct is not None:
            return extinct
    fall = passing or fall
    if fall is None:
        return not_applicable("collapse.absent", run)
    lost, steps = fall.before - fall.after, (fall.onset_step, float(step[-1]))
    regained = (verdict.last - fall.after) / lost if lost else 0.0
    if verdict.unstable:
        again = f"came back no further than {verdict.last:.3g}"
        after = again if regained > 0.1 else "did not come back"
        found = finding("collapse.fell", run, steps, fall=fall, after=after)
    elif passing is not None:
        in_part = "" if regained > 0.8 else " in part"
        counts = ": it counts as a collapse of its setting" if fall.z >= PASSING_SURE else ""
        steps = (fall.onset_step, fall.floor_step)
        facts = {"fall": fall, "in_part": in_part, "counts": counts}
        found = finding("collapse.came_back", run, steps, **facts)
    elif find_collapse(step, reward, floor, least).unstable and fall.z >= UNSURE:
        found = finding("collapse.ends_lower", run, steps, fall=fall)
    else:
        span = (float(step[0]), float(step[-1]))
        found = finding("collapse.none", run, span, rows=reward.size)
        return card_of("collapse", found, threshold=LOST_SHARE)
    range_ = fall.before - floor if fall.before > floor else np.inf
    share, error = lost / range_, Z95 * fall.error / range_
    return card_of(
        "collapse",
        found,
        number=share,
        unit=CARDS["collapse"]["unit"],
        interval=(share - error, share + error),
        threshold=LOST_SHARE,
        witnesses=witnesses(run, fall) if verdict.unstable or passing is not None else (),
    )


def dead_at_once(run: PilotRun) -> Card:
    """Card of a run that its first updates killed, as its siblings show."""
    step, reward = judged_series(run)
    span = (float(step[0]), float(step[-1]))
    found = finding("collapse.dead", run, span, mean=float(reward.mean()))
    return card_of("collapse", found, source=CARDS["collapse"]["dead"]["source"])


def _plain_fall(step: FloatArray, reward: FloatArray, floor: float, least: int) -> Fall | None:
    """Fall that came back and that is plain to the eye, though a fit would not count it."""
    fall = find_passing_fall(step, reward, floor, least, sure=SURE)
    if fall is None:
        return None
    before = reward[step < fall.onset_step]
    is_held = before.size >= 2 * window_rows(reward.size, least)
    # Correlated noise of 40 to 300 rows makes one of so many standard deviations in 0.2 % of runs,
    # and no healthy one of 330 public runs has it.
    return fall if is_held and fall.before - fall.after > 3.5 * before.std(ddof=1) else None


def _extinct(run: PilotRun, step: FloatArray, reward: FloatArray, floor: float) -> Card | None:
    """Card of evaluations that went to their floor and stayed there to the last digit."""
    above = np.flatnonzero(reward > floor)
    if not run.is_eval_only or not above.size or reward.size - 1 - above[-1] < EXTINCT:
        return None
    at = int(above[-1]) + 1
    facts = {"step": step[at], "floor": floor, "before": reward[at - 1]}
    return card_of(
        "collapse",
        finding("collapse.extinct", run, (float(step[at]), float(step[-1])), **facts),
        number=1.0,
        unit=CARDS["collapse"]["unit"],
        threshold=LOST_SHARE,
        source=CARDS["collapse"]["extinct"]["source"],
    )


def witnesses(run: PilotRun, fall: Fall) -> tuple[str, ...]:
    """Other series that changed across a fall by a factor of two or more, with their numbers."""
    found = []
    lengths, others = ("completion_length", "truncated_share"), ("gradient_norm", "kl", "policy_kl")
    for name in ("entropy", *lengths, *others):
        series = series_of(run, name)
        if series is None:
            continue
        step, values = series
        before, after = values[step < fall.onset_step], values[step >= fall.onset_step]
        one, other = level(before[-max(4, before.size // 2) :]), level(after)
        if not np.isfinite(difference(other, one)) or abs(difference(other, one)) < Z95:
            continue
        low, high = sorted([abs(one.mean), abs(other.mean)])
        if high > 2.0 * low:
            found.append(f"{name.replace('_', ' ')} {one.mean:.3g} -> {other.mean:.3g}")
    return tuple(found)


def too_short(run: PilotRun) -> Card:
    """Judge whether the reward has moved by more than its noise."""
    step, reward = judged_series(run)
    rows = reward.size
    judged: dict[str, Any] = {"number": float(rows), "unit": "rows", "threshold": 2.0 * WINDOW_ROWS}
    if rows < 2 * WINDOW_ROWS:
        return card_of("too_short", finding("too_short.few", run, rows=rows), **judged)
    span = (float(step[0]), float(step[-1]))
    first, last = ends(reward)
    facts = {"rows": rows, "first": first, "last": last}
    if abs(difference(last, first)) >= Z95:
        return card_of("too_short", finding("too_short.moved", run, span, **facts), **judged)
    gap, error = last.mean - first.mean, Z95 * (first.error**2 + last.error**2) ** 0.5
    judged |= {"number": gap, "unit": "change of the reward", "threshold": 0.0}
    judged["interval"] = (gap - error, gap + error)
    if _learned_nothing(run, first, gap + error, reward):
        found = finding("too_short.learned_nothing", run, span, most=gap + error, **facts)
        return card_of("too_short", found, title="Nothing learned", **judged)
    return card_of("too_short", finding("too_short.flat", run, span, **facts), **judged)


def _learned_nothing(run: PilotRun, first: Level, most: float, reward: FloatArray) -> bool:
    """Whether the most that was gained is next to nothing of what there was to gain."""
    if reward.size < 20:
        return False
    known = run.reward_ceiling
    top = max(1.0 if known is None else known, float(reward.max()))
    room = top - first.mean
    return room > 0.3 * (top - floor_of(run)) and most < 0.1 * room
