"""Advice beside what came of it: regret, warnings, and the checks.

    python case_studies/size_transfer/judge.py RESULT.json    # judge stored answers again

Many answers name one configuration, which was trained once: what is counted are configurations.
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measure import means
from scipy.stats import hypergeom

Row = dict[str, Any]

FAILURE = 0.05
"""Regret from which advice has failed; set before any advice was seen."""

LEVEL = 0.05
"""Chance below which a result speaks against what was said."""


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
                "runs": len(by_run(own)),
                "failed": sum(one["failed"] for one in own),
                "failed_runs": sum(rows[0]["failed"] for rows in by_run(own)),
                "collapsed": sum(one["collapsed"] for one in own),
                "missed_by_the_interval": sum(not one["inside"] for one in own),
                "regret_mean": _mean(own, "regret"),
                "regret_worst": max((one["regret"] for one in own), default=None),
            }
        )
    return out


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
    """What stands behind the answers, and how surely the checks of them can fail.

    Returns
    -------
    counted : dict
        Answers, distinct configurations that were trained, and worlds (a task and a target);
        ``chance_of_collapses`` that as many configurations or more collapse if P(stable) is right,
        and ``collapses_that_refute`` it at ``LEVEL``; ``chance_of_warned`` that as many failed
        configurations or more were named outside the evidence if that said nothing of failure.
    """
    told = [one for one in advice if "regret" in one]
    runs = by_run(told)
    fallen = sum(rows[0]["collapsed"] for rows in runs)
    at_least = _at_least([1 - _mean(rows, "p_stable") for rows in runs])
    warned = [any(one["says_outside"] for one in rows) for rows in runs]
    failed = [rows[0]["failed"] for rows in runs]
    both = sum(w and f for w, f in zip(warned, failed, strict=True))
    return {
        "answers": len(told),
        "runs": len(runs),
        "worlds": len({(one["task"], one["target"]) for one in told}),
        "collapsed_runs": fallen,
        "chance_of_collapses": round(at_least[fallen], 4),
        "collapses_that_refute": next(
            (count for count, chance in enumerate(at_least) if chance < LEVEL), None
        ),
        "failed_runs": sum(failed),
        "chance_of_warned": round(
            float(hypergeom.sf(both - 1, len(runs), sum(warned), sum(failed))), 4
        ),
    }


def _at_least(chances: Sequence[float]) -> list[float]:
    """Probability that at least 0, 1, ... of unlike independent events happen."""
    exactly = np.ones(1)
    for chance in chances:
        exactly = np.convolve(exactly, [1 - chance, chance])
    return [float(value) for value in np.cumsum(exactly[::-1])[::-1]]


def checks(found: Row) -> dict[str, bool]:
    """What the study hopes for; each holds or fails by what was trained, not by definition."""
    told = [one for one in found["advice"] if "regret" in one]
    behind = counted(told)
    held = [
        own["curvature_exponent"][0] <= truth[1] <= own["curvature_exponent"][2]
        for pilots, own in found["exponents"]["learned_on_all_tasks"].items()
        if (truth := found["exponents"]["measured_on_full_runs"]["speed"]["pooled"])
        and own["curvature_exponent"]
        and "+" in pilots
    ]
    inside = [_mean(rows, "inside") for rows in by_run(told)]
    return {
        "every request was answered": len(told) == len(found["advice"]),
        "the words 'outside the evidence' tell failures apart": behind["chance_of_warned"] < LEVEL,
        "mean regret is below that of the best pilot's rate": _mean(told, "regret")
        < _mean(told, "regret_of_best_pilot"),
        "advice failed nowhere": behind["failed_runs"] == 0,
        "the 80 % interval of every exponent learned from two sizes holds the measured one": bool(
            held
        )
        and all(held),
        "no more configurations collapsed than P(stable) allows": behind["chance_of_collapses"]
        >= LEVEL,
        "80 % intervals hold at least 70 %, each trained configuration counted once": bool(inside)
        and float(np.mean(inside)) >= 0.7,
    }


def _mean(rows: Sequence[Row], name: str) -> float:
    return round(float(np.mean([row[name] for row in rows])), 4) if rows else math.nan


def judge_again(path: Path) -> None:
    """Judge the answers of a stored result by what was trained, with the checks as they are now."""
    found = json.loads(path.read_text(encoding="utf-8"))
    found["by_pilots_and_target"] = table(found["advice"])
    found["by_warning"] = by_warning(found["advice"])
    found["counted"] = counted(found["advice"])
    found["manifest"]["checks"] = checks(found)
    found["manifest"]["judged_again"] = f"python case_studies/size_transfer/judge.py {path.name}"
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({**found["counted"], **found["manifest"]["checks"]}, indent=1))


if __name__ == "__main__":
    judge_again(Path(sys.argv[1]))
