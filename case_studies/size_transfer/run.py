"""Pilots on small models only, advice for models 10 and 30 times as large, and what came of it.

python case_studies/size_transfer/run.py [--jobs 2] [--quick]

Advice is asked for before any of the runs that judge it is made. Training runs are kept in the
study's .cache and not repeated: an interrupted command goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "tiny_transformer")]

import table as trainer  # noqa: E402
from ask import advised, as_runs, exponents, fitted  # noqa: E402
from engine_flags import add_engine_flags, on_engine  # noqa: E402
from figure import draw  # noqa: E402
from judge import counted, judged, measured, table  # noqa: E402
from manifest import write_result  # noqa: E402
from plan import QUICK, Plan, Run, quick_base  # noqa: E402

from advisor.common import EngineSettings  # noqa: E402
from advisor.diagnosis import diagnose  # noqa: E402


def described(run: Run, row: dict[str, Any]) -> dict[str, Any]:
    """What the study keeps of a full run."""
    return {
        "task": run.task,
        "size": run.size,
        "parameters": row["params"],
        "learning_rate": run.config.learning_rate,
        "seed": run.config.seed,
        "base": row["base_acc"],
        "final": row["final_eval"],
        "collapse_step": diagnose(as_runs([row])[0]).collapse_step,
        "seconds": row["seconds"],
        "reward": row["reward"],
    }


def study(plan: Plan, where: EngineSettings) -> dict[str, Any]:
    """Pilots, then advice, then the runs that judge it."""
    for task in plan.tasks:
        for size in plan.sizes:
            trainer.pretrain(trainer.TASKS[task], size)
    asked = [
        (task, sizes, draw)
        for sizes in plan.pilot_sets
        for task in plan.tasks
        for draw in range(1, plan.draws + 1)
    ]
    runs = list(dict.fromkeys(run for one in asked for run in plan.pilots_of(*one)))
    pilots = dict(zip(runs, trainer.trained_rows(runs, where), strict=True))
    advice = []
    for one in asked:
        advice += advised(plan, *one, [pilots[run] for run in plan.pilots_of(*one)])
    pooled = {}
    for sizes in plan.pilot_sets:
        # One draw: a fit of all 72 pilots takes many minutes.
        own = [run for task in plan.tasks for run in plan.pilots_of(task, sizes, 1)]
        posterior = fitted([pilots[run] for run in own], 0)
        pooled["+".join(sizes)] = exponents(posterior) | {"pilots": len(own)}
    runs = plan.full_runs()
    rows = trainer.trained_rows(runs, where)
    again = plan.repeated(rows)
    rows += trainer.trained_rows(again, where)
    full = [described(*both) for both in zip(runs + again, rows, strict=True)]
    shown = measured(full)
    for run in full:
        del run["reward"]
    told = [judged(one, full) for one in advice]
    return {
        "runs": full,
        "advice": told,
        "by_pilots_and_target": table(told),
        "counted": counted(told),
        "exponents": {"learned_on_all_tasks": pooled, "measured_on_full_runs": shown},
    }


def main() -> None:
    """Run all, write and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=Plan.tasks, choices=list(trainer.TASKS))
    parser.add_argument("--quick", action="store_true", help="one task, tiny runs, no cache")
    parser.add_argument("--out", type=Path, default=HERE / "size_transfer.json")
    add_engine_flags(parser)
    asked = parser.parse_args()
    plan = replace(Plan(), tasks=tuple(asked.tasks))
    where: EngineSettings = {**on_engine(asked), "keep": asked.keep or HERE / ".cache"}
    if asked.quick:
        plan, where = QUICK, {"jobs": 1}
        trainer.pretrain = quick_base
    found = study(plan, where)
    write_result(asked.out, found, Path(__file__), [])
    draw(found, asked.out.with_suffix(".svg"))
    print(json.dumps({"table": found["by_pilots_and_target"], **found["counted"]}))


if __name__ == "__main__":
    main()
