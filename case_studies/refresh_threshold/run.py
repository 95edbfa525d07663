"""Does the refresh threshold show in a network? Uncorrected GRPO through the predicted limit.

python case_studies/refresh_threshold/run.py [--jobs 1]       # forty minutes of one core
python case_studies/refresh_threshold/run.py --quick --out quick.json

Pilots are on policy (K = 1) and say nothing of staleness; from them alone the posterior tells how
likely the refresh map is to diverge at K steps per refresh, or at a lag, without an importance
ratio. Then such runs are made, and the same with the ratio, under AdamW and under SGD with
momentum. Finished runs are kept in .cache.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "tiny_transformer")]

import numpy as np  # noqa: E402
from engine_flags import add_engine_flags, on_engine  # noqa: E402
from manifest import write_result  # noqa: E402
from plan import QUICK, SETUPS, Row, Run, Setup, as_runs  # noqa: E402
from pretrain import pretrain  # noqa: E402
from table import TASKS, train_row, trained_rows  # noqa: E402

from advisor.diagnosis import diagnose  # noqa: E402
from advisor.forecast import fit, refresh_margin  # noqa: E402
from advisor.model import Posterior, Sampling  # noqa: E402
from advisor.runs import read_runs  # noqa: E402

PILOTS = HERE.parent / "tiny_transformer" / "pilots"
Rows = dict[Run, Row]

SEEDS = 3
HASTY = 30
"""Steps of pre-training for ``--quick``, of which nothing is kept."""


def posterior_of(setup: Setup, rows: Rows, sampling: Sampling) -> Posterior:
    """Fit the pilots of a setup, and nothing else."""
    runs = setup.pilots()
    pilots = as_runs(runs, [rows[run] for run in runs]) if runs else read_runs([PILOTS])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(pilots, sampling=sampling)


def cells_of(setup: Setup, posterior: Posterior, rows: Rows, seeds: int) -> list[dict[str, Any]]:
    """Forecast and outcome of every cell of a setup."""
    cells = setup.cells()
    runs_of = {cell: [setup.run(cell, seed) for seed in range(1, seeds + 1)] for cell in cells}
    finals_of = {cell: [rows[run]["final_eval"] for run in runs_of[cell]] for cell in cells}
    found = []
    for cell in cells:
        alike = [one for one in cells if one[:3] == (cell.rate, 1, 0)]
        best = float(np.mean([finals_of[one] for one in alike]))
        own, finals = runs_of[cell], finals_of[cell]
        runs = as_runs(own, [rows[run] for run in own])
        margin = refresh_margin(posterior, runs[0])
        assert margin is not None
        found.append(
            {
                "learning_rate": cell.rate,
                "interval": cell.interval,
                "lag": cell.lag,
                "importance_ratio": cell.ratio,
                "clipped": cell.clipped,
                "p_diverges": float((margin.stiffness >= 1).mean()),
                "collapsed": sum(diagnose(run).collapse_step is not None for run in runs),
                "lost_a_third": sum(value < 2 / 3 * best for value in finals),
                "runs": len(own),
                "final": round(float(np.mean(finals)), 4),
                "on_policy": round(best, 4),
            }
        )
    return found


def reliability(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Forecast probabilities of cells against the share of their runs that was lost."""
    chance = np.array([cell["p_diverges"] for cell in cells])
    runs = np.array([cell["runs"] for cell in cells])
    lost = np.array([cell["lost_a_third"] for cell in cells])
    edges = (0.0, 0.1, 0.5, 0.9, 1.0 + 1e-9)
    bins = []
    for low, high in itertools.pairwise(edges):
        inside = (chance >= low) & (chance < high)
        if inside.any():
            bins.append(
                {
                    "from": low,
                    "to": round(high, 6),
                    "forecast": float(np.average(chance[inside], weights=runs[inside])),
                    "lost": int(lost[inside].sum()),
                    "runs": int(runs[inside].sum()),
                }
            )
    share = lost.sum() / runs.sum()
    score = float((lost * (1 - chance) ** 2 + (runs - lost) * chance**2).sum() / runs.sum())
    return {"bins": bins, "brier": score, "brier_of_the_share": float(share * (1 - share))}


def _is_stale(cell: dict[str, Any]) -> bool:
    return (cell["interval"], cell["lag"]) != (1, 0)


def studied(setup: Setup, rows: Rows, seeds: int, sampling: Sampling) -> dict[str, Any]:
    """All that the result says of one setup."""
    posterior = posterior_of(setup, rows, sampling)
    cells = cells_of(setup, posterior, rows, seeds)
    uncorrected = [cell for cell in cells if not cell["importance_ratio"]]
    stale = [cell for cell in uncorrected if _is_stale(cell)]
    return {
        "name": setup.name,
        "optimizer": setup.optimizer,
        "task": setup.task,
        "size": setup.size,
        "steps": setup.steps,
        "pilots": len(setup.pilots()),
        "without_ratio": {"p_diverges": reliability(stale)},
        "with_ratio": reliability(
            [c for c in cells if c["importance_ratio"] and c["clipped"] and _is_stale(c)]
        ),
        "cells": cells,
    }


def main() -> None:
    """Make pilots and runs, fit the pilots, set forecast beside outcome."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "refresh_threshold.json")
    parser.add_argument("--quick", action="store_true", help="tiny, writes to --out alone")
    add_engine_flags(parser)
    asked = parser.parse_args()
    setups, seeds = (QUICK, 1) if asked.quick else (SETUPS, SEEDS)
    runs = [run for setup in setups for run in (*setup.pilots(), *setup.sweeps(seeds))]
    if asked.quick:
        made = [train_row(run, pretrain(TASKS[run.task], run.size, HASTY)) for run in runs]
    else:
        made = trained_rows(runs, {**on_engine(asked), "keep": asked.keep or HERE / ".cache"})
    rows = dict(zip(runs, made, strict=True))
    sampling = Sampling(seed=2 if asked.quick else 1)  # the one that needs fewer attempts
    found = [studied(setup, rows, seeds, sampling) for setup in setups]
    write_result(asked.out, {"setups": found}, Path(__file__), [])


if __name__ == "__main__":
    main()
