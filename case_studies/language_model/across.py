"""Advice for one model from another's pilots, replayed on the ladders of the cells.

`said.py --cells` and `said.py --cells --pilots-of MODEL` name the rates. Each rate is scored by the
ladder of the larger model: mean of its seeds, interpolated by log rate. No run is trained here.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from cell_plan import CELLS, Cell
from cells import WIDTH_POWER, ladders, rules
from model_weights import HERE, MODELS

OWN = "cells_first.json"
OTHERS = {key: f"cells_first_by_{key}.json" for key in MODELS}


def named_in(file: str) -> dict[tuple[str, str], dict[str, Any]]:
    """What was named, by cell and set of pilots."""
    path = HERE / file
    if not path.is_file():
        return {}
    rows = json.loads(path.read_text(encoding="utf-8")).get("named", [])
    return {(row["task"], row["set"]): row for row in rows}


def transferred(rate: float, source: str, target: str) -> float:
    """A rate by Tinker's formula: times the ratio of what it gives for the two models."""
    of = {key: 5e-5 * (2000 / MODELS[key].hidden) ** WIDTH_POWER[key] for key in (source, target)}
    return rate * of[target] / of[source]


def replayed(source: str, cell: Cell) -> list[dict[str, Any]]:
    """A row a set of pilots: each method's rate and what it loses to the best of the ladder."""
    others, own = named_in(OTHERS[source]), named_in(OWN)
    at_end = [one for one in ladders(cell) if one.horizon == cell.steps]
    if not at_end or not any(name == cell.name for name, _ in others):
        return []
    ladder = at_end[0]
    small = next(
        one
        for one in CELLS
        if one.model == source and one._replace(model=cell.model, steps=cell.steps) == cell
    )
    rows = []
    for (name, pilots), row in others.items():
        if name != cell.name or (small.name, pilots) not in own:
            continue
        best_pilot = own[small.name, pilots]["best pilot"]
        known = rules(cell)
        rates = {
            "advice, the small model's pilots": row["named"],
            "the small model's best pilot": best_pilot,
            "Tinker's transfer of it": transferred(best_pilot, source, cell.model),
            "the constant": known["constant"],
            "TRL's default": known["TRL"],
        }
        if (name, pilots) in own:
            rates["advice, own pilots"] = own[name, pilots]["named"]
        best = max(ladder.means.values())
        rows.append(
            {
                "from": source,
                "to": cell.name,
                "pilots": pilots,
                "rates": {method: float(f"{rate:.3g}") for method, rate in rates.items()},
                "loss": {
                    method: round(best - ladder.at(rate), 4) for method, rate in rates.items()
                },
            }
        )
    return rows


def result() -> dict[str, Any]:
    """Losses of each set of pilots, and their means by method."""
    rows = [
        row
        for source in OTHERS
        for cell in CELLS
        if cell.model != source
        for row in replayed(source, cell)
    ]
    by_method: dict[str, list[float]] = {}
    for row in rows:
        for method, lost in row["loss"].items():
            by_method.setdefault(method, []).append(lost)
    return {
        "sets": len(rows),
        "cells": len({row["to"] for row in rows}),
        "mean_loss": {name: round(float(np.mean(lost)), 4) for name, lost in by_method.items()},
        "rows": rows,
    }
