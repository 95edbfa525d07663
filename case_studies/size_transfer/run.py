"""Pilots on small models only, advice for models 10 and 30 times as large, and what came of it.

python case_studies/size_transfer/run.py [--seeds 2] [--workers 2] [--quick]

Advice is asked for before any of the runs that judge it is made. Training runs are kept in the
study's .cache and not repeated: an interrupted command goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE.parent):
    sys.path.insert(0, str(folder))

import torch  # noqa: E402
import training as loop  # noqa: E402
from ask import advised, exponents  # noqa: E402
from figure import draw  # noqa: E402
from judge import by_warning, checks, counted, judged, table  # noqa: E402
from manifest import manifest  # noqa: E402
from measure import measured  # noqa: E402
from plan import QUICK, Job, Plan, quick_base  # noqa: E402

from advisor.diagnosis import diagnose  # noqa: E402


def train(job: Job) -> loop.Trained:
    """Make one run, or take it from the cache."""
    torch.set_num_threads(1)
    return loop.trained(*job)


def trained(jobs: list[Job], workers: int) -> Iterator[loop.Trained]:
    """Make runs in order, saying how far it is."""
    started, pool = time.perf_counter(), None
    if workers > 1:
        pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    for done, run in enumerate((pool.map if pool else map)(train, jobs), start=1):
        task, size, place, seed, steps = jobs[done - 1]
        spent = time.perf_counter() - started
        say = f"{done}/{len(jobs)} {task} {size} {place} seed {seed}, {steps} steps ({spent:.0f} s)"
        print(say, file=sys.stderr, flush=True)
        yield run
    if pool:
        pool.shutdown()


def described(job: Job, run: loop.Trained) -> dict[str, Any]:
    """What the study keeps of a full run."""
    return {
        "task": job[0],
        "size": job[1],
        "parameters": run.row["params"],
        "learning_rate": job[2][0],
        "seed": job[3],
        "base": run.row["base_acc"],
        "final": run.final,
        "collapse_step": diagnose(loop.as_runs([run])[0]).collapse_step,
        "seconds": run.seconds,
        "reward": run.row["reward"],
    }


def study(plan: Plan, workers: int) -> dict[str, Any]:
    """Pilots, then advice, then the runs that judge it."""
    for task in plan.tasks:
        for size in plan.sizes:
            print(f"base of {task} {size}", file=sys.stderr, flush=True)
            loop.pretrain(loop.TASKS[task], size)
    asked = [
        (task, sizes, draw)
        for sizes in plan.pilot_sets
        for task in plan.tasks
        for draw in range(1, plan.draws + 1)
    ]
    jobs = list(dict.fromkeys(job for one in asked for job in plan.pilot_jobs(*one)))
    pilots = dict(zip(jobs, trained(jobs, workers), strict=True))
    started, advice = time.perf_counter(), []
    for one in asked:
        advice += advised(plan, *one, [pilots[job] for job in plan.pilot_jobs(*one)])
        spent = time.perf_counter() - started
        print(f"advice {one} ({spent:.0f} s)", file=sys.stderr, flush=True)
    pooled = {}
    for sizes in plan.pilot_sets:
        # One draw: a fit of all 72 pilots takes many minutes.
        own = [job for task in plan.tasks for job in plan.pilot_jobs(task, sizes, 1)]
        posterior = loop.fitted(loop.as_runs([pilots[job] for job in own]), 0)
        pooled["+".join(sizes)] = exponents(posterior) | {"pilots": len(own)}
        spent = time.perf_counter() - started
        print(f"all tasks {sizes} ({spent:.0f} s)", file=sys.stderr, flush=True)
    spent = time.perf_counter() - started
    jobs = plan.full_jobs()
    full = list(trained(jobs, workers))
    again = plan.repeated(full)
    full += trained(again, workers)
    runs = [described(*both) for both in zip(jobs + again, full, strict=True)]
    own = measured(runs)
    for run in runs:
        del run["reward"]
    told = [judged(one, runs) for one in advice]
    return {
        "runs": runs,
        "advice": told,
        "by_pilots_and_target": table(told),
        "by_warning": by_warning(told),
        "counted": counted(told),
        "exponents": {
            "learned_by_task": [
                {name: one[name] for name in ("task", "pilots", "draw", "curvature_exponent")}
                for one in told
                if one["target"] == plan.targets[0]
            ],
            "learned_on_all_tasks": pooled,
            "measured_on_full_runs": own,
        },
        "advice_seconds": round(spent),
        "core_seconds_of_training": round(
            sum(run["seconds"] for run in runs) + sum(run.seconds for run in pilots.values())
        ),
    }


def main() -> None:
    """Run all, write and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=Plan.tasks, choices=list(loop.TASKS))
    parser.add_argument("--seeds", type=int, default=2, help="of the best rates of a target")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--quick", action="store_true", help="one task, tiny runs, no cache")
    parser.add_argument("--out", type=Path, default=HERE / "size_transfer.json")
    asked = parser.parse_args()
    plan, workers = replace(Plan(), tasks=tuple(asked.tasks), seeds=asked.seeds), asked.workers
    with tempfile.TemporaryDirectory() as folder:
        if asked.quick:
            plan, workers = QUICK, 1
            loop.CACHE = Path(folder)
            loop.pretrain = quick_base
        found = study(plan, workers)
    found["manifest"] = manifest(Path(__file__), seeds=plan.seeds, checks=checks(found))
    asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    draw(found, asked.out.with_suffix(".svg"))
    print(json.dumps({"table": found["by_pilots_and_target"], **found["manifest"]["checks"]}))


if __name__ == "__main__":
    main()
