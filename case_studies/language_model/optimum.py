"""Where the best learning rate lies: the shape of ladders, and what rules of choice lose.

Nothing is forecast again: kept forecasts of whole ladders are chosen from by each rule. The shape
is learned by least squares, from all ladders and without one kind of ladder at a time. Rules that
need it are scored with both.
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
BELOW, ABOVE = (0.1, 0.15, 0.2, 0.3, 0.4, 0.6), (0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
SPREADS = (0.3, 0.4, 0.5, 0.65, 0.8, 1.0)
REPEATS = 0.1  # Standard deviation of an end between seeds (README: 0.07, more where one fails)
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


def evidence(ladder: Ladder, below: float, above: float, spread: float) -> float:
    """Log likelihood of a ladder's ends, over the prior of the optimum and of the height."""
    decades = np.log10(ladder.rates / CONSTANT[ladder.is_lora])
    away = decades - OPTIMA
    made = HEIGHTS * (1 - np.minimum(np.where(away > 0, above, below) * away**2, 1.0))
    squares = ((ladder.came - made) ** 2).sum(-1) / REPEATS**2
    prior = np.exp(-0.5 * (OPTIMA[..., 0] / spread) ** 2)
    weight = prior / prior.sum() / HEIGHTS.size
    return float(np.log((weight * np.exp(-0.5 * squares)).sum() + 1e-300))


def shape_of(found: list[Ladder]) -> tuple[float, float, float]:
    """Loss below and above the optimum and its spread, likeliest of all; tasks count once."""
    once = list({(one.kind, one.task): one for one in found}.values())
    return max(
        product(BELOW, ABOVE, SPREADS), key=lambda shape: sum(evidence(one, *shape) for one in once)
    )


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
    shapes = {"all": shape_of(found)}
    shapes |= {kind: shape_of([one for one in found if one.kind != kind]) for kind in KEPT}

    def left_out(ladder: Ladder) -> int:
        names = ("loss_below", "loss_above", "optimum_spread")
        nested = rule.model_copy(update=dict(zip(names, shapes[ladder.kind], strict=True)))
        return by_prior(nested)(ladder)

    rules: dict[str, Callable[[Ladder], int]] = {
        "prior of the best rate, its shape learned without this kind": left_out,
        "the same as it ships, in sample": by_prior(rule),
        "rule of 1.0": lambda one: nearest(one, one.named["named"]),
        "highest forecast": lambda one: gated(one, one.said.mean(-1)),
        "best pilot": lambda one: nearest(one, one.named.get("best pilot", one.named["named"])),
        "constant": lambda one: nearest(one, CONSTANT[one.is_lora]),
    }
    document: dict[str, Any] = {"shape without a kind": shapes, "regret": {}}
    for kind in KEPT:
        own = [one for one in found if one.kind == kind]
        lost: dict[str, dict[str, float]] = {}
        for name, of in rules.items():
            regrets: dict[str, list[float]] = {}
            for one in own:
                regrets.setdefault(one.task, []).append(one.came.max() - one.came[of(one)])
            lost[name] = {task: float(np.mean(each)) for task, each in regrets.items()}
        mine, *others = lost
        document["regret"][kind] = {name: difference(lost[mine], lost[name]) for name in others}
    return document
