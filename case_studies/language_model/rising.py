"""How much of a rising run the closed form explains, by model and by group size.

Of every run of the tables that did not die: R² of twenty bins, beside that of noise without a
trend, as `real_runs/closed_form.py` has it for public runs. The paper reports 0.91 and more on
three models.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from run_store import packed_places, unpack
from trained_runs import Trained, trained

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "real_runs")]

from closed_form import BINS, GOOD, RISE, r_squared, surrogate  # noqa: E402

SURROGATES = 3
LEAST_STEPS = 30


def record(model: str, run: Trained) -> dict[str, Any] | None:
    """R² of a run that rises by half of its range and lived; None of another."""
    _, reward = run.rewards
    if run.died_at is not None or reward.size < LEAST_STEPS or not np.ptp(reward):
        return None
    scaled = (reward - reward.min()) / np.ptp(reward)
    third = scaled.size // 3
    if scaled[-third:].mean() - scaled[:third].mean() < RISE:
        return None
    rng = np.random.default_rng(scaled.size)
    noise = [r_squared(surrogate(scaled, rng))[1] for _ in range(SURROGATES)]
    own = run.configuration
    return {
        "model": model,
        "run": run.name,
        "group": own.group,
        "rows in a bin": round(scaled.size / BINS, 1),
        "completions": own.completions,
        "bins": round(r_squared(scaled)[1], 3),
        "bins of noise": round(float(np.median(noise)), 3),
    }


def described(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Median and share above the paper's number, beside noise."""
    bins = np.array([one["bins"] for one in found])
    noise = np.array([one["bins of noise"] for one in found])
    return {
        "runs": len(found),
        "median": round(float(np.median(bins)), 3),
        "median of noise": round(float(np.median(noise)), 3),
        f"at least {GOOD}": round(float((bins >= GOOD).mean()), 3),
        f"noise at least {GOOD}": round(float((noise >= GOOD).mean()), 3),
    }


def by(found: Sequence[dict[str, Any]], *names: str) -> dict[str, Any]:
    """The same by each value of some keys."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for one in found:
        kinds.setdefault(", ".join(f"{one[name]}" for name in names), []).append(one)
    return {kind: described(kinds[kind]) for kind in sorted(kinds)}


def result() -> dict[str, Any]:
    """All of it, of the runs of both tables."""
    found = [
        one
        for place in packed_places()
        for run in trained(unpack(place))
        if (one := record(place.split("/")[0] if "/" in place else "smollm2", run))
    ]
    return {
        "by model": by(found, "model"),
        "by model and group size": by(found, "model", "group"),
        "by completions of a step": by(found, "completions"),
    }
