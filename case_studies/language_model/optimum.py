"""Where the best learning rate lies: the shape of ladders, and what rules of choice lose.

Nothing is forecast again: kept forecasts of whole ladders are chosen from by each rule. The losses
of the shape are those with the lowest regret, over all ladders and without one kind at a time.
Learned from what the ladders came to, they would count a death twice, which P(stable) counts.
Rules that need them are scored with both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from cell_plan import CONSTANT  # noqa: E402
from compared import difference, kept  # noqa: E402
from said import named  # noqa: E402

from advisor.forecast import HEIGHTS, OPTIMA, shifts_of  # noqa: E402
from advisor.model import DecisionRule, load_priors  # noqa: E402

KEPT = {"full": "said_again", "adapters": "said_lora", "large": "said_large_first"}
KEPT["cells"] = "cells_said"
BELOW, ABOVE = (0.1, 0.15, 0.2, 0.3, 0.4, 0.6), (0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
EQUAL = 0.001  # Regret within which the steepest loss above the optimum is kept
ENOUGH = 0.9  # P(stable) that is asked for


class Ladder(NamedTuple):
    """What one set of pilots predicts of a ladder, and what each of its rates came to."""

    kind: str
    task: str
    rates: Any  # (rates,)
    said: Any  # (rates, quantiles), ends
    stable: Any  # (rates,), P(stable)
    came: Any  # (rates,), ends, mean of the seeds
    is_lora: bool
    named: Mapping[str, Any]


def ladders(kind: str) -> list[Ladder]:
    """Ladders of a kind, one for each set of pilots."""
    found = kept(KEPT[kind])
    rows = {(row["task"], row["set"]): row for row in named(found)}
    out = []
    for (task, pilots), row in rows.items():
        own = [one for one in found if (one["task"], one["set"]) == (task, pilots)]
        by_rate: dict[float, list[Any]] = {}
        for one in own:
            if one["on_ladder"]:
                by_rate.setdefault(one["rate"], []).append(one)
        rates = sorted(by_rate)
        first = [by_rate[rate][0] for rate in rates]
        came = [np.mean([one["came"] for one in by_rate[rate]]) for rate in rates]
        said = np.array([one["said"]["advisor"] for one in first])
        stable = np.array([one["p_stable"] for one in first])
        is_lora = kind == "adapters" or "lora" in task
        out.append(Ladder(kind, task, np.array(rates), said, stable, np.array(came), is_lora, row))
    return out


def regrets(found: list[Ladder], choice: Callable[[Ladder], int]) -> dict[str, float]:
    """Reward lost by a rule on each task, the mean of its sets of pilots."""
    lost: dict[str, list[float]] = {}
    for one in found:
        lost.setdefault(one.task, []).append(one.came.max() - one.came[choice(one)])
    return {task: float(np.mean(each)) for task, each in lost.items()}


def shape_of(found: list[Ladder], rule: DecisionRule) -> DecisionRule:
    """Rule with the losses of lowest regret, kinds alike; of equal ones the steepest above."""
    kinds = [[one for one in found if one.kind == kind] for kind in {one.kind for one in found}]
    scores = {}
    for below, above in product(BELOW, ABOVE):
        shaped = rule.model_copy(update={"loss_below": below, "loss_above": above})
        means = [np.mean(list(regrets(own, by_prior(shaped)).values())) for own in kinds]
        scores[above, below] = float(np.mean(means)), shaped
    lowest = min(score for score, _ in scores.values())
    return max((at, one) for at, (score, one) in scores.items() if score <= lowest + EQUAL)[1]


def by_prior(rule: DecisionRule) -> Callable[[Ladder], int]:
    """Choice that ships: highest utility among rates that are stable enough."""

    def choice(ladder: Ladder) -> int:
        known = load_priors("lora" if ladder.is_lora else "full_finetuning").known_optimum
        assert known is not None
        decades = np.log10(ladder.rates / known.places["learning_rate"])
        moved = np.interp(decades, *shifts_of(ladder.said, decades, "learning_rate", known, rule))
        return gated(ladder, np.clip(ladder.said + moved[:, None], 0, 1).mean(-1))

    return choice


def gated(ladder: Ladder, worth: Any) -> int:
    """Rate with the highest worth, a lost run being worth nothing, that is stable enough."""
    is_stable = ladder.stable >= ENOUGH
    if not is_stable.any():
        return int(ladder.stable.argmax())
    return int(np.where(is_stable, worth * ladder.stable, -1.0).argmax())


def nearest(ladder: Ladder, rate: float) -> int:
    """Rate of a ladder nearest to another."""
    return int(np.abs(np.log(ladder.rates / rate)).argmin())


def result() -> dict[str, Any]:
    """Shape of ladders, and regret of every rule of choice."""
    found = [one for kind in KEPT for one in ladders(kind)]
    rule = load_priors("theory").decision
    shapes = {"all": shape_of(found, rule)}
    for kind in KEPT:
        shapes[kind] = shape_of([one for one in found if one.kind != kind], rule)

    rules: dict[str, Callable[[Ladder], int]] = {
        "prior of the best rate, its shape learned without this kind": lambda one: by_prior(shapes[one.kind])(one),
        "the same as it ships, in sample": by_prior(rule),
        "rule of 1.0": lambda one: nearest(one, one.named["named"]),
        "highest forecast": lambda one: gated(one, one.said.mean(-1)),
        "best pilot": lambda one: nearest(one, one.named.get("best pilot", one.named["named"])),
        "constant": lambda one: nearest(one, CONSTANT[one.is_lora]),
    }
    losses = {kind: [one.loss_below, one.loss_above] for kind, one in shapes.items()}
    document: dict[str, Any] = {"losses without a kind": losses, "regret": {}}
    for kind in KEPT:
        own = [one for one in found if one.kind == kind]
        lost = {name: regrets(own, of) for name, of in rules.items()}
        mine, *others = lost
        document["regret"][kind] = {name: difference(lost[mine], lost[name]) for name in others}
    return document
