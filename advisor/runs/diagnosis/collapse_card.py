"""Collapse: the reward has fallen for good, and noise could not have done it."""

from __future__ import annotations

from typing import Any

import numpy as np

from advisor.runs.diagnosis.card import Card, not_applicable
from advisor.runs.diagnosis.collapse import (
    EVALUATION_ROWS,
    LOST_SHARE,
    WINDOW_ROWS,
    Collapse,
    find_collapse,
    window_rows,
)
from advisor.runs.diagnosis.fall import (
    PASSING_SURE,
    SURE,
    UNSURE,
    Fall,
    find_any_fall,
    find_final_fall,
    find_passing_fall,
)
from advisor.runs.diagnosis.levels import Z95, difference, level, series_of
from advisor.runs.pilot_run import PilotRun
from advisor.runs.trainers import setting_name
from advisor.theory import FloatArray

MODE = "collapse"
TITLE = "Collapse"

TIMES = 2.0
"""Factor by which a witness must have changed across the fall."""

REGAINED = 0.1
"""Share of what was lost from which a run is said to have come back in part."""

MOST = 0.8
"""Share of what was lost from which a run is said to have come back without a word more."""

BAND = 3.5
"""Standard deviations of the rows before it by which a fall that came back is plain: correlated
noise of 40 to 300 rows makes one in 0.2 % of runs, and no healthy one of 330 public runs has it."""

EXTINCT = 8
"""Evaluations at the floor to the last digit, from which on a policy is dead."""

WITNESSES = ("entropy", "completion_length", "truncated_share", "gradient_norm", "kl", "policy_kl")

SOURCE = (
    "a trailing mean (5 rows or 5 % of the run) more than a third below its best, at the end and "
    f"for one window before; a fall of {SURE:g} standard errors"
)


def judged_series(run: PilotRun) -> tuple[FloatArray, FloatArray]:
    """Steps and finite rewards that are judged: held-out ones where nothing else was logged."""
    step, reward = (run.eval_step, run.eval_reward) if run.is_eval_only else (run.step, run.reward)
    kept = np.isfinite(reward)
    return step[kept], reward[kept]


def rows_of_a_window(run: PilotRun) -> int:
    """Rows of the trailing mean of a short series: fewer where each is an evaluation."""
    return EVALUATION_ROWS if run.is_eval_only else WINDOW_ROWS


def floor_of(run: PilotRun) -> float:
    """Lowest possible reward: as given, else 0 or the lowest one logged.

    A floor that no reward lies above is no floor.
    """
    given, reward = run.reward_floor, judged_series(run)[1]
    if given is not None and (not reward.size or reward.max() > given):
        return given
    return min(0.0, float(reward.min())) if reward.size else 0.0


def has_collapsed(run: PilotRun) -> bool:
    """Whether a run fell for good, or to less than half, beyond what noise does."""
    return find_any_fall(*judged_series(run), floor_of(run), rows_of_a_window(run)).unstable


def collapse_onset(run: PilotRun, verdict: Collapse) -> float | None:
    """Step from which a run fell, wherever one is shown; None where the verdict is stable.

    A verdict may rest on the floor of many runs; the step is that of the run's own, as on its card.
    """
    if not verdict.unstable:
        return None
    own = find_any_fall(*judged_series(run), floor_of(run), rows_of_a_window(run))
    return own.fell_from if own.unstable else verdict.fell_from


def collapse(run: PilotRun) -> Card:
    """Judge the reward's last fall."""
    (step, reward), floor, least = judged_series(run), floor_of(run), rows_of_a_window(run)
    verdict, fall = find_final_fall(step, reward, floor, least)
    passing = None if verdict.unstable else find_passing_fall(step, reward, floor, least)
    if passing is None and not verdict.unstable:
        passing = _plain_fall(step, reward, floor, least)
    extinct = None if passing or verdict.unstable else _extinct(run, step, reward, floor)
    if extinct is not None:
        return extinct
    fall = passing or fall
    if fall is None:
        return not_applicable(
            MODE,
            TITLE,
            "Too few rewards to see a fall.",
            "At least ten rows with a reward are needed.",
        )
    range_ = fall.before - floor if fall.before > floor else np.inf
    lost, error = (fall.before - fall.after) / range_, Z95 * fall.error / range_
    common: dict[str, Any] = {
        "mode": MODE,
        "title": TITLE,
        "number": lost,
        "unit": "share of the reward lost",
        "interval": (lost - error, lost + error),
        "threshold": LOST_SHARE,
        "source": SOURCE,
    }
    if verdict.unstable:
        return Card(
            **common,
            status="FAIL",
            headline=f"The reward fell from {fall.before:.3g} to {fall.after:.3g} from step "
            f"{fall.onset_step:.0f} on and {_came_back(fall, verdict.last)}.",
            steps=(fall.onset_step, float(step[-1])),
            witnesses=witnesses(run, fall),
            change=f"Resume from a checkpoint before step {fall.onset_step:.0f} with a third of "
            f"the {setting_name(run, 'learning_rate')}; other cards say what else moved.",
        )
    if passing is not None:
        return Card(
            **common,
            status="WARNING",
            headline=f"The reward fell from {fall.before:.3g} to {fall.after:.3g} at step "
            f"{fall.onset_step:.0f} and {_recovered(fall, verdict.last)}: another seed may not.",
            steps=(fall.onset_step, fall.floor_step),
            witnesses=witnesses(run, fall),
            change=f"Lower the {setting_name(run, 'learning_rate')}"
            + (": it counts as a collapse of its setting." if fall.z >= PASSING_SURE else "."),
        )
    return _no_sure_fall(run, common, fall)


