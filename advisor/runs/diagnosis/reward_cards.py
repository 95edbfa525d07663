"""What the reward alone shows: that it has fallen for good, or too little to tell anything."""

from __future__ import annotations

from typing import Any

import numpy as np

from advisor.runs.diagnosis.card import Card, Finding, card_of, not_applicable
from advisor.runs.diagnosis.collapse import (
    PASSING_SURE,
    UNSURE,
    Collapse,
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
from advisor.runs.trainers import setting_name
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
        return not_applicable(
            "collapse",
            "Too few rewards to see a fall.",
            "At least ten rows with a reward are needed.",
        )
    range_ = fall.before - floor if fall.before > floor else np.inf
    lost, error = (fall.before - fall.after) / range_, Z95 * fall.error / range_
    finding = (
        _lasting(run, fall, verdict, float(step[-1]))
        or (None if passing is None else _passing(run, passing, verdict))
        or _unsure(run, fall, float(step[-1]))
    )
    source = (
        "a trailing mean (5 rows or 5 % of the run) more than a third below its best, at "
        f"the end and for one window before; a fall of {SURE:g} standard errors"
    )
    if finding is None:
        span = (float(step[0]), float(step[-1]))
        finding = Finding("PASS", f"No lasting fall in {reward.size} rows.", span)
        return card_of("collapse", finding, threshold=LOST_SHARE, source=source)
    return card_of(
        "collapse",
        finding,
        number=lost,
        unit="share of the reward lost",
        interval=(lost - error, lost + error),
        threshold=LOST_SHARE,
        source=source,
        witnesses=witnesses(run, fall) if verdict.unstable or passing is not None else (),
    )


def _lasting(run: PilotRun, fall: Fall, verdict: Collapse, end: float) -> Finding | None:
    """A fall for good, or from which a part was regained."""
    if not verdict.unstable:
        return None
    regained = verdict.last - fall.after > 0.1 * (fall.before - fall.after)
    after = f"came back no further than {verdict.last:.3g}" if regained else "did not come back"
    return Finding(
        "FAIL",
        f"{_fell(fall)} from step {fall.onset_step:.0f} on and {after}.",
        (fall.onset_step, end),
        f"Resume from a checkpoint before step {fall.onset_step:.0f} with a third of "
        f"the {setting_name(run, 'learning_rate')}; other cards say what else moved.",
    )


def _passing(run: PilotRun, fall: Fall, verdict: Collapse) -> Finding:
    """A fall from which the reward came back."""
    is_whole = verdict.last - fall.after > 0.8 * (fall.before - fall.after)
    return Finding(
        "WARNING",
        f"{_fell(fall)} at step {fall.onset_step:.0f} and came back"
        f"{'' if is_whole else ' in part'}: another seed may not.",
        (fall.onset_step, fall.floor_step),
        f"Lower the {setting_name(run, 'learning_rate')}"
        + (": it counts as a collapse of its setting." if fall.z >= PASSING_SURE else "."),
    )


def _unsure(run: PilotRun, fall: Fall, end: float) -> Finding | None:
    """A fall by the definition that noise may have made."""
    if fall.z < UNSURE or not find_collapse(*judged(run)).unstable:
        return None
    return Finding(
        "WARNING",
        f"The reward ends lower, {fall.after:.3g} after {fall.before:.3g}, but noise may have "
        f"done it ({fall.z:.1f} standard errors).",
        (fall.onset_step, end),
        f"Log on, or raise {setting_name(run, 'prompts_per_step')}: more completions a "
        "step tell a fall from noise.",
    )


def _fell(fall: Fall) -> str:
    return f"The reward fell from {fall.before:.3g} to {fall.after:.3g}"


def dead_at_once(run: PilotRun) -> Card:
    """Card of a run that its first updates killed, as its siblings show."""
    step, reward = judged_series(run)
    finding = Finding(
        "FAIL",
        f"Dead from the start: the reward is {float(reward.mean()):.2g} on average where "
        "other runs of this model and task began far above it.",
        (float(step[0]), float(step[-1])),
        f"A third of the {setting_name(run, 'learning_rate')}, or fewer updates for each "
        "batch of rollouts.",
    )
    source = "ours: every window below a quarter of the level at which siblings began"
    return card_of("collapse", finding, source=source)


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
    finding = Finding(
        "FAIL",
        f"Every evaluation from step {step[at]:.0f} on is {floor:.3g}, after "
        f"{reward[at - 1]:.3g}: no answer is right any more.",
        (float(step[at]), float(step[-1])),
        f"Start again with a third of the {setting_name(run, 'learning_rate')}.",
    )
    return card_of(
        "collapse",
        finding,
        number=1.0,
        unit="share of the reward lost",
        threshold=LOST_SHARE,
        source=f"ours: {EXTINCT} evaluations in a row at the floor",
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
    fewest = 2 * WINDOW_ROWS
    facts: dict[str, Any] = {
        "source": "two windows of the stability definition",
        "number": float(reward.size),
        "unit": "rows",
        "threshold": float(fewest),
    }
    if reward.size < fewest:
        finding = Finding(
            "WARNING",
            f"{reward.size} rows with a reward: too few to judge anything.",
            change="Run longer, or log every step (logging_steps=1).",
        )
        return card_of("too_short", finding, **facts)
    first, last = ends(reward)
    span = (float(step[0]), float(step[-1]))
    if abs(difference(last, first)) >= Z95:
        moved = f"the reward moved from {first.mean:.3g} to {last.mean:.3g}."
        return card_of("too_short", Finding("PASS", f"{reward.size} rows; {moved}", span), **facts)
    gap, error = last.mean - first.mean, Z95 * (first.error**2 + last.error**2) ** 0.5
    facts |= {"number": gap, "unit": "change of the reward", "threshold": 0.0}
    facts["interval"] = (gap - error, gap + error)
    ends_at = f"{first.mean:.3g} at the start, {last.mean:.3g} at the end"
    finding = Finding(
        "INFO",
        f"No change beyond noise: {ends_at}. Speed and plateau cannot be told from this run alone.",
        span,
    )
    if _learned_nothing(run, first, gap + error, reward):
        facts["title"] = "Nothing learned"
        finding = Finding(
            "WARNING",
            f"{reward.size} rows and no gain: {ends_at}, {gap + error:.2g} more at best.",
            span,
            "Where completions of a group differ in reward, check that each gets its own "
            f"advantage, and raise {setting_name(run, 'learning_rate')} threefold; where they do "
            "not, take easier prompts. If no more can be had, give reward_ceiling.",
        )
    return card_of("too_short", finding, **facts)


def _learned_nothing(run: PilotRun, first: Level, most: float, reward: FloatArray) -> bool:
    """Whether the most that was gained is next to nothing of what there was to gain."""
    if reward.size < 20:
        return False
    known = run.reward_ceiling
    top = max(1.0 if known is None else known, float(reward.max()))
    room = top - first.mean
    return room > 0.3 * (top - floor_of(run)) and most < 0.1 * room
