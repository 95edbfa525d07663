"""What the reward alone shows: that it has fallen for good, or too little to tell anything."""

from __future__ import annotations

from typing import Any

import numpy as np

from advisor.runs.diagnosis.card import Card, Finding, card_of, not_applicable
from advisor.runs.diagnosis.collapse import (
    PASSING_SURE,
    UNSURE,
    find_collapse,
    find_final_fall,
    find_passing_fall,
    floor_of,
    judged_series,
    rows_of_a_window,
)
from advisor.runs.diagnosis.fall import LOST_SHARE, SURE, Fall
from advisor.runs.diagnosis.levels import (
    WINDOW_ROWS,
    Z95,
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

BAND = 3.5
"""Standard deviations of the rows before it by which a fall that came back is plain: correlated
noise of 40 to 300 rows makes one in 0.2 % of runs, and no healthy one of 330 public runs has it."""

EXTINCT = 8
"""Evaluations at the floor to the last digit, from which on a policy is dead: the fewest that show
one success at all show none with a chance of 0.37, eight times in a row below a thousandth."""

FEWEST = 2 * WINDOW_ROWS


def collapse(run: PilotRun) -> Card:
    """Judge the reward's last fall."""
    (step, reward), floor, least = judged_series(run), floor_of(run), rows_of_a_window(run)
    verdict, fall = find_final_fall(step, reward, floor, least)
    passing = None
    if not verdict.unstable:
        passing = find_passing_fall(step, reward, floor, least) or _plain_fall(
            step, reward, floor, least
        )
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
    judged: dict[str, Any] = {
        "number": lost,
        "unit": "share of the reward lost",
        "interval": (lost - error, lost + error),
        "threshold": LOST_SHARE,
        "source": "a trailing mean (5 rows or 5 % of the run) more than a third below its best, at "
        f"the end and for one window before; a fall of {SURE:g} standard errors",
    }
    fell = f"The reward fell from {fall.before:.3g} to {fall.after:.3g}"
    if verdict.unstable:
        finding = Finding(
            "FAIL",
            f"{fell} from step {fall.onset_step:.0f} on and {_end_of_fall(fall, verdict.last)}.",
            (fall.onset_step, float(step[-1])),
            f"Resume from a checkpoint before step {fall.onset_step:.0f} with a third of "
            f"the {setting_name(run, 'learning_rate')}; other cards say what else moved.",
        )
        return card_of("collapse", finding, witnesses=witnesses(run, fall), **judged)
    if passing is not None:
        is_whole = verdict.last - fall.after > 0.8 * (fall.before - fall.after)
        finding = Finding(
            "WARNING",
            f"{fell} at step {fall.onset_step:.0f} and came back{'' if is_whole else ' in part'}: "
            "another seed may not.",
            (fall.onset_step, fall.floor_step),
            f"Lower the {setting_name(run, 'learning_rate')}"
            + (": it counts as a collapse of its setting." if fall.z >= PASSING_SURE else "."),
        )
        return card_of("collapse", finding, witnesses=witnesses(run, fall), **judged)
    if find_collapse(step, reward, floor, least).unstable and fall.z >= UNSURE:
        finding = Finding(
            "WARNING",
            f"The reward ends lower, {fall.after:.3g} after {fall.before:.3g}, but noise may have "
            f"done it ({fall.z:.1f} standard errors).",
            (fall.onset_step, float(step[-1])),
            f"Log on, or raise {setting_name(run, 'prompts_per_step')}: more completions a "
            "step tell a fall from noise.",
        )
        return card_of("collapse", finding, **judged)
    span = (float(step[0]), float(step[-1]))
    finding = Finding("PASS", f"No lasting fall in {reward.size} rows.", span)
    return card_of("collapse", finding, threshold=LOST_SHARE, source=judged["source"])


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
    return fall if is_held and fall.before - fall.after > BAND * before.std(ddof=1) else None


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


def _end_of_fall(fall: Fall, last: float) -> str:
    """Whether a reward that ends low has regained a part of what was lost."""
    if last - fall.after > 0.1 * (fall.before - fall.after):
        return f"came back no further than {last:.3g}"
    return "did not come back"


def witnesses(run: PilotRun, fall: Fall) -> tuple[str, ...]:
    """Other series that changed across a fall by a factor of two or more, with their numbers."""
    found = []
    for name in (
        "entropy",
        "completion_length",
        "truncated_share",
        "gradient_norm",
        "kl",
        "policy_kl",
    ):
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
    rows: dict[str, Any] = {
        "source": "two windows of the stability definition",
        "number": float(reward.size),
        "unit": "rows",
        "threshold": float(FEWEST),
    }
    if reward.size < FEWEST:
        finding = Finding(
            "WARNING",
            f"{reward.size} rows with a reward: too few to judge anything.",
            change="Run longer, or log every step (logging_steps=1).",
        )
        return card_of("too_short", finding, **rows)
    first, last = ends(reward)
    span = (float(step[0]), float(step[-1]))
    gap, error = last.mean - first.mean, Z95 * (first.error**2 + last.error**2) ** 0.5
    change = rows | {
        "number": gap,
        "unit": "change of the reward",
        "interval": (gap - error, gap + error),
        "threshold": 0.0,
    }
    if abs(difference(last, first)) >= Z95:
        moved = f"the reward moved from {first.mean:.3g} to {last.mean:.3g}."
        return card_of("too_short", Finding("PASS", f"{reward.size} rows; {moved}", span), **rows)
    if not _learned_nothing(run, first, gap + error, reward):
        finding = Finding(
            "INFO",
            f"No change beyond noise: {first.mean:.3g} at the start, {last.mean:.3g} at "
            "the end. Speed and plateau cannot be told from this run alone.",
            span,
        )
        return card_of("too_short", finding, **change)
    finding = Finding(
        "WARNING",
        f"{reward.size} rows and no gain: {first.mean:.3g} at the start, {last.mean:.3g} at the "
        f"end, {gap + error:.2g} more at best.",
        span,
        "Where completions of a group differ in reward, check that each gets its own "
        f"advantage, and raise {setting_name(run, 'learning_rate')} threefold; where they do not, "
        "take easier prompts. If no more can be had, give reward_ceiling.",
    )
    return card_of("too_short", finding, title="Nothing learned", **change)


def _learned_nothing(run: PilotRun, first: Level, most: float, reward: FloatArray) -> bool:
    """Whether the most that was gained is next to nothing of what there was to gain."""
    if reward.size < 20:
        return False
    known = run.reward_ceiling
    top = max(1.0 if known is None else known, float(reward.max()))
    room = top - first.mean
    return room > 0.3 * (top - floor_of(run)) and most < 0.1 * room
