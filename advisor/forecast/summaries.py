"""Draws as the numbers that are reported."""

from __future__ import annotations

import numpy as np

from advisor.forecast.interval import Band, Interval
from advisor.forecast.watched_run import RunForecaster
from advisor.model import equations as eq
from advisor.model.posterior import INTERVAL
from advisor.run.pilot_run import PilotRun
from advisor.theory.arrays import FloatArray

ENDS = ((1 - INTERVAL) / 2, (1 + INTERVAL) / 2)


def latest_mean(run: PilotRun, rows: int) -> float:
    """Mean of the latest finite rewards."""
    return float(run.reward[np.isfinite(run.reward)][-rows:].mean())


def lost_rows(run: PilotRun) -> int:
    """Latest rows in a row without a finite reward; 0 where gaps as long are the log's habit."""
    finite = np.flatnonzero(np.isfinite(run.reward))
    usual = int(np.diff(finite).max()) - 1 if finite.size > 1 else 0
    lost = run.reward.size - 1 - int(finite[-1])
    return lost if lost > usual else 0


def interval(values: FloatArray) -> Interval:
    """Mean and central interval of draws."""
    low, high = np.quantile(values, ENDS)
    return Interval(mean=float(values.mean()), low=float(low), high=float(high))


def band(steps: FloatArray, reward: FloatArray) -> Band:
    """Mean and central interval at each step, from paths of shape (draws, steps)."""
    low, high = np.quantile(reward, ENDS, axis=0)
    return Band(
        step=tuple(int(step) for step in steps),
        mean=tuple(reward.mean(axis=0).tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
    )


def held_out(forecaster: RunForecaster, level: FloatArray) -> Interval | None:
    """Held-out reward that belongs to a train reward, or None where no pilot was evaluated.

    Parameters
    ----------
    forecaster : RunForecaster
    level : ndarray of shape (draws,)
        Train reward, as a share of floor to ceiling.
    """
    if not forecaster.is_evaluated:
        return None
    meta, target = forecaster.posterior.meta, forecaster.target
    group = meta.groups.index((target.task, target.model))
    start = eq.sigmoid(forecaster.draw("eval_start_logit")[:, group])
    gain = np.exp(forecaster.draw("log_eval_gain")[:, group])
    tested = eq.held_out(level, forecaster.group.start, start, gain)
    return interval(meta.eval_floor + (meta.eval_ceiling - meta.eval_floor) * tested)
