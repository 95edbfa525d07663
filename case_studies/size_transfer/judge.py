"""Advice beside what came of it: regret, warnings, and the checks."""

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
        "regret_at_random": round(top - float(np.mean(list(final.values()))), 4),
        "warned": advice.get("says_outside", False)
        or advice.get("says_not_piloted", False)
        or advice["kind"] != "recommendation",
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
    """Regret and warnings by pilots and target."""
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
            "p_stable": _mean(own, "p_stable"),
            "collapsed": sum(one["collapsed"] for one in own),
            "regret_of_best_pilot": _mean(own, "regret_of_best_pilot"),
            "regret_at_random": _mean(own, "regret_at_random"),
            "inside_80": sum(one["inside"] for one in own),
            "failed": sum(one["failed"] for one in own),
            "says_outside": sum(one["says_outside"] for one in own),
            "says_not_piloted": sum(one["says_not_piloted"] for one in own),
            "no_recommendation": sum(one["kind"] != "recommendation" for one in own),
            "failed_and_says_outside": sum(one["failed"] and one["says_outside"] for one in own),
            "failed_and_silent": sum(one["failed"] and not one["warned"] for one in own),
        }
        for (pilots, target), own in cells.items()
    ]


def by_warning(advice: Sequence[Row]) -> list[Row]:
    """Regret of the answers that called themselves outside the evidence, and of the others."""
    out = []
    for says in (True, False):
        own = [one for one in advice if "regret" in one and one["says_outside"] == says]
        out.append(
            {
                "says_outside": says,
                "n": len(own),
                "failed": sum(one["failed"] for one in own),
                "collapsed": sum(one["collapsed"] for one in own),
                "missed_by_the_interval": sum(not one["inside"] for one in own),
                "regret_mean": _mean(own, "regret"),
                "regret_worst": max((one["regret"] for one in own), default=None),
            }
        )
    return out


def checks(found: Row) -> dict[str, bool]:
    """What the study hopes for, each of which can fail."""
    told = [one for one in found["advice"] if "regret" in one]
    far = [one for one in told if one["factor"] >= 10]
    failed = [one for one in told if one["failed"]]
    learned = found["exponents"]["learned_on_all_tasks"]
    truth = found["exponents"]["measured_on_full_runs"]["speed"]["pooled"]
    held = [
        own["curvature_exponent"][0] <= truth[1] <= own["curvature_exponent"][2]
        for pilots, own in learned.items()
        if truth and own["curvature_exponent"] and "+" in pilots
    ]
    return {
        "every request was answered": len(told) == len(found["advice"]),
        "every failed advice had said that the model was not piloted, or worse": all(
            one["warned"] for one in failed
        ),
        "every failed advice had called itself outside the evidence": all(
            one["says_outside"] for one in failed
        ),
        "all advice for ten times the largest pilot and more says outside the evidence": all(
            one["says_outside"] for one in far
        ),
        "mean regret is below that of the best pilot's rate": _mean(told, "regret")
        < _mean(told, "regret_of_best_pilot"),
        "advice failed nowhere": not failed,
        "the 80 % interval of every exponent learned from two sizes holds the measured one": bool(
            held
        )
        and all(held),
        "no more runs collapsed than P(stable) allowed, five in a hundred aside": _mean(
            told, "collapsed"
        )
        <= 1.05 - _mean(told, "p_stable"),
        "80 % intervals of the final reward hold at least 70 %": _mean(told, "inside") >= 0.7,
    }


def _mean(rows: Sequence[Row], name: str) -> float:
    return round(float(np.mean([row[name] for row in rows])), 4) if rows else math.nan
