"""Peak, schedule and warm-up of the learning rates that a log holds."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from advisor.runs.logfiles import limits
from advisor.theory import FloatArray, IntArray

MOST_MISFIT = 0.02
"""Largest misfit, as a share of the peak, at which a schedule is said to be recognised."""

SHARP_MISFIT = 0.002
"""Misfit below which the planned length read off the curve itself is trusted."""

CLEAR_MISFIT = 1e-4
"""Misfit by which a richer schedule must fit better than a plainer one."""

ROUND = 1e-3
"""Share by which a learning rate read off a log may differ from the number that was set."""

LATE = 3
"""Distances between rows before the first one, from which on a log does not show the beginning."""


STEPS_PER_ROW = (1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 50, 64, 100, 200, 250, 500)
"""Numbers of steps per row that people set."""

SURE = 20.0
"""How many times worse the next best number of steps must explain the first learning rate."""

LEAST_MISFIT = 1e-6
"""Share of the peak to which logged learning rates are exact."""


Kind = Literal["constant", "linear", "cosine"]


class Schedule(NamedTuple):
    """A learning-rate schedule read off its series."""

    peak: float
    kind: Kind | None = None
    warmup_steps: int | None = None
    planned_steps: int | None = None
    is_rising: bool = False


class Rates(NamedTuple):
    """Settings that a learning-rate series shows."""

    facts: dict[str, Any]
    is_partial: bool = False
    warnings: tuple[str, ...] = ()
    largest: float | None = None


def read_rates(step: FloatArray, rate: FloatArray, planned_steps: int | None) -> Rates:
    """Peak, schedule and warm-up as settings; of empty arrays nothing but the length stated."""
    if planned_steps is not None and step.size and step[-1] > planned_steps:
        planned_steps = None  # of something else that the log counts
    facts: dict[str, Any] = {} if planned_steps is None else {"planned_steps": planned_steps}
    if not rate.size:
        return Rates(facts)
    found = infer_schedule(step, rate, planned_steps)
    largest = float(rate.max())
    if found.is_rising:
        why = f"the log stops within the warm-up, at a learning rate of {largest:.3g}"
        return Rates(facts, True, (f"{why}: the peak is not known from it",), largest)
    facts["learning_rate"] = rounded(found.peak)
    if found.kind is None:
        what = "the schedule cannot be told from the learning rates logged"
        begins_late = rate.size > 1 and step[0] > LATE * (step[1] - step[0])
        is_late = bool(begins_late and rate[0] == largest)
        return Rates(facts, is_late, (f"{what}; they are used as they stand",), largest)
    facts["schedule"], facts["warmup_steps"] = found.kind, found.warmup_steps
    if found.planned_steps is not None:
        facts["planned_steps"] = found.planned_steps
    return Rates(facts, largest=largest)


def steps_per_row(rates: FloatArray) -> int | None:
    """Steps per row of a run without step, from learning rates that fall to zero by even steps."""
    if rates.size < limits.LEAST_SCHEDULE_ROWS or not np.isfinite(rates).all() or rates[0] <= 0:
        return None
    falls = -np.diff(rates)
    fall = float(np.median(falls))
    if fall <= 0 or np.abs(falls[: max(3, falls.size // 2)] - fall).max() > 1e-2 * fall:
        return None
    peaks = rates[0] + fall * (1 - 1 / np.array(STEPS_PER_ROW, dtype=float))
    misfit = np.array([abs(peak / float(f"{peak:.1e}") - 1) for peak in peaks])
    order = np.argsort(misfit)
    best, next_best = misfit[order[:2]]
    if best > 50 * LEAST_MISFIT or next_best < SURE * max(best, LEAST_MISFIT):
        return None
    return STEPS_PER_ROW[int(order[0])]


def rounded(rate: float) -> float:
    """A learning rate as it was set, where the one read off a log is within 0.1 % of that."""
    near = float(f"{rate:.1e}")
    return near if abs(rate - near) <= ROUND * near else rate


def infer_schedule(step: FloatArray, rate: FloatArray, planned_steps: int | None) -> Schedule:
    """Recognise the schedule of learning rates logged at increasing, one-based optimizer steps."""
    # The runs of a sweep often share one series.
    return _infer(step.tobytes(), rate.tobytes(), planned_steps)


@lru_cache(maxsize=256)
def _infer(steps: bytes, rates: bytes, planned_steps: int | None) -> Schedule:
    step, rate = np.frombuffer(steps), np.frombuffer(rates)
    top = int(np.argmax(rate))
    peak = float(rate[top])
    if peak - float(rate.min()) <= 1e-9 * peak:
        return Schedule(peak, "constant", 0) if rate.size > 1 else Schedule(peak)
    rising = top == rate.size - 1
    if rate.size < limits.LEAST_SCHEDULE_ROWS or rising:
        return Schedule(peak, is_rising=rising)
    # Every row counts in the peak, but eighty are plenty for a shape.
    thin = np.unique(np.linspace(0, rate.size - 1, min(rate.size, 80)).astype(int))
    thin = np.union1d(thin, [top])
    best: tuple[float, Kind, int, int, float] | None = None
    before = 0 if top == 0 else int(step[top - 1]) - 1
    warmups = np.unique(np.linspace(before, step[top + 1], 64).astype(int))
    if top == 0:
        warmups = warmups[warmups <= step[0]]
    last = int(step[-1])
    lengths = np.array([max(planned_steps or 1, 1)])
    if planned_steps is None:
        lengths = np.unique(np.r_[_spread(last, 20, 400), _spread(20 * last, 10, 120)])
    kinds: tuple[Kind, ...] = ("constant", "linear", "cosine")
    tries = [(kind, offset) for kind in kinds for offset in (1, 0)]
    for kind, offset in tries:
        if best is not None and best[0] <= CLEAR_MISFIT:
            break
        spans = lengths[:1] if kind == "constant" else lengths
        done = step[thin] - offset
        shape = _factors(kind, done, warmups[:, None, None], spans[None, :, None])
        with np.errstate(over="ignore", invalid="ignore"):  # rates of any size can be logged
            level = (shape * rate[thin]).sum(-1) / np.maximum((shape**2).sum(-1), 1e-300)
            misfit = np.abs(rate[thin] - level[..., None] * shape).max(-1)
            misfit = np.divide(misfit, level, out=np.full_like(misfit, np.inf), where=level > 0)
        misfit = np.nan_to_num(misfit, nan=np.inf, posinf=np.inf)
        # Where no row lies within the warm-up its length is open: the shortest is assumed.
        i, j = np.argwhere(misfit <= misfit.min() + 1e-6)[0]
        error = float(misfit[i, j])
        # A plainer schedule keeps the place unless a richer one fits clearly better.
        if best is None or error < best[0] - CLEAR_MISFIT:
            best = (error, kind, int(warmups[i]), int(spans[j]), float(level[i, j]))
    if best is None or best[0] > MOST_MISFIT:
        return Schedule(peak)
    error, name, warmup, length, level_found = best
    told = planned_steps is None and name != "constant" and error <= SHARP_MISFIT
    if told and name == "linear":
        level_found, length = _straight(step, rate, max(warmup, before), level_found, length)
    # Twelve digits: the fit adds rounding noise, and configs are read by people.
    peak = float(f"{max(peak, level_found):.12g}")
    return Schedule(peak, name, warmup, length if told else None)


def _straight(
    step: FloatArray, rate: FloatArray, warmup: int, peak: float, length: int
) -> tuple[float, int]:
    """Peak and length of a linear decay, exactly, where rows after the warm-up lie on one line."""
    rows = step > warmup + 1
    if warmup or rows.sum() < limits.LEAST_SCHEDULE_ROWS or rate[rows][-1] >= rate[rows][0]:
        return peak, length
    slope, level = np.polyfit(step[rows], rate[rows], 1)
    misfit = float(np.abs(level + slope * step[rows] - rate[rows]).max())
    # The rate of step s is that after s - 1 steps, or in older versions after s.
    spans = [(level + slope * offset, -level / slope - offset) for offset in (1, 0)]
    start, span = min(spans, key=lambda found: abs(found[1] - round(found[1])))
    is_exact = misfit <= CLEAR_MISFIT * peak and abs(span - round(span)) <= 0.02
    return (float(start), round(span)) if is_exact else (peak, length)


def _spread(first: int, times: int, count: int) -> IntArray:
    """Lengths from the first on, evenly spread by their ratio."""
    return np.geomspace(first, times * first, count).astype(np.int64)


def _factors(kind: str, done: FloatArray, warmup: FloatArray, length: FloatArray) -> FloatArray:
    """Rate over peak after ``done`` scheduler steps; arguments broadcast."""
    warm = np.clip(done / np.maximum(warmup, 1), 0.0, 1.0)
    left = np.clip((length - done) / np.maximum(length - warmup, 1), 0.0, 1.0)
    cosine = 0.5 * (1 - np.cos(np.pi * left))
    decay = {"constant": np.ones_like(left), "linear": left, "cosine": cosine}[kind]
    return np.asarray(np.where(done < warmup, warm, decay))
