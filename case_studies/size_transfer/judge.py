"""Advice beside what came of it: regret and warnings.

Many answers name one configuration, which was trained once: what is counted are configurations.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from measure import means

Row = dict[str, Any]

FAILURE = 0.05
"""Regret from which advice has failed; set before any advice was seen."""


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
