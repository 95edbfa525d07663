"""Where the best learning rate stands in each cell, what moves it, and what known rates lose there.

Of the cells of `cell_plan.py`, and of the first table's ladders, as far as they are trained. A
cell's runs are read at every horizon up to their length: the rate is constant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from cell_plan import CELLS, CONSTANT, HORIZONS, Cell, planned
from later_tasks import ALL_TASKS
from model_weights import MODELS
from run_store import packed_places, unpack
from trained_runs import LEAST_STEPS, SMOOTHED, Trained, final_at, trained

PUBLISHED = {"TRL": 1e-6, "verl": 1e-6, "Unsloth": 5e-6}
"""Defaults of TRL's `GRPOConfig`, of verl's trainer, of Unsloth's GRPO notebooks."""

WIDTH_POWER = {"smollm2": 0.781, "gemma": 0.781, "qwen": 0.0775}
"""Of Tinker's formula, by family; it has none for Gemma, which gets Llama's."""

BASE_COMPLETIONS = 64
DRAWS = 2000
FACTORS = ("model", "task", "adapter", "completions", "group", "refresh", "clip", "horizon")
LEAST_RATES, LEAST_REPEATS = 5, 6
"""Rates of a ladder; repeats that a deviation rests on."""

FIRST_TABLE = [
    cell
    for task in ALL_TASKS
    for cell in (
        Cell("", task, completions=32),
        Cell("", task, completions=128),
        Cell("", task, 16, completions=32),
    )
]
"""SmolLM2's ladders of before, read the same way."""


class Ladder(NamedTuple):
    """Ends of a cell's runs at one horizon, by rate: those of all seeds."""

    cell: Cell
    horizon: int
    ends: Mapping[float, Sequence[float]]

    @property
    def means(self) -> dict[float, float]:
        """Mean of the seeds, by rate, in order."""
        return {rate: float(np.mean(self.ends[rate])) for rate in sorted(self.ends)}

    @property
    def factors(self) -> dict[str, Any]:
        """What tells this ladder from the others."""
        cell = self.cell
        return {
            "model": cell.model or "smollm2",
            "task": cell.task,
            "adapter": f"LoRA {cell.rank}" if cell.rank else "full",
            "completions": cell.completions,
            "group": cell.group,
            "refresh": cell.minibatches * cell.epochs,
            "clip": cell.clip,
            "horizon": self.horizon,
        }

    def at(self, rate: float) -> float:
        """Mean end at a rate, interpolated by log rate; outside the ladder that of its end."""
        means = self.means
        return float(np.interp(np.log(rate), np.log(list(means)), list(means.values())))


def ladders(cell: Cell) -> list[Ladder]:
    """Of a cell at each horizon that its runs reach; none while rates are missing."""
    place = cell.run(cell.rates[0], 1).place
    configuration = cell.run(0.0, 1).configuration
    runs = [
        one
        for one in trained(unpack(place))
        if one.configuration._replace(rate=0.0) == configuration
        and (not cell.model or (one.steps == cell.steps and one.configuration.rate in cell.rates))
    ]
    return [
        Ladder(cell, horizon, ends)
        for horizon in HORIZONS
        if horizon <= cell.steps and len(ends := _ends(runs, horizon)) >= LEAST_RATES
    ]


def _ends(runs: Sequence[Trained], horizon: int) -> dict[float, list[float]]:
    ends: dict[float, list[float]] = {}
    for run in runs:
        if run.steps >= horizon:
            ends.setdefault(run.configuration.rate, []).append(final_at(run, horizon, LEAST_STEPS))
    return ends


def seed_deviation(found: Sequence[Ladder]) -> tuple[float, int]:
    """Standard deviation of a run's end over seeds, of settings that have several; repeats."""
    repeated = [np.array(own) for one in found for own in one.ends.values() if len(own) > 1]
    squares = float(sum(((own - own.mean()) ** 2).sum() for own in repeated))
    repeats = sum(own.size - 1 for own in repeated)
    return float(np.sqrt(squares / max(1, repeats))), repeats


def deviations(found: Sequence[Ladder]) -> list[float]:
    """The same of each ladder: of all that have its horizon and completions, where these repeat."""
    of_all, _ = seed_deviation(found)

    def of(one: Ladder) -> float:
        like = [
            other
            for other in found
            if (other.horizon, other.cell.completions) == (one.horizon, one.cell.completions)
        ]
        deviation, repeats = seed_deviation(like)
        return deviation if repeats >= LEAST_REPEATS else of_all

    return [of(one) for one in found]


def best_rates(one: Ladder, deviation: float) -> np.ndarray:
    """Draws of the log10 rate that ends highest, if another seed moves each end."""
    rng = np.random.default_rng(0)
    rates, means = np.log10(list(one.means)), np.array(list(one.means.values()))
    error = deviation / np.sqrt([len(one.ends[rate]) for rate in sorted(one.ends)])
    drawn = means + error * rng.standard_normal((DRAWS, means.size))
    return rates[drawn.argmax(1)]


