"""How speed and best learning rate really move with size: our own estimate from full runs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from scipy import stats

Row = dict[str, Any]

SLOW_RATE = 1e-4
"""Learning rate at which speeds are compared: every size rises and none is hot."""

WINDOW, RISEN, INTERVAL = 10, 0.75, 0.8


def means(runs: Sequence[Row], task: str, size: str) -> dict[float, float]:
    """Mean final reward by learning rate."""
    finals: dict[float, list[float]] = defaultdict(list)
    for run in runs:
        if (run["task"], run["size"]) == (task, size):
            finals[run["learning_rate"]].append(run["final"])
    return {rate: float(np.mean(finals[rate])) for rate in sorted(finals)}


def best_rate(finals: dict[float, float]) -> float:
    """Learning rate at the top of a parabola through the best final and its neighbours.

    At the edge of the grid it is that edge, so a slope over such points is too flat.
    """
    rates = sorted(finals)
    at = max(range(len(rates)), key=lambda place: finals[rates[place]])
    if at in (0, len(rates) - 1):
        return rates[at]
    x = np.log(rates[at - 1 : at + 2])
    bend, tilt, _ = np.polyfit(x - x[1], [finals[rate] for rate in rates[at - 1 : at + 2]], 2)
    return rates[at] if bend == 0 else math.exp(x[1] - tilt / (2 * bend))


def speed(rewards: Sequence[float], start: float) -> float | None:
    """Mean rate per step at which what is missing to 1 shrinks, until 0.75 is reached.

    None where the reward did not rise.
    """
    smooth = np.convolve(rewards, np.full(WINDOW, 1 / WINDOW), mode="valid")
    risen = np.flatnonzero(smooth >= RISEN)
    last = int(risen[0]) if len(risen) else len(smooth) - 1
    if smooth[last] - start < 1e-6:
        return None
    return math.log((1 - start) / (1 - smooth[last])) / (last + (WINDOW - 1) / 2)


def slope(points: Sequence[tuple[Hashable, float, float]]) -> list[float] | None:
    """Common slope of y on x within groups, between the ends of its 80 % interval.

    Parameters
    ----------
    points : sequence of (group, x, y)

    Returns
    -------
    list of float or None
        Lower end, estimate, upper end; None where the points leave no freedom.
    """
    groups: dict[Hashable, list[tuple[float, float]]] = defaultdict(list)
    for group, x, y in points:
        groups[group].append((x, y))
    centred = np.concatenate([np.array(own) - np.mean(own, axis=0) for own in groups.values()])
    freedom = len(centred) - len(groups) - 1
    x, y = centred.T
    if freedom < 1 or not x @ x:
        return None
    estimate = x @ y / (x @ x)
    error = math.sqrt(((y - estimate * x) ** 2).sum() / freedom / (x @ x))
    reach = error * stats.t.ppf(0.5 + INTERVAL / 2, freedom)
    return [round(float(value), 3) for value in (estimate - reach, estimate, estimate + reach)]


def measured(runs: Sequence[Row]) -> dict[str, Any]:
    """Exponents of size that the full runs show, by task and pooled.

    ``speed`` is what the curvature exponent claims to be; ``best_rate`` is what a user wants of it.
    """
    speeds, best, places = [], [], []
    for run in runs:
        found = speed(run["reward"], run["base"])
        if run["learning_rate"] == SLOW_RATE and found is not None:
            speeds.append((run["task"], math.log(run["parameters"]), math.log(found)))
    sizes = {(run["task"], run["size"]): run["parameters"] for run in runs}
    for (task, size), parameters in sizes.items():
        rate = best_rate(means(runs, task, size))
        best.append((task, math.log(parameters), math.log(rate)))
        places.append({"task": task, "size": size, "best_rate": float(f"{rate:.3g}")})
    tasks = dict.fromkeys(run["task"] for run in runs)
    return {
        name: {
            "pooled": slope(points),
            **{task: slope([point for point in points if point[0] == task]) for task in tasks},
        }
        for name, points in (("speed", speeds), ("best_rate", best))
    } | {"best_rates": places}