def _no_sure_fall(run: PilotRun, common: dict[str, Any], fall: Fall) -> Card:
    """Card of a run that ends lower by what noise may do, or no lower at all."""
    (step, reward), floor, least = judged_series(run), floor_of(run), rows_of_a_window(run)
    if find_collapse(step, reward, floor, least).unstable and fall.z >= UNSURE:
        return Card(
            **common,
            status="WARNING",
            headline=f"The reward ends lower, {fall.after:.3g} after {fall.before:.3g}, but noise "
            f"may have done it ({fall.z:.1f} standard errors).",
            steps=(fall.onset_step, float(step[-1])),
            change=f"Log on, or raise {setting_name(run, 'prompts_per_step')}: more completions a "
            "step tell a fall from noise.",
        )
    return Card(
        **{**common, "number": None, "unit": "", "interval": None},
        status="PASS",
        headline=f"No lasting fall in {reward.size} rows.",
        steps=(float(step[0]), float(step[-1])),
    )


def dead_at_once(run: PilotRun) -> Card:
    """Card of a run that its first updates killed, as its siblings tell."""
    step, reward = judged_series(run)
    return Card(
        mode=MODE,
        title=TITLE,
        status="FAIL",
        headline=f"Dead from the start: the reward is {float(reward.mean()):.2g} on average where "
        "other runs of this model and task began far above it.",
        source="ours: every window below a quarter of the level at which siblings began",
        steps=(float(step[0]), float(step[-1])),
        change=f"A third of the {setting_name(run, 'learning_rate')}, or fewer updates for each "
        "batch of rollouts.",
    )


def _plain_fall(step: FloatArray, reward: FloatArray, floor: float, least: int) -> Fall | None:
    """Fall that came back and that is plain to the eye, though a fit would not count it."""
    fall = find_passing_fall(step, reward, floor, least, sure=SURE)
    if fall is None:
        return None
    before = reward[step < fall.onset_step]
    is_held = before.size >= 2 * window_rows(reward.size, least)
    return fall if is_held and fall.before - fall.after > BAND * before.std(ddof=1) else None


def _recovered(fall: Fall, last: float) -> str:
    """How far a reward came back that does not end low by the definition."""
    regained = last - fall.after
    return "came back" if regained > MOST * (fall.before - fall.after) else "came back in part"


def _extinct(run: PilotRun, step: FloatArray, reward: FloatArray, floor: float) -> Card | None:
    """Card of evaluations that went to their floor and stayed there to the last digit.

    Each is a mean over many prompts: the fewest that show one success at all show none with a
    chance of 0.37, eight times in a row with one below a thousandth.
    """
    above = np.flatnonzero(reward > floor)
    if not run.is_eval_only or not above.size or reward.size - 1 - above[-1] < EXTINCT:
        return None
    at = int(above[-1]) + 1
    return Card(
        mode=MODE,
        title=TITLE,
        status="FAIL",
        headline=f"Every evaluation from step {step[at]:.0f} on is {floor:.3g}, after "
        f"{reward[at - 1]:.3g}: no answer is right any more.",
        number=1.0,
        unit="share of the reward lost",
        threshold=LOST_SHARE,
        source=f"ours: {EXTINCT} evaluations in a row at the floor",
        steps=(float(step[at]), float(step[-1])),
        change=f"Start again with a third of the {setting_name(run, 'learning_rate')}.",
    )


def _came_back(fall: Fall, last: float) -> str:
    """Whether a reward that ends low has regained a part of what was lost."""
    if last - fall.after > REGAINED * (fall.before - fall.after):
        return f"came back no further than {last:.3g}"
    return "did not come back"


def witnesses(run: PilotRun, fall: Fall) -> tuple[str, ...]:
    """Other series that changed across a fall by ``TIMES`` or more, with their numbers."""
    found = []
    for name in WITNESSES:
        series = series_of(run, name)
        if series is None:
            continue
        step, values = series
        before, after = values[step < fall.onset_step], values[step >= fall.onset_step]
        one, other = level(before[-max(4, before.size // 2) :]), level(after)
        if not np.isfinite(difference(other, one)) or abs(difference(other, one)) < Z95:
            continue
        low, high = sorted([abs(one.mean), abs(other.mean)])
        if high > TIMES * low:
            found.append(f"{name.replace('_', ' ')} {one.mean:.3g} -> {other.mean:.3g}")
    return tuple(found)
