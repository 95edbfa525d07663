"""Reward hacking: what is optimised rises while what is meant does not."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from advisor.diagnosis.card import Card, not_applicable
from advisor.diagnosis.collapse import trailing_mean
from advisor.diagnosis.coupling import Coupling, couplings
from advisor.diagnosis.fall import SURE, UNSURE, Fall, find_fall
from advisor.diagnosis.levels import LEAST_ROWS, ROUNDING, difference, ends, level, series_of
from advisor.run.pilot_run import PilotRun
from advisor.theory.arrays import FloatArray
from advisor.trainers import setting_name

MODE = "reward_hacking"
TITLE = "Reward hacking"

FEWEST_EVALUATIONS = 6

MANY = 20
"""Values from which the correlation of neighbours can be told; fewer lie far apart."""

UP = 3.0
"""Standard errors by which the train reward must rise."""

NOTED, LOST = 0.1, 1 / 3
"""Share of its best that the meant quantity must lose for a WARNING, and for a FAIL."""

TRUE_NAMES = re.compile(r"acc|correct|answer|solv|succe|exact|pass|true|gold", re.IGNORECASE)
"""Reward parts that say what is meant."""

FORM = re.compile(r"format|length|tag|xml", re.IGNORECASE)
"""Parts that judge the form of an answer, whatever else their name says."""

SOURCE = "ours: train reward up by 3 standard errors, held-out reward or meant part down by 4"


class Parting(NamedTuple):
    """A series that falls while the train reward does not.

    Attributes
    ----------
    name : str
    fall : Fall
    floor : float
        Its lowest possible value.
    healthy_until : float
        Last step of the series before the fall began.
    """

    name: str
    fall: Fall
    floor: float
    healthy_until: float

    @property
    def lost(self) -> float:
        """Share of its best that it lost."""
        before = self.fall.before - self.floor
        return (self.fall.before - self.fall.after) / before if before > 0 else 0.0


def reward_hacking(run: PilotRun) -> Card:
    """Set the train reward against held-out rewards and against its own parts."""
    evaluations = np.isfinite(run.eval_reward).sum()
    has_evaluations = evaluations >= FEWEST_EVALUATIONS and not run.is_eval_only
    parts = {n: values for n, values in run.parts.items() if np.isfinite(values).sum() >= MANY}
    if not has_evaluations and len(parts) < 2:
        return not_applicable(
            MODE,
            TITLE,
            "Nothing to set the train reward against.",
            "Evaluate on held-out prompts (eval_strategy, trainer.test_freq) or log each "
            "reward function: train reward alone cannot show it.",
        )
    times = np.concatenate([run.step, run.eval_step])
    span = (float(times.min()), float(times.max()))
    found: list[Parting] = []
    slopes = couplings(run) if has_evaluations else []
    last = slopes[-1] if slopes else None
    if has_evaluations:
        floor = 0.0 if run.reward_floor is None else run.reward_floor
        parted = _parting("held-out reward", run.eval_step, run.eval_reward, floor)
        if parted is not None and _moved_since(run, parted.healthy_until, -UP):
            found.append(parted)
    for name, values in parts.items():
        parted = _parting(name, run.step, values, 0.0)
        if parted is not None and _moved_since(run, parted.healthy_until, UP):
            found.append(parted)
    sure = [p for p in found if p.fall.z >= SURE and p.lost >= NOTED]
    meant = [p for p in sure if p.name == "held-out reward" or _is_meant(p.name)]
    common = {
        "mode": MODE,
        "title": TITLE,
        "number": None if last is None else last.slope,
        "unit": "" if last is None else "held-out gain per unit of train gain, last half",
        "interval": None if last is None else last.interval,
        "threshold": None if last is None else 0.0,
        "source": SOURCE,
        "witnesses": (*_turned(slopes), *_witnesses(run)),
        "unknown": () if has_evaluations else ("Held-out rewards would settle it.",),
    }
    if meant or sure:
        worst = max(meant or sure, key=lambda one: one.fall.z)
        fall = worst.fall
        return Card(
            **common,
            status="FAIL" if meant and worst.lost >= LOST else "WARNING",
            headline=f"{worst.name} fell from {fall.before:.3g} to {fall.after:.3g} "
            f"from step {fall.onset_step:.0f} on while the train reward did not.",
            steps=(fall.onset_step, span[1]),
            change=f"Mend or reweigh the reward; meanwhile raise "
            f"{setting_name(run, 'kl_coefficient')} and stop at step {fall.onset_step:.0f}.",
        )
    unsure = [p for p in found if p.fall.z >= UNSURE and p.lost >= LOST and p not in sure]
    if any(p.name == "held-out reward" for p in unsure):
        fall = unsure[0].fall
        return Card(
            **common,
            status="WARNING",
            headline=f"{unsure[0].name} ends lower, {fall.after:.3g} after {fall.before:.3g}, "
            "while the train reward does not, but noise may have done it "
            f"({fall.z:.1f} standard errors).",
            steps=(fall.onset_step, span[1]),
            change="Evaluate more often, or on more prompts: a fall is then told from noise.",
        )
    stuck = _stuck(run, parts)
    if stuck is not None:
        return Card(
            **common,
            status="WARNING",
            headline=f"The train reward rose, but {stuck} never moved.",
            steps=span,
            change=f"Check that '{stuck}' can be reached; what rises may be a proxy.",
        )
    if last is not None and _is_parted(run, last):
        return Card(
            **common,
            status="INFO",
            headline="Held-out reward goes down as the train reward rises in steps "
            f"{last.first_step:.0f} to {last.last_step:.0f}, by too little to call it a fall.",
            steps=(last.first_step, last.last_step),
        )
    return Card(
        **common,
        status="PASS",
        headline="Train reward and "
        + ("held-out reward" if has_evaluations else "its parts")
        + " move together.",
        steps=span,
    )


def _parting(name: str, step: FloatArray, values: FloatArray, floor: float) -> Parting | None:
    """Last fall of a series, or None where it has none."""
    kept = np.isfinite(values)
    find = find_fall if kept.sum() >= MANY else _sparse_fall
    fall = find(step[kept], values[kept], floor=floor)
    if fall is None:
        return None
    before = step[kept][step[kept] < fall.onset_step]
    return Parting(name, fall, floor, float(before[-1]) if before.size else fall.onset_step)


def _sparse_fall(step: FloatArray, values: FloatArray, *, floor: float) -> Fall | None:
    """Best stretch of a few independent values, a fifth of them, against their end."""
    width = max(3, values.size // 5)
    if values.size < 2 * width:
        return None
    top = int(np.argmax(trailing_mean(values, width)[:-width]))
    best, end = values[top : top + width], values[-width:]
    # Three values alone say little about their noise: bends of what led up to them say more.
    bends = np.diff(values[: top + width], 2)
    own, other = 2 * (width - 1), bends.size / 2
    squares = ((best - best.mean()) ** 2).sum() + ((end - end.mean()) ** 2).sum()
    squares += other * (bends**2).mean() / 6 if bends.size else 0.0
    error = np.sqrt(squares / (own + other) * 2 / width)
    error = max(float(error), ROUNDING * float(np.abs(values).max()))
    before, after = float(best.mean()), float(end.mean())
    low = np.flatnonzero(values[top + width :] < (before + after) / 2)
    onset = float(step[top + width + (int(low[0]) if low.size else 0)])
    return Fall(onset, float(step[-width]), before, after, error, own + other)


def _moved_since(run: PilotRun, since: float, least: float) -> bool:
    """Whether the train reward moved by more than so many standard errors from a step on."""
    kept = np.isfinite(run.reward)
    step, reward = run.step[kept], run.reward[kept]
    around, after = reward[step <= since], reward[step > since]
    size = max(LEAST_ROWS, min(around.size, after.size) // 3)
    if min(around.size, after.size) < LEAST_ROWS:
        return False
    return difference(level(after[-size:]), level(around[-size:])) > least


def _is_parted(run: PilotRun, last: Coupling) -> bool:
    """Whether the train reward rises over a window in which the slope is surely negative."""
    if last.interval is None or last.interval[1] >= 0:
        return False
    own = run.reward[(run.step >= last.first_step) & (run.step <= last.last_step)]
    own = own[np.isfinite(own)]
    return own.size >= 2 * LEAST_ROWS and difference(*ends(own, 1 / 3)[::-1]) > UP


def _turned(slopes: list[Coupling]) -> tuple[str, ...]:
    """First window with a surely positive slope, and first one after it with a negative one."""
    up = next((one for one in slopes if one.interval and one.interval[0] > 0), None)
    if up is None:
        return ()
    later = slopes[slopes.index(up) + 1 :]
    down = next((one for one in later if one.interval and one.interval[1] < 0), None)
    if down is None:
        return ()
    return (
        f"coupling {up.slope:.2g} in steps {up.first_step:.0f} to {up.last_step:.0f}, "
        f"{down.slope:.2g} in steps {down.first_step:.0f} to {down.last_step:.0f}",
    )


def _is_meant(name: str) -> bool:
    return bool(TRUE_NAMES.search(name)) and not FORM.search(name)


def _stuck(run: PilotRun, parts: dict[str, FloatArray]) -> str | None:
    """A meant part near its own floor that did not move while the total rose."""
    reward = run.reward[np.isfinite(run.reward)]
    if reward.size < 20 or difference(*ends(reward)[::-1]) < SURE:
        return None
    for name, values in parts.items():
        if not _is_meant(name):
            continue
        kept = values[np.isfinite(values)]
        first, last = ends(kept)
        biggest = max(abs(np.nanmax(v)) for v in parts.values())
        if abs(difference(last, first)) < 2 and abs(last.mean) < 0.05 * biggest:
            return name
    return None


def _witnesses(run: PilotRun) -> tuple[str, ...]:
    said = []
    for name in ("kl", "completion_length"):
        series = series_of(run, name)
        if series is None:
            continue
        first, last = ends(series[1])
        if difference(last, first) > UP and last.mean > 1.5 * abs(first.mean):
            said.append(f"{name.replace('_', ' ')} {first.mean:.3g} -> {last.mean:.3g}")
    return tuple(said)
