"""What on-policy pilots foretold and what the runs did."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from plan import Row, Run, Setup, as_runs

from advisor.diagnosis import diagnose
from advisor.forecast import fit, refresh_margin
from advisor.model import Posterior, Sampling
from advisor.runs import read_runs

PILOTS = Path(__file__).resolve().parent.parent / "tiny_transformer" / "pilots"
Rows = dict[Run, Row]


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
                "stiffness_over_limit": float(np.median(margin.stiffness)),
                "p_diverges": float((margin.stiffness >= 1).mean()),
                "collapsed": sum(diagnose(run).collapse_step is not None for run in runs),
                "lost_a_third": sum(value < 2 / 3 * best for value in finals),
                "runs": len(own),
                "final": round(float(np.mean(finals)), 4),
                "spread": round(float(np.std(finals)), 4),
                "largest_gradient": float(np.median([_largest(rows[run]) for run in own])),
                "on_policy": round(best, 4),
            }
        )
    return found


def _largest(row: dict[str, Any]) -> float:
    """Largest norm of a gradient in a run; infinite where one was not finite."""
    return max(np.inf if norm is None else norm for norm in row["grad_norm"])


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
