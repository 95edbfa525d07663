"""How a budget of completions is best spent: steps, prompts a step, or answers a prompt.

Runs of the later tasks that took 7,680 completions in all, whatever their number of steps, at two
learning rates: means of their ends over tasks, and the difference to the most usual split.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from compared import difference
from later_tasks import LATER_TASKS
from run_plan import LARGE, STEPS
from run_store import unpack
from trained_runs import Trained, trained

SPENT = STEPS * LARGE
RATES = (1e-5, 3e-5)
Split = tuple[int, int, int]
"""Optimizer steps, prompts a step, completions of a prompt."""

COMPARED_WITH: Split = (60, 16, 8)


def split_of(run: Trained) -> Split | None:
    """How a run spends its completions, if these are the budget and it updates once a batch."""
    own = run.configuration
    is_plain = own == own._replace(minibatches=1, epochs=1, kl=0.0, lora=False)
    if not is_plain or run.steps * own.completions != SPENT or own.rate not in RATES:
        return None
    return run.steps, own.completions // own.group, own.group


def ends_by_split(tasks: tuple[str, ...]) -> dict[Split, dict[float, dict[str, Trained]]]:
    """Runs by split, learning rate and task: the first seed of each."""
    found: dict[Split, dict[float, dict[str, Trained]]] = defaultdict(lambda: defaultdict(dict))
    for task in tasks:
        for run in trained(unpack(task)):
            split = split_of(run)
            if split is not None and run.own["seed"] == 1:
                found[split][run.configuration.rate][task] = run
    return found


def told(runs: dict[str, Trained], others: dict[str, Trained]) -> dict[str, Any]:
    """What the runs of one split and rate came to, beside those of the usual split at that rate."""
    ends = {task: run.final for task, run in runs.items()}
    less = difference(ends, {task: others[task].final for task in ends})
    return {
        "mean": round(float(np.mean(list(ends.values()))), 4),
        "held_out": round(float(np.mean([run.evaluations()[1][-1] for run in runs.values()])), 4),
        "died": sum(run.died_at is not None for run in runs.values()),
        "by_task": {task: round(end, 4) for task, end in ends.items()},
        "difference": less["difference"],
        "standard_error": less["standard_error"],
    }


def result() -> dict[str, Any]:
    """All splits of the budget."""
    found = ends_by_split(tuple(LATER_TASKS))
    return {
        "completions": SPENT,
        "runs": sum(len(runs) for rates in found.values() for runs in rates.values()),
        "tasks": len(LATER_TASKS),
        "splits": {
            f"{steps} steps of {prompts} groups of {group}": {
                f"{rate:g}": told(runs, found[COMPARED_WITH][rate]) for rate, runs in rates.items()
            }
            for (steps, prompts, group), rates in sorted(found.items())
        },
    }
