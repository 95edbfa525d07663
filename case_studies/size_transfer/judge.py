"""Advice beside what came of it: regret and warnings, and what full runs show of size.

Many answers name one configuration, which was trained once: what is counted are configurations.
"""

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
FAILURE = 0.05
"""Regret from which advice has failed; set before any advice was seen."""


def means(runs: Sequence[Row], task: str, size: str) -> dict[float, float]:
    """Mean final reward by learning rate."""
    finals: dict[float, list[float]] = defaultdict(list)
    for run in runs:
        if (run["task"], run["size"]) == (task, size):
            finals[run["learning_rate"]].append(run["final"])
    return {rate: float(np.mean(finals[rate])) for rate in sorted(finals)}


def judged(advice: Row, runs: Sequence[Row]) -> Row:
    """Set a piece of advice beside what came of it."""
    final = means(runs, advice["task"], advice["target"])
    top = max(final.values())
    near = min(final, key=lambda rate: abs(math.log(rate / advice["best_pilot_rate"])))
    out = advice | {
        "regret_of_best_pilot": round(top - final[near], 4),
    }
    if advice.get("learning_rate") is None:
        return out
    rate, said = advice["learning_rate"], advice["reward"]
    got = final[rate]
    fallen = [
        run["collapse_step"] is not None
        for run in runs
        if (run["task"], run["size"], run["learning_rate"])
        == (advice["task"], advice["target"], rate)
    ]
    return out | {
        "collapsed": any(fallen),
        "final": round(got, 4),
        "regret": round(top - got, 4),
        "failed": top - got > FAILURE or any(fallen),
        "inside": said["lower"] <= got <= said["upper"],
    }


def table(advice: Sequence[Row]) -> list[Row]:
    """Regret by pilots and target."""
    cells: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for one in advice:
        if "regret" in one:
            cells[one["pilots"], one["target"]].append(one)
    return [
        {
            "pilots": pilots,
            "target": target,
            "factor": own[0]["factor"],
            "n": len(own),
            "regret_mean": _mean(own, "regret"),
            "regret_worst": max(one["regret"] for one in own),
            "collapsed": sum(one["collapsed"] for one in own),
            "regret_of_best_pilot": _mean(own, "regret_of_best_pilot"),
            "inside_80": sum(one["inside"] for one in own),
            "failed": sum(one["failed"] for one in own),
        }
        for (pilots, target), own in cells.items()
    ]


def by_run(advice: Sequence[Row]) -> list[list[Row]]:
    """Answers by the configuration of a target that they name: what was trained once, counts once.

    Answers without a configuration are left out.
    """
    own: dict[tuple[str, str, float], list[Row]] = defaultdict(list)
    for one in advice:
        if "regret" in one:
            own[one["task"], one["target"], one["learning_rate"]].append(one)
    return list(own.values())


def counted(advice: Sequence[Row]) -> Row:
    """Answers, configurations that were trained, worlds (a task and a target), and failures.

    ``outside_runs`` were named outside the evidence; ``failed_outside_runs`` of these failed.
    """
    told = [one for one in advice if "regret" in one]
    runs = by_run(told)
    outside = [rows for rows in runs if any(one["says_outside"] for one in rows)]
    return {
        "answers": len(told),
        "runs": len(runs),
        "worlds": len({(one["task"], one["target"]) for one in told}),
        "collapsed_runs": sum(rows[0]["collapsed"] for rows in runs),
        "failed_runs": sum(rows[0]["failed"] for rows in runs),
        "outside_runs": len(outside),
        "failed_outside_runs": sum(rows[0]["failed"] for rows in outside),
    }


def _mean(rows: Sequence[Row], name: str) -> float:
    return round(float(np.mean([row[name] for row in rows])), 4) if rows else math.nan


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
    """Slope of y on x common to groups of points (group, x, y): lower end, estimate, upper end.

    The interval is one of 80 %; None where the points leave no freedom.
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