def rules(cell: Cell) -> dict[str, float]:
    """Rates that are known without a pilot."""
    model = MODELS[cell.model or "smollm2"]
    lora = cell.rank > 0
    constant = CONSTANT[lora]
    tinker = 5e-5 * (10 if lora else 1) * (2000 / model.hidden) ** WIDTH_POWER[model.key]
    root = float(np.sqrt(cell.completions / BASE_COMPLETIONS))
    return {
        "constant": constant,
        "constant by root of completions": constant * root,
        "Tinker, a tenth for RL": tinker / 10,
        **PUBLISHED,
    }


def transferred(rate: float, source: str, target: str) -> float:
    """A rate by Tinker's formula: times the ratio of what it gives for the two models."""
    of = {key: 5e-5 * (2000 / MODELS[key].hidden) ** WIDTH_POWER[key] for key in (source, target)}
    return rate * of[target] / of[source]


def described(one: Ladder, deviation: float) -> dict[str, Any]:
    """One row of the result."""
    means = one.means
    best = max(means, key=lambda rate: means[rate])
    drawn = best_rates(one, deviation)
    low, high = np.quantile(drawn, [0.1, 0.9], method="nearest")
    known = rules(one.cell)
    return {
        **one.factors,
        "ends": {f"{rate:g}": round(end, 4) for rate, end in means.items()},
        "runs": sum(map(len, one.ends.values())),
        "seed_deviation": round(deviation, 4),
        "best": best,
        "best_80": [float(f"{10**low:.3g}"), float(f"{10**high:.3g}")],
        "best_end": round(means[best], 4),
        "rates": {name: float(f"{rate:.3g}") for name, rate in known.items()},
        "loss": {name: round(means[best] - one.at(rate), 4) for name, rate in known.items()},
    }


def moved(found: Sequence[Ladder], noise: Sequence[float]) -> list[dict[str, Any]]:
    """By how much the best rate moves between ladders that one factor tells apart, in decades."""
    pairs: dict[tuple[str, Any, Any], list[np.ndarray]] = {}
    drawn = [best_rates(one, deviation) for one, deviation in zip(found, noise, strict=True)]
    for (a, first), (b, second) in combinations(zip(found, drawn, strict=True), 2):
        own, other = a.factors, b.factors
        apart = [name for name in FACTORS if own[name] != other[name]]
        if len(apart) == 1 and apart != ["task"]:
            name = apart[0]
            low, high = sorted((own[name], other[name]))
            shift = second - first if own[name] == low else first - second
            pairs.setdefault((name, low, high), []).append(shift)
    rows = []
    for (name, low, high), shifts in sorted(pairs.items(), key=str):
        mean = np.mean(shifts, 0)
        quantiles = np.quantile(mean, [0.1, 0.5, 0.9])
        rows.append(
            {"factor": name, "from": low, "to": high, "pairs": len(shifts)}
            | {"decades_80": [round(float(value), 2) for value in quantiles]}
        )
    return rows


def deaths(runs: Sequence[Trained]) -> dict[str, int]:
    """How many died, early and late, and how many fell for good by the advisor's rule.

    Late where the best ten steps ended in the second half; early where none were better than the
    first ten, or than the model before training.
    """
    died = [one for one in runs if one.died_at is not None]
    late = [one for one in died if one.died_at >= one.steps / 2]
    return {
        "runs": len(runs),
        "died": len(died),
        "early": sum(one.died_at <= SMOOTHED for one in died),
        "late": len(late),
        "late and fell for good": sum(one.unstable for one in late),
        "fell for good": sum(one.unstable for one in runs),
    }


def result() -> dict[str, Any]:
    """All of it, of the runs that are there."""
    first = [one for cell in FIRST_TABLE for one in ladders(cell)]
    new = [one for cell in CELLS for one in ladders(cell)]
    # Seeds of both tables: the new one alone has few.
    noise = deviations([*first, *new])
    described_all = [described(*one) for one in zip([*first, *new], noise, strict=True)]
    earlier, rows = described_all[: len(first)], described_all[len(first) :]
    by_model: dict[str, list[Trained]] = {}
    for place in packed_places():
        if "/" in place:
            by_model.setdefault(place.split("/")[0], []).extend(trained(unpack(place)))
    return {
        "runs": {
            model: {"planned": planned(model)} | deaths(runs) for model, runs in by_model.items()
        },
        "cells_trained": len({one.cell.name for one in new}),
        "cells_planned": len(CELLS),
        "loss": {"new cells": _mean_loss(rows), "first table": _mean_loss(earlier)},
        "best_rates": {
            kind: dict(Counter(f"{row['best']:g}" for row in own))
            for kind, own in (("new cells", rows), ("first table", earlier))
        },
        "moved_by": moved([*first, *new], noise),
        "cells": rows,
    }


def _mean_loss(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    if not rows:
        return {}
    return {
        name: round(float(np.mean([row["loss"][name] for row in rows])), 4)
        for name in rows[0]["loss"]
    }
