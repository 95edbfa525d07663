"""What the first batch tells of other group sizes: groups that score all alike and teach nothing.

    python case_studies/language_model/silent_groups.py [--out silent_groups.json]

The first rows of the table's runs at a group size of 8 tell how pass rates spread over prompts; the
share of silent groups that follows for other sizes stands beside what the first rows of runs at
those sizes show, and beside what one common pass rate would make.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from manifest import write_result  # noqa: E402
from prompt_tasks import TASKS  # noqa: E402
from run_store import TABLES, unpack  # noqa: E402
from trained_runs import Trained, trained  # noqa: E402

from advisor.theory import PromptDifficulty, silent_group_share  # noqa: E402

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


def main() -> None:
    """Measure, and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=HERE / "silent_groups.json")
    out = parser.parse_args().out
    tasks = {task: of_task(task) for task in TASKS}
    document = {"summary": summary(tasks), "tasks": tasks}
    write_result(out, document, Path(__file__), sorted(TABLES.glob("*.jsonl.gz")))
    print(json.dumps(document["summary"], indent=1))


if __name__ == "__main__":
    main()
