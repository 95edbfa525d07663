"""Reward hacking: what is optimised rises while what is meant does not."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from advisor.diagnosis.card import Card
from advisor.diagnosis.fall import SURE
from advisor.diagnosis.knobs import knob
from advisor.diagnosis.levels import Level, difference, ends, level, series_of
from advisor.runs.pilot_run import FloatArray, PilotRun

MODE = "reward_hacking"
TITLE = "Reward hacking"

FEWEST_EVALUATIONS = 6
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
    """Two series that part: the one meant, and since when."""

    name: str
    before: Level
    after: Level
    since: float

    @property
    def z(self) -> float:
        """Fall of the meant one in standard errors."""
        return difference(self.before, self.after)

    @property
    def lost(self) -> float:
        """Share of its best that it lost."""
        return 1 - self.after.mean / self.before.mean if self.before.mean > 0 else 0.0


def reward_hacking(run: PilotRun) -> Card:
    """Set the train reward against held-out rewards and against its own parts."""
    has_evaluations = run.eval_step.size >= FEWEST_EVALUATIONS and not run.is_eval_only
    parts = {name: values for name, values in run.parts.items() if np.isfinite(values).sum() >= 20}
    if not has_evaluations and len(parts) < 2:
        return Card(
            mode=MODE,
            title=TITLE,
            status="NOT APPLICABLE",
            headline="Nothing to set the train reward against.",
            unknown=(
                "Evaluate on held-out prompts (eval_strategy, trainer.test_freq) or log each "
                "reward function: train reward alone cannot show it.",
            ),
        )
    found: list[Parting] = []
    number: float | None = None
    unit = ""
    if has_evaluations:
        slope = coupling(run)
        if slope is not None:
            number, unit = slope, "held-out gain per unit of train gain, last half"
        parted = _parting("held-out reward", run.eval_step, run.eval_reward)
        if parted is not None and _moved_since(run.step, run.reward, parted.since) > -UP:
            found.append(parted)
    for name, values in parts.items():
        parted = _parting(name, run.step, values)
        if parted is not None and _moved_since(run.step, run.reward, parted.since) > UP:
            found.append(parted)
    sure = [p for p in found if p.z >= SURE and p.lost >= NOTED]
    meant = [p for p in sure if p.name == "held-out reward" or _is_meant(p.name)]
    common = {
        "mode": MODE,
        "title": TITLE,
        "number": number,
        "unit": unit,
        "threshold": 0.0 if number is not None else None,
        "source": SOURCE,
        "witnesses": _witnesses(run),
        "unknown": () if has_evaluations else ("Held-out rewards would settle it.",),
    }
    if meant or sure:
        worst = max(meant or sure, key=lambda one: one.z)
        return Card(
            **common,
            status="FAIL" if meant and worst.lost >= LOST else "WARNING",
            headline=f"{worst.name} fell from {worst.before.mean:.3g} to {worst.after.mean:.3g} "
            f"from step {worst.since:.0f} on while the train reward did not.",
            steps=(worst.since, float(run.step[-1])),
            change=f"Mend or reweigh the reward; meanwhile raise {knob(run, 'kl_coefficient')} "
            f"and stop at step {worst.since:.0f}.",
        )
    stuck = _stuck(run, parts)
    if stuck is not None:
        return Card(
            **common,
            status="WARNING",
            headline=f"The train reward rose, but {stuck} never moved.",
            steps=(float(run.step[0]), float(run.step[-1])),
            change=f"Check that '{stuck}' can be reached; what rises may be a proxy.",
        )
    return Card(
        **common,
        status="PASS",
        headline="Train reward and "
        + ("held-out reward" if has_evaluations else "its parts")
        + " move together.",
        steps=(float(run.step[0]), float(run.step[-1])),
    )


def coupling(run: PilotRun) -> float | None:
    """Slope of held-out on train reward over the last half, with errors in both (Deming).

    Returns
    -------
    slope : float or None
        Ratio of the errors from differences of neighbours; None where neither moves.
    """
    kept = np.isfinite(run.reward)
    size = max(1, kept.sum() // (2 * run.eval_step.size))
    smooth = np.convolve(run.reward[kept], np.ones(size) / size, mode="same")
    train = np.interp(run.eval_step, run.step[kept], smooth)
    half = run.eval_step.size // 2
    x, y = train[half:], run.eval_reward[half:]
    if x.size < 3:
        return None
    noise = [float(np.mean(np.diff(v) ** 2) / 2) for v in (x, y)]
    xx, yy = float(np.var(x)), float(np.var(y))
    xy = float(np.mean((x - x.mean()) * (y - y.mean())))
    if xy == 0 or noise[0] <= 0:
        return None
    ratio = noise[1] / noise[0]
    gap = yy - ratio * xx
    return float((gap + np.sqrt(gap**2 + 4 * ratio * xy**2)) / (2 * xy))


def _parting(name: str, step: FloatArray, values: FloatArray) -> Parting | None:
    """Best stretch of a series against its end, where the end comes after it."""
    kept = np.isfinite(values)
    step, values = step[kept], values[kept]
    width = max(3, values.size // 5)
    if values.size < 2 * width:
        return None
    means = np.convolve(values, np.ones(width) / width, mode="valid")
    top = int(np.argmax(means[: -width or None]))
    if top + width > values.size - width:
        return None
    best, end = level_of(values[top : top + width]), level_of(values[-width:])
    return Parting(name, best, end, float(step[top + width - 1]))


def level_of(values: FloatArray) -> Level:
    """Level of a stretch that may have three values only."""
    if values.size >= 4:
        return level(values)
    return Level(float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size)))


def _moved_since(step: FloatArray, reward: FloatArray, since: float) -> float:
    """Rise of the train reward from a step on, in standard errors."""
    kept = np.isfinite(reward)
    around = reward[kept][step[kept] <= since]
    after = reward[kept][step[kept] > since]
    if around.size < 4 or after.size < 4:
        return 0.0
    size = max(4, min(around.size, after.size) // 3)
    return difference(level(after[-size:]), level(around[-size:]))


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
