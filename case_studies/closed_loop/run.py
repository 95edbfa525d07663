"""The closed loop: pilots on a small model, advice, and the full run trained on a larger one.

python case_studies/closed_loop/run.py [--tasks sort mod reverse running] [--seeds 3] [--quick]

Every training run is kept in .cache and not repeated: an interrupted command goes on where it was.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
import torch  # noqa: E402
from drawing import draw  # noqa: E402
from manifest import manifest  # noqa: E402
from methods import OURS, drawn, loop, oracle  # noqa: E402
from training import CUT, LARGE, PILOTS, SMALL, STEPS, TASKS, pretrain, trained  # noqa: E402


def summary(oracles: list[dict[str, Any]], loops: list[dict[str, Any]]) -> dict[str, Any]:
    """Regret, collapses and coverage by method."""
    best = {one["task"]: one["reward"] for one in oracles}
    out: dict[str, Any] = {}
    for method in dict.fromkeys(row["method"] for one in loops for row in one["rows"]):
        own = [
            {**row, "regret": best[one["task"]] - row["final"], "task": one["task"]}
            for one in loops
            for row in one["rows"]
            if row["method"] == method and row["place"] is not None
        ]
        inside = [row["lower"] <= row["final"] <= row["upper"] for row in own if "lower" in row]
        out[method] = {
            "n": len(own),
            "regret_mean": round(float(np.mean([row["regret"] for row in own])), 4),
            "regret_worst": round(float(max(row["regret"] for row in own)), 4),
            "collapses": sum(row["collapsed"] for row in own),
            "search_seconds": round(float(np.mean([row["search_seconds"] for row in own])), 1),
            "run_seconds": round(float(np.mean([row["run_seconds"] for row in own])), 1),
            "by_task": {
                task: round(float(np.mean([r["regret"] for r in own if r["task"] == task])), 4)
                for task in best
            },
            **({"inside_80": [sum(inside), len(inside)]} if inside else {}),
        }
    return out


def share_of_a_run(loops: list[dict[str, Any]]) -> dict[str, float]:
    """Price of the small pilots over that of a full run: seconds measured, and operations."""
    seconds, operations = [], []
    for one in loops:
        own = next(row for row in one["rows"] if row["method"] == OURS and row["place"])
        places, _ = drawn(one["task"], one["seed"])
        small = [trained(one["task"], SMALL, place, 100 + one["seed"], CUT).row for place in places]
        large = trained(one["task"], LARGE, tuple(own["place"]), one["seed"], STEPS).row
        # Parameters times completions: every task has answers of one length.
        asked = CUT * sum(row["G"] * row["params"] for row in small)
        operations.append(asked / (STEPS * large["G"] * large["params"]))
        seconds.append(own["search_seconds"] / own["run_seconds"])
    return {
        "seconds": round(float(np.mean(seconds)), 2),
        "operations": round(float(np.mean(operations)), 2),
    }


def checks(found: dict[str, Any]) -> dict[str, bool]:
    """What the answer claims, and the goals."""
    own = found[OURS]
    peers = [one["regret_mean"] for name, one in found.items() if not name.startswith("advisor")]
    held, runs = own["inside_80"]
    return {
        "mean regret at most .015": own["regret_mean"] <= 0.015,
        "at most half of the best peer's": own["regret_mean"] <= 0.5 * min(peers),
        "80 % interval holds .75 to .85": 0.75 <= held / runs <= 0.85,
    }


def _job(job: tuple[str, Any, bool]) -> dict[str, Any]:
    torch.set_num_threads(1)
    task, seed, quick = job
    return oracle(task, quick) if seed is None else loop(task, seed)


def jobs_done(jobs: list[tuple[str, Any, bool]]) -> Iterator[dict[str, Any]]:
    """Results as they come, on all cores."""
    started = time.perf_counter()
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as executor:
        for done, found in enumerate(executor.map(_job, jobs), start=1):
            what = found.get("seed", "oracle")
            seconds = time.perf_counter() - started
            print(f"{done}/{len(jobs)} {found['task']} {what} ({seconds:.0f} s)", file=sys.stderr)
            yield found


def main() -> None:
    """Run all, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one task, one seed, three configs")
    parser.add_argument("--out", type=Path, default=HERE / "closed_loop.json")
    asked = parser.parse_args()
    started = time.perf_counter()
    tasks = asked.tasks[:1] if asked.quick else asked.tasks
    for task, size in itertools.product(tasks, (SMALL, LARGE)):
        pretrain(TASKS[task], size)
    seeds = range(1, 2 if asked.quick else asked.seeds + 1)
    jobs = [(task, None, asked.quick) for task in tasks]
    jobs += [(task, seed, asked.quick) for seed in seeds for task in tasks]
    done = list(jobs_done(jobs))
    oracles = [one for one in done if "seed" not in one]
    loops = [one for one in done if "seed" in one]
    found = {
        "summary": summary(oracles, loops),
        "oracles": oracles,
        "loops": loops,
        "pilots": {"steps": CUT, "number": PILOTS, "share_of_a_full_run": share_of_a_run(loops)},
        "wall_seconds": round(time.perf_counter() - started),
    }
    found["manifest"] = manifest(Path(__file__), seeds=len(seeds), checks=checks(found["summary"]))
    asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    draw(found, asked.out.with_suffix(".svg"))
    print(json.dumps(found["summary"], indent=1))


if __name__ == "__main__":
    main()
