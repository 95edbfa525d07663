"""Which learning rate today's code names from four pilots of a fifth of the steps, by task.

    python case_studies/language_model/named.py [--kind full lora large] [--jobs 2]

Runs of the task are left out of the runs elsewhere that P(stable) counts. Presets, and the shape of
the prior of the best rate, were learned with the first six tasks and the ladders in sight.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from cell_plan import CONSTANT  # noqa: E402
from compared import difference, without_task  # noqa: E402
from engine_flags import add_engine_flags, on_engine, results  # noqa: E402
from later_tasks import LATER_TASKS  # noqa: E402
from manifest import write_result  # noqa: E402
from run_store import TABLES, unpack  # noqa: E402
from said import KINDS, Kind, _ladder, _settings, advice_among, pilots_of  # noqa: E402
from trained_runs import model_of, trained  # noqa: E402

import advisor  # noqa: E402
from advisor.common import Item  # noqa: E402
from advisor.forecast import elsewhere  # noqa: E402

PILOTS = "four of 12"
TABLE = elsewhere.shipped_outcomes()


def leave_out(task: str) -> None:
    """From here on P(stable) counts no run of a task."""
    others = without_task(TABLE, task)
    elsewhere._of_others.cache_clear()
    elsewhere.shipped_outcomes = lambda: others


def asked(item: tuple[str, str]) -> dict[str, Any]:
    """What is named for one task, what it came to, and what other rules would have."""
    name, task = item
    warnings.simplefilter("ignore")
    kind: Kind = KINDS[name]
    runs = [one for one in trained(unpack(task)) if kind.holds(one)]
    ladder, (rates, steps) = _ladder(runs, kind), kind.pilots[PILOTS]
    if any(rate not in ladder for rate in rates):
        return {}
    with tempfile.TemporaryDirectory() as folder:
        pilots = pilots_of([ladder[rate] for rate in rates], steps, task, Path(folder))
    posterior = advisor.fit(pilots, progress=False)
    leave_out(task)
    own, model = posterior.meta.runs[0], model_of(runs[0].arguments)
    offered = tuple(_settings(run, own.settings) for run in ladder.values())
    advice, rate = advice_among(offered, posterior, model, kind.steps)
    ends: dict[float, list[float]] = {}
    for run in runs:
        if kind.on_ladder(run):
            ends.setdefault(run.configuration.rate, []).append(run.final)
    came = {rate: float(np.mean(each)) for rate, each in sorted(ends.items())}
    leader = max(pilots, key=lambda one: float(one.reward[-3:].mean()))
    named = {
        "advisor": rate,
        "known rate": min(came, key=lambda one: abs(np.log(one / CONSTANT[kind.lora]))),
        "best pilot": leader.hyperparameters.learning_rate,
    }
    return {
        "kind": name,
        "task": task,
        "named": named,
        "p_stable": round(advice.stability.probability, 4),
        "reward": [round(of, 4) for of in (advice.reward.low, advice.reward.high)],
        "came": {f"{one:g}": round(end, 4) for one, end in came.items()},
        "regret": {method: max(came.values()) - came[one] for method, one in named.items()},
        "died": [run.name for run in runs if run.died_at and run.configuration.rate == rate],
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Regret by kind, and of tasks that were made later, less that of the other rules."""
    told: dict[str, Any] = {}
    for kind in dict.fromkeys(row["kind"] for row in rows):
        own = [row for row in rows if row["kind"] == kind]
        for name, part in (
            (kind, own),
            (f"{kind}, later tasks", [row for row in own if row["task"] in LATER_TASKS]),
        ):
            mine, *others = (
                {row["task"]: row["regret"][method] for row in part}
                for method in ("advisor", "known rate", "best pilot")
            )
            told[name] = {
                rule: difference(mine, lost)
                for rule, lost in zip(("known rate", "best pilot"), others, strict=True)
            }
    return told


def main() -> None:
    """Ask, score, keep."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--kind", nargs="+", choices=("full", "lora", "large"), default=["full"])
    parser.add_argument("--out", type=Path, default=HERE / "named.json")
    add_engine_flags(parser)
    given = parser.parse_args()
    tasks = sorted(path.name.split(".")[0] for path in TABLES.glob("*.jsonl.gz"))
    items = [
        Item(f"{kind} {task}", (kind, task), (kind, task)) for kind in given.kind for task in tasks
    ]
    rows = [row for row in results(asked, items, "Asking", on_engine(given)) if row]
    document = {"summary": summary(rows), "rows": rows}
    write_result(given.out, document, Path(__file__), sorted(TABLES.glob("*.jsonl.gz")))
    print(document["summary"])


if __name__ == "__main__":
    main()
