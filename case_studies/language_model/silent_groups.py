"""What the first batch tells of other group sizes: groups that score all alike and teach nothing.

The first rows of the table's runs at a group size of 8 tell how pass rates spread over prompts; the
share of silent groups that follows for other sizes stands beside what the first rows of runs at
those sizes show, and beside what one common pass rate would make.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from prompt_tasks import TASKS
from run_store import unpack
from trained_runs import Trained, trained

from advisor.theory import PromptDifficulty, silent_group_share

ROWS = 3
MOVED = 1e-4
"""Learning rate times steps up to which nothing has changed that could be seen."""

MEASURED_AT = 8
LEAST_GROUPS = 12


def first_batches(run: Trained) -> list[tuple[float, float, float]]:
    """Pass rate, share of silent groups and groups of each of the first rows."""
    own = run.configuration
    groups = own.completions * own.minibatches / own.group
    rows = [row for row in run.state["log_history"] if "frac_reward_zero_std" in row]
    return [
        (row["reward"], row["frac_reward_zero_std"], groups)
        for row in rows[:ROWS]
        if own.rate * row["step"] <= MOVED
    ]


def of_task(task: str) -> dict[str, Any]:
    """Seen and expected shares by group size."""
    rows = defaultdict(list)
    for run in trained(unpack(task)):
        rows[run.configuration.group] += first_batches(run)
    of_size = {group: np.array(seen) for group, seen in sorted(rows.items()) if seen}
    means = {
        group: np.average(seen[:, :2], axis=0, weights=seen[:, 2])
        for group, seen in of_size.items()
    }
    passed, share = map(float, means[MEASURED_AT])
    try:
        prompts = PromptDifficulty.of_silent_groups(passed, share, MEASURED_AT)
    except ValueError as refused:
        return {"pass_rate": passed, "share": share, "refused": str(refused)}
    return {
        "pass_rate": round(passed, 4),
        "share": round(share, 4),
        "groups": int(of_size[MEASURED_AT][:, 2].sum()),
        "others": {
            str(group): {
                "groups": int(seen[:, 2].sum()),
                "seen": round(float(means[group][1]), 4),
                "expected": round(silent_group_share(group, prompts), 4),
                "common_pass_rate": round(silent_group_share(group, passed), 4),
            }
            for group, seen in of_size.items()
            if group != MEASURED_AT and seen[:, 2].sum() >= LEAST_GROUPS
        },
    }


def summary(tasks: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Mean error over tasks and group sizes, each as heavy as its groups are many."""
    cases = [case for one in tasks.values() for case in one.get("others", {}).values()]
    weights = [case["groups"] for case in cases]
    errors = {
        name: round(
            float(np.average([abs(case[name] - case["seen"]) for case in cases], weights=weights)),
            4,
        )
        for name in ("expected", "common_pass_rate")
    }
    told = [one for one in tasks.values() if "others" in one]
    return {"tasks": len(told), "cases": len(cases), "groups": sum(weights), "error": errors}


def result() -> dict[str, Any]:
    """Each task, and the error over all."""
    tasks = {task: of_task(task) for task in TASKS}
    return {"summary": summary(tasks), "tasks": tasks}
