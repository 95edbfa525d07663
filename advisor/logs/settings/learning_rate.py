"""What a logged learning-rate series tells: its peak, its schedule, its warm-up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from advisor.logfiles import limits
from advisor.theory.arrays import FloatArray, IntArray

TOLERANCE = 0.02
"""Largest misfit, as a share of the peak, at which a schedule is said to be recognised."""

SHARP = 0.002
"""Misfit below which the planned length read off the curve itself is trusted."""

CLEARLY = 1e-4
"""Misfit by which a richer schedule must fit better than a plainer one."""


@dataclass(frozen=True)
class Schedule:
    """A learning-rate schedule read off its series.

    Attributes
    ----------
    peak : float
        Fitted where the schedule was recognised, else the largest value logged.
    kind : {"constant", "linear", "cosine"} or None
    warmup_steps, planned_steps : int or None
    is_rising : bool
        The last row is the largest: the log stops within the warm-up, so the peak is above it.
    """

    peak: float
    kind: Literal["constant", "linear", "cosine"] | None
    warmup_steps: int | None
    planned_steps: int | None
    is_rising: bool


class Rates(NamedTuple):
    """Settings that a learning-rate series shows.

    Attributes
    ----------
    facts : dict of str to object
    is_rising : bool
        The log stops within the warm-up, so its largest learning rate is not the peak.
    warnings : tuple of str
    """

    facts: dict[str, Any]
    is_rising: bool
    warnings: tuple[str, ...]

    def without_lengths(self) -> Rates:
        """What holds as long as it is not known how many optimizer steps a count stands for."""
        lengths = ("warmup_steps", "planned_steps")
        return self._replace(facts={k: v for k, v in self.facts.items() if k not in lengths})


def read_rates(step: FloatArray, rate: FloatArray, planned_steps: int | None) -> Rates:
    """Peak, schedule and warm-up as settings.

    Parameters
    ----------
    step, rate : ndarray of shape (rates,)
        Optimizer steps and learning rates; empty where none is logged.
    planned_steps : int or None
        Full length of the run where the log states it.
    """
    facts: dict[str, Any] = {} if planned_steps is None else {"planned_steps": planned_steps}
    if not rate.size:
        return Rates(facts, False, ())
    found = infer_schedule(step, rate, planned_steps)
    facts["learning_rate"] = found.peak
    if found.kind is None:
        what = "the schedule cannot be told from the learning rates logged"
        return Rates(facts, found.is_rising, (f"{what}; they are used as they stand",))
    facts["schedule"], facts["warmup_steps"] = found.kind, found.warmup_steps
    if found.planned_steps is not None:
        facts["planned_steps"] = found.planned_steps
    return Rates(facts, False, ())


def infer_schedule(step: FloatArray, rate: FloatArray, planned_steps: int | None) -> Schedule:
    """Recognise a schedule in a logged learning-rate series.

    Parameters
    ----------
    step : ndarray of shape (rows,)
        One-based optimizer steps, increasing.
    rate : ndarray of shape (rows,)
        Learning rates, finite, with a positive maximum.
    planned_steps : int or None
        Full length of the run where the log states it.

    Returns
    -------
    schedule : Schedule

    Notes
    -----
    Older versions of transformers log the rate after the scheduler stepped, newer ones the rate
    that was used; both offsets are tried. The shapes are those of `dynamics.schedule_factors`.
    """
    # The runs of a sweep often share one series.
    return _infer(step.tobytes(), rate.tobytes(), planned_steps)


@lru_cache(maxsize=256)
def _infer(steps: bytes, rates: bytes, planned_steps: int | None) -> Schedule:
    step, rate = np.frombuffer(steps), np.frombuffer(rates)
    top = int(np.argmax(rate))
    peak = float(rate[top])
    if np.ptp(rate) <= 1e-9 * peak:
        enough = rate.size > 1
        return Schedule(peak, "constant" if enough else None, 0 if enough else None, None, False)
    rising = top == rate.size - 1
    if rate.size < limits.LEAST_SCHEDULE_ROWS or rising:
        return Schedule(peak, None, None, None, rising)
    # Every row counts in the peak, but eighty are plenty for a shape.
    thin = np.unique(np.linspace(0, rate.size - 1, min(rate.size, 80)).astype(int))
    thin = np.union1d(thin, [top])
    best: tuple[float, str, int, int, float] | None = None
    before = 0 if top == 0 else int(step[top - 1]) - 1
    warmups = np.unique(np.linspace(before, step[top + 1], 64).astype(int))
    if top == 0:
        warmups = warmups[warmups <= step[0]]
    last = int(step[-1])
    lengths = (
        np.unique(np.concatenate([_spread(last, 20, 400), _spread(20 * last, 10, 120)]))
        if planned_steps is None
        else np.array([max(planned_steps, 1)])
    )
    tries = [(kind, offset) for kind in ("constant", "linear", "cosine") for offset in (1, 0)]
    for kind, offset in tries:
        if best is not None and best[0] <= CLEARLY:
            break
        spans = lengths[:1] if kind == "constant" else lengths
        done = step[thin] - offset
        shape = _factors(kind, done, warmups[:, None, None], spans[None, :, None])
        level = (shape * rate[thin]).sum(-1) / np.maximum((shape**2).sum(-1), 1e-300)
        misfit = np.abs(rate[thin] - level[..., None] * shape).max(-1)
        misfit = np.divide(misfit, level, out=np.full_like(misfit, np.inf), where=level > 0)
        # Where no row lies within the warm-up its length is open: the shortest is assumed.
        i, j = np.argwhere(misfit <= misfit.min() + 1e-6)[0]
        error = float(misfit[i, j])
        # A plainer schedule keeps the place unless a richer one fits clearly better.
        if best is None or error < best[0] - CLEARLY:
            best = (error, kind, int(warmups[i]), int(spans[j]), float(level[i, j]))
    if best is None or best[0] > TOLERANCE:
        return Schedule(peak, None, None, None, False)
    error, name, warmup, length, level_found = best
    told = planned_steps is None and name != "constant" and error <= SHARP
    return Schedule(
        # Twelve digits: the fit adds rounding noise, and configs are read by people.
        float(f"{max(peak, level_found):.12g}"),
        cast(Literal["constant", "linear", "cosine"], name),
        warmup,
        length if told else None,
        False,
    )


def _spread(first: int, times: int, count: int) -> IntArray:
    """Lengths from the first on, evenly spread by their ratio."""
    return np.geomspace(first, times * first, count).astype(np.int64)


def _factors(kind: str, done: FloatArray, warmup: FloatArray, length: FloatArray) -> FloatArray:
    """Rate over peak after ``done`` scheduler steps; arguments broadcast."""
    warm = np.clip(done / np.maximum(warmup, 1), 0.0, 1.0)
    left = np.clip((length - done) / np.maximum(length - warmup, 1), 0.0, 1.0)
    decay = {
        "constant": np.ones_like(left),
        "linear": left,
        "cosine": 0.5 * (1 - np.cos(np.pi * left)),
    }[kind]
    return np.asarray(np.where(done < warmup, warm, decay))
