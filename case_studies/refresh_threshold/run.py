"""Does the refresh threshold show in a network? Uncorrected GRPO through the predicted limit.

python case_studies/refresh_threshold/run.py [--seeds 3]       # six minutes on two cores

Pilots are on policy (K = 1) and say nothing of staleness; from them alone the posterior tells how
likely the refresh map is to diverge at K steps per refresh without an importance ratio. Then such
runs are made, and the same with the ratio. Finished runs are kept in .cache.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tiny_transformer"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from config import GrpoConfig  # noqa: E402
from pretrain import pretrain  # noqa: E402
from records import Run  # noqa: E402
from table import train_row  # noqa: E402
from tasks import TASKS  # noqa: E402

import advisor  # noqa: E402
from advisor.advice.margin import refresh_margin  # noqa: E402
from advisor.diagnosis import diagnose  # noqa: E402
from advisor.posterior import Sampling, fit  # noqa: E402
from advisor.runs import read_runs  # noqa: E402
from advisor.runs.pilot_run import PilotRun  # noqa: E402

CACHE = HERE / ".cache"
TASK, SIZE, STEPS, PILOT_STEPS, GROUP, PROMPTS = "sort", "s", 256, 60, 8, 16
RATES, INTERVALS = (3e-4, 1e-3), (1, 4, 16, 32, 64, 128)
PILOTS = [
    (rate, group, seed) for rate, group in itertools.product((1e-4, 3e-4, 1e-3), (8, 16))
    for seed in (50,)
] + [(3e-4, 8, 51), (1e-3, 8, 51)]  # fmt: skip

Job = tuple[float, int, int, bool, int, int]
"""Learning rate, group size, refresh interval, importance ratio, seed, steps."""


def made(job: Job) -> dict[str, Any]:
    """Train a run, or take it from the cache."""
    torch.set_num_threads(1)
    rate, group, interval, ratio, seed, steps = job
    path = CACHE / f"{rate:g}_{group}_{interval}_{ratio:d}_{seed}_{steps}.json"
    if path.exists():
        return dict(json.loads(path.read_text(encoding="utf-8")))
    config = GrpoConfig(
        rate, group, PROMPTS, interval, 1, importance_ratio=ratio, steps=steps, seed=seed
    )
    row = train_row(Run(TASK, SIZE, config), pretrain(TASKS[TASK], SIZE))
    CACHE.mkdir(exist_ok=True)
    path.write_text(json.dumps(row), encoding="utf-8")
    return row


def as_runs(rows: list[dict[str, Any]]) -> list[PilotRun]:
    """Read rows as anybody's logs are read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return read_runs([path])


def draw(cells: list[dict[str, Any]], path: Path) -> None:
    """Draw what is left of the on-policy reward against the predicted margin without a ratio."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    uncorrected = {
        (c["learning_rate"], c["interval"]): c["stiffness_over_limit"]
        for c in cells
        if not c["importance_ratio"]
    }
    for rate, colour in zip(RATES, ("#0072B2", "#D55E00"), strict=True):
        for ratio, style in ((False, "o-"), (True, "s--")):
            own = [c for c in cells if (c["learning_rate"], c["importance_ratio"]) == (rate, ratio)]
            axes.semilogx(
                [uncorrected[rate, c["interval"]] for c in own],
                [c["final"] / c["on_policy"] for c in own],
                style,
                color=colour,
                fillstyle="none" if ratio else "full",
                label=f"learning rate {rate:g}, {'with' if ratio else 'without'} a ratio",
            )
    axes.axvline(1, color="#666666", lw=1)
    axes.axhline(2 / 3, color="#c4c4c4", lw=1, ls="--")
    axes.set(
        xlabel="stiffness over its limit without a ratio, from on-policy pilots",
        ylabel="final reward over that on policy",
    )
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Make pilots and runs, fit the pilots, set forecast beside outcome."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "refresh_threshold.json")
    asked = parser.parse_args()
    started = time.perf_counter()
    pilots: list[Job] = [(r, g, 1, True, seed, PILOT_STEPS) for r, g, seed in PILOTS]
    cells = list(itertools.product(RATES, INTERVALS, (False, True)))
    jobs: list[Job] = [
        (rate, GROUP, interval, ratio, seed, STEPS)
        for seed in range(1, asked.seeds + 1)
        for rate, interval, ratio in cells
    ]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as executor:
        rows = list(executor.map(made, pilots + jobs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = fit(as_runs(rows[: len(pilots)]), sampling=Sampling(seed=1))
    by_job = dict(zip(jobs, rows[len(pilots) :], strict=True))
    best = {
        rate: float(np.mean([by_job[j]["final_eval"] for j in jobs if j[0] == rate and j[2] == 1]))
        for rate in RATES
    }
    found = []
    for rate, interval, ratio in cells:
        own = [by_job[j] for j in jobs if (j[0], j[2], j[3]) == (rate, interval, ratio)]
        runs = as_runs(own)
        margin = refresh_margin(posterior, runs[0])
        assert margin is not None
        finals = [row["final_eval"] for row in own]
        found.append(
            {
                "learning_rate": rate,
                "interval": interval,
                "importance_ratio": ratio,
                "stiffness_over_limit": float(np.median(margin)),
                "p_diverges": float((margin >= 1).mean()),
                "collapsed": sum(diagnose(run).collapse_step is not None for run in runs),
                "lost_a_third": sum(value < 2 / 3 * best[rate] for value in finals),
                "runs": len(own),
                "final": round(float(np.mean(finals)), 4),
                "spread": round(float(np.std(finals)), 4),
                "on_policy": round(best[rate], 4),
            }
        )
    result = {
        "cells": found,
        "manifest": {
            "advisor": advisor.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "steps": STEPS,
            "seeds": asked.seeds,
            "wall_seconds": round(time.perf_counter() - started),
        },
    }
    asked.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    draw(found, asked.out.with_suffix(".svg"))
    for cell in found:
        print(cell)


if __name__ == "__main__":
    main()
