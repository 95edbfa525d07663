"""Whether the highest rate that works falls with the refresh interval, as the paper's limit does.

The limit of docs/theory (T1) is on the product of rate and interval: it falls with K to the power
1. Of full fine-tuning of SmolLM2 on the first six tasks, where intervals of 1 to 16 were drawn by
seed, runs at 1e-5 and above. One failed that gained less than half of what the best run of its task
gained; rewards are held out, since these are evaluated every ten steps whatever the interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from prompt_tasks import TASKS
from run_store import unpack
from scipy.optimize import minimize
from trained_runs import Trained, trained

LEAST_RATE, GAINED = 1e-5, (0.5, 0.33, 0.67)
"""Share of the best gain below which a run failed; with others the power stands beside it."""

RIDGE = 0.01
"""Of the slopes: six tasks can be told apart without an error."""

DRAWS = 300


class Row(NamedTuple):
    """One run: decimal logs of rate, refresh interval, completions and group, and its outcome."""

    task: str
    rate: float
    interval: float
    completions: float
    group: float
    failed: bool


def gain(run: Trained) -> float:
    """Held-out reward at the end less that before the first step."""
    reward = run.evaluations()[1]
    return float(reward[-2:].mean() - reward[0]) if not run.own["diverged"] else -float(reward[0])


def rows_of(task: str, runs: Sequence[Trained], gained: float) -> list[Row]:
    """Rows of one task; a run failed that gained less than this share of the best."""
    full = [one for one in runs if not one.configuration.lora]
    best = max(map(gain, full))
    rows = []
    for one in full:
        own = one.configuration
        if own.rate >= LEAST_RATE:
            scales = own.rate, own.minibatches * own.epochs, own.completions, own.group
            rows.append(Row(task, *map(float, np.log10(scales)), gain(one) < gained * best))
    return rows


def fitted(columns: np.ndarray, failed: np.ndarray) -> np.ndarray:
    """Intercept and slopes of a logistic regression."""

    def loss(beta: np.ndarray) -> float:
        wrong = np.logaddexp(0.0, np.where(failed, -1.0, 1.0) * (beta[0] + columns @ beta[1:]))
        return float(wrong.sum() + RIDGE * (beta[1:] ** 2).sum())

    return np.asarray(minimize(loss, np.zeros(columns.shape[1] + 1), method="BFGS").x)


def power(rows: Sequence[Row]) -> float:
    """Power of the interval with which the limit of the rate falls: ratio of both slopes.

    Each task has a level of its own: tasks differ in how hard they are and in what was drawn.
    """
    of_task = np.array([[row.task == task for task in TASKS] for row in rows], float)
    columns = np.hstack([np.array([row[1:5] for row in rows], float), of_task])
    slopes = fitted(columns, np.array([row.failed for row in rows]))
    return float(slopes[2] / slopes[1])


def drawn_powers(rows: Sequence[Row]) -> dict[str, list[float]]:
    """80 % of powers of tasks drawn anew; and of intervals shuffled within tasks, the control."""
    rng = np.random.default_rng(0)
    of_task = [[row for row in rows if row.task == task] for task in TASKS]
    found: dict[str, list[float]] = {"tasks drawn anew": [], "intervals shuffled": []}
    for _ in range(DRAWS):
        chosen = rng.integers(len(of_task), size=len(of_task))
        found["tasks drawn anew"].append(power([row for one in chosen for row in of_task[one]]))
        mixed = [
            row._replace(interval=own[place].interval)
            for own in of_task
            for row, place in zip(own, rng.permutation(len(own)), strict=True)
        ]
        found["intervals shuffled"].append(power(mixed))
    return {
        name: np.quantile(own, [0.1, 0.5, 0.9]).round(2).tolist() for name, own in found.items()
    }


def result() -> dict[str, Any]:
    """Power and its intervals."""
    runs = {task: trained(unpack(task)) for task in TASKS}
    by_gain = {
        gained: [row for task in TASKS for row in rows_of(task, runs[task], gained)]
        for gained in GAINED
    }
    rows = by_gain[GAINED[0]]
    return {
        "runs": len(rows),
        "failed": sum(row.failed for row in rows),
        "power": {f"{gained:g}": round(power(own), 2) for gained, own in by_gain.items()},
        "power_80": drawn_powers(rows),
    }
