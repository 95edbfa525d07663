"""Do pilots on a smaller model pay: what their best rate loses on the larger, and at which price.

    python case_studies/size_transfer/purse.py [--out purse.json]

From the results of `run.py` alone. A rate is carried over as it is, or divided by the square root
of how many times larger the model is; the advisor's answers are those of `run.py`. They stand
beside the best rate of other tasks at the target's own size, launched without a pilot.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import numpy as np  # noqa: E402
from manifest import manifest  # noqa: E402

RESULTS = ("size_transfer.json", "held_out.json")
FACTORS = (3.5, 30.0)
"""Of the target's size over that of the pilots."""

EXPONENT = -0.5
"""Of the rate with size, as `run.py` measured it."""

RATES, SHARE_OF_STEPS = 5, 0.5
"""Pilots on the smaller model, and their length as a part of the run's."""

BOOTSTRAPS = 2000


class Finals:
    """Final reward by task, size and learning rate."""

    def __init__(self, runs: list[dict[str, Any]]) -> None:
        self.parameters = {run["size"]: run["parameters"] for run in runs}
        self.sizes = sorted(self.parameters, key=lambda size: self.parameters[size])
        self.rates = sorted({run["learning_rate"] for run in runs})
        self.tasks = sorted({run["task"] for run in runs})
        self.of: dict[tuple[str, str], Any] = {}
        for task, size in itertools.product(self.tasks, self.sizes):
            own = [run for run in runs if (run["task"], run["size"]) == (task, size)]
            finals = [[r["final"] for r in own if r["learning_rate"] == x] for x in self.rates]
            self.of[task, size] = np.array([np.mean(one) for one in finals])

    def regret(self, task: str, size: str, rate: float) -> float:
        """Of a rate: the nearest that was trained."""
        at = int(np.argmin(np.abs(np.log(np.array(self.rates) / rate))))
        return float(self.of[task, size].max() - self.of[task, size][at])

    def best(self, tasks: tuple[str, ...], size: str) -> float:
        """Rate that is best for some tasks at a size."""
        return self.rates[int(np.argmax(np.mean([self.of[t, size] for t in tasks], axis=0)))]


def interval(by_task: dict[str, list[float]]) -> dict[str, Any]:
    """Mean, and a 95 % interval that resamples tasks."""
    parts = [np.array(one) for one in by_task.values()]
    rows = np.random.default_rng(0).integers(0, len(parts), (BOOTSTRAPS, len(parts)))
    means = [np.concatenate([parts[at] for at in row]).mean() for row in rows]
    low, high = np.quantile(means, [0.025, 0.975])
    mean = float(np.concatenate(parts).mean())
    return {"mean": round(mean, 3), "low": round(float(low), 3), "high": round(float(high), 3)}


def carried(finals: Finals, small: str, large: str) -> dict[str, dict[str, list[float]]]:
    """Regret by method and task on a larger model."""
    factor = finals.parameters[large] / finals.parameters[small]
    found: dict[str, dict[str, list[float]]] = {}
    for task in finals.tasks:
        rate = finals.best((task,), small)
        rules = {
            "the small model's best rate": [rate],
            "divided by the root of the factor": [rate * factor**EXPONENT],
        }
        others = [one for one in finals.tasks if one != task]
        for count in (1, 2, len(others)):
            chosen = itertools.combinations(others, count)
            rules[f"constant of {count} tasks"] = [finals.best(one, large) for one in chosen]
        for name, rates in rules.items():
            regrets = [finals.regret(task, large, rate) for rate in rates]
            found.setdefault(name, {})[task] = regrets
    return found


def main() -> None:
    """Read, sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=HERE / "purse.json")
    given = parser.parse_args()
    read = [json.loads((HERE / name).read_text(encoding="utf-8")) for name in RESULTS]
    finals = Finals([run for one in read for run in one["runs"]])
    advice = [answer for one in read for answer in one["advice"]]
    summed: dict[str, Any] = {"tasks": len(finals.tasks), "pairs": {}}
    for small, large in itertools.combinations(finals.sizes, 2):
        factor = finals.parameters[large] / finals.parameters[small]
        if not FACTORS[0] <= factor <= FACTORS[1]:
            continue
        found = carried(finals, small, large)
        row: dict[str, Any] = {name: interval(one) for name, one in found.items()}
        own = [a for a in advice if (a["pilots"], a["target"]) == (small, large)]
        if own:
            tasks = dict.fromkeys(a["task"] for a in own)
            by_task = {task: [a["regret"] for a in own if a["task"] == task] for task in tasks}
            row["advisor"] = interval(by_task)
            constant = found["constant of 1 tasks"]
            gaps = {t: [float(np.mean(by_task[t]) - np.mean(constant[t]))] for t in tasks}
            row["advisor less constant of 1 tasks"] = interval(gaps)
        row["factor"] = round(factor, 1)
        row["price"] = round(RATES * SHARE_OF_STEPS / factor, 3)
        summed["pairs"][f"{small} to {large}"] = row
    inputs = [HERE / name for name in RESULTS]
    summed["manifest"] = manifest(Path(__file__), seeds=1, checks={}, inputs=inputs)
    given.out.write_text(json.dumps(summed, indent=1) + "\n", encoding="utf-8")
    for name, row in summed["pairs"].items():
        print(name)
        for method, value in row.items():
            print("  ", method, value)


if __name__ == "__main__":
    main()
