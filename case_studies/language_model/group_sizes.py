"""Group sizes on language models, against what the paper claims of them.

Runs of one task, rate and seed that differ in the group size alone, at as many completions of a
step or at as many prompts: by how much the curve moves, and how the fluctuation about it changes.
Seeds of one configuration are the control: nothing but chance tells them apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from run_store import packed_places, unpack
from trained_runs import LEAST_STEPS, Trained, final_at, trained

DEGREE, LEAST_ROWS = 3, 30
"""Of the polynomial that is taken off before rewards are called fluctuation; rows that bear it."""
SPREAD = 1e-3
"""Least mean of p(1 - p): a run that has nothing left to learn does not fluctuate."""

Pair = tuple[Trained, Trained]
"""Runs with the smaller group and with the larger one."""


def fluctuation(run: Trained) -> float | None:
    """Variance about the curve in units of p(1 - p); None of a run without spread."""
    _, reward = run.rewards
    if reward.size < LEAST_ROWS:
        return None
    at = np.linspace(-1, 1, reward.size)
    curve = np.polyval(np.polyfit(at, reward, DEGREE), at)
    left = reward - curve
    level = np.clip(curve, 0, 1)
    spread = float((level * (1 - level)).mean())
    if spread < SPREAD:
        return None
    free = reward.size - DEGREE - 1
    return float((left**2).sum() / free / spread)


def pairs(runs: Iterable[tuple[str, Trained]], same: str) -> dict[tuple[int, int], list[Pair]]:
    """Pairs that the group size tells apart, by both sizes.

    Parameters
    ----------
    runs : iterable of (str, Trained)
        With their place.
    same : {'completions', 'prompts'}
        Of a step: what both have.
    """
    like: dict[Any, list[Trained]] = defaultdict(list)
    for place, run in runs:
        own = run.configuration
        kept = own.completions if same == "completions" else own.completions // own.group
        key = place, own._replace(group=0, completions=kept), run.steps, run.own["seed"]
        like[key].append(run)
    found: dict[tuple[int, int], list[Pair]] = defaultdict(list)
    for group in like.values():
        for a, b in combinations(sorted(group, key=lambda run: run.configuration.group), 2):
            sizes = a.configuration.group, b.configuration.group
            if sizes[0] != sizes[1]:
                found[sizes].append((a, b))
    return found


def seeds(runs: Iterable[tuple[str, Trained]]) -> list[Pair]:
    """The control: first and second seed of one configuration."""
    like: dict[Any, dict[int, Trained]] = defaultdict(dict)
    for place, run in runs:
        like[place, run.configuration, run.steps][run.own["seed"]] = run
    return [(own[1], own[2]) for own in like.values() if {1, 2} <= own.keys()]


def _mean(values: Sequence[float]) -> dict[str, float]:
    found = np.array(values)
    error = found.std(ddof=1) / np.sqrt(found.size) if found.size > 1 else float("nan")
    return {"mean": round(float(found.mean()), 4), "standard_error": round(float(error), 4)}


def compared(of: Sequence[Pair]) -> dict[str, Any]:
    """Larger less smaller group: of the whole curve, of the end; powers of the fluctuation in G."""
    curve = [float(b.rewards[1].mean() - a.rewards[1].mean()) for a, b in of]
    end = [final_at(b, b.steps, LEAST_STEPS) - final_at(a, a.steps, LEAST_STEPS) for a, b in of]
    told: dict[str, Any] = {"pairs": len(of), "curve": _mean(curve), "end": _mean(end)}
    both = [(a, b, fluctuation(a), fluctuation(b)) for a, b in of]
    moving = [(a, b, x, y) for a, b, x, y in both if x is not None and y is not None]
    if len(moving) > 1:
        powers = []
        for a, b, x, y in moving:
            doublings = np.log(b.configuration.group / a.configuration.group)
            powers.append(float(np.log(y / x) / (doublings or 1)))
        told["variance_power"] = _mean(powers)
    return told


def result() -> dict[str, Any]:
    """All of it, of the runs of both tables."""
    runs = [(place, run) for place in packed_places() for run in trained(unpack(place))]
    document: dict[str, Any] = {}
    for same in ("completions", "prompts"):
        document[f"as many {same}"] = {
            f"{small} -> {large}": compared(of)
            for (small, large), of in sorted(pairs(runs, same).items())
            if len(of) > 1
        }
    document["seeds alone"] = compared(seeds(runs))
    return document
