"""Indexed runs as pilot runs: settings that the index tells plainly, and what is taken as alike.

A forecast of a run's own rest does not turn on settings that its siblings share. So what the index
does not tell is set to one value for all, and said; nothing is asked of those settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from index import IndexedRun

from advisor.backtesting import grouped
from advisor.backtesting.cases import bounds_of
from advisor.runs import PartialSettings, PilotRun

TAKEN_AS_ALIKE: dict[str, float] = {"learning_rate": 5e-6, "group_size": 8, "prompts_per_step": 8}
PARAMETERS = 3e9
"""What stands for a setting that no row of the index tells; only ratios between siblings count."""


def pilots(indexed: Sequence[IndexedRun]) -> list[PilotRun]:
    """Pilot runs in the order given, their ids made unique by the repository's name."""
    return [_pilot(run) for run in indexed]


def told_settings(row: Mapping[str, str]) -> dict[str, Any]:
    """Settings that a line of the index tells plainly."""
    told: dict[str, Any] = {}
    rate = _leading_number(row["learning_rate"])
    if rate:
        told["learning_rate"] = rate
    if row["group_size"].isdigit():
        told["group_size"] = int(row["group_size"])
        counted = re.search(r"(\d+) (completions|prompts)(?:/| per )step", row["notes"])
        if counted:
            share = told["group_size"] if counted[2] == "completions" else 1
            told["prompts_per_step"] = max(1.0, int(counted[1]) / share)
    refresh = row["steps_per_refresh_or_num_iterations"]
    interval = re.match(r"\d+", refresh)
    if interval:
        epochs = re.search(r"epochs (\d+) x", refresh)
        told["epochs_per_refresh"] = int(epochs[1]) if epochs else 1
        told["minibatches_per_refresh"] = max(1, int(interval[0]) // told["epochs_per_refresh"])
    penalty = _leading_number(row["kl_beta"])
    if penalty is not None:
        told["kl_coefficient"] = penalty
    for name in ("linear", "cosine"):
        if name in row["lr_schedule"]:
            told["schedule"] = name
    if re.search(r"\bLoRA\b", f"{row['model']} {row['task']} {row['notes']}"):
        told["adapter"] = "lora"
    return told


def _leading_number(text: str) -> float | None:
    found = re.match(r"\d[\d.]*(?:e-?\d+)?", text.strip())
    return float(found[0]) if found else None


def _pilot(run: IndexedRun) -> PilotRun:
    row, told = run.row, told_settings(run.row)
    alike = {name: value for name, value in TAKEN_AS_ALIKE.items() if name not in told}
    interval = told.get("minibatches_per_refresh", 1) * told.get("epochs_per_refresh", 1)
    counts_refreshes = not row["framework"].lower().startswith(("trl", "unsloth"))
    steps = np.ceil(run.step * (interval if counts_refreshes else 1))
    kept = np.concatenate([np.diff(steps) > 0, [True]])
    model = re.split(r" \(", row["model"])[0] or "model"
    task = re.split(r"[(\[]", row["task"])[0].strip()
    size = _leading_number(row["params_B"])
    parameters = 1e9 * size if size else PilotRun.parameters_in(model)
    if parameters is None:
        alike["parameters"] = parameters = PARAMETERS
    first = np.diff(steps[kept])
    return PilotRun(
        id=run.id,
        path=f"{run.repository}/{row['local_file']}",
        model=f"{model}, {parameters:.3g}",
        task=f"{run.repository.split('/')[0]}/{task}",
        parameters=parameters,
        hyperparameters=PartialSettings(
            **{**told, **{k: v for k, v in alike.items() if k != "parameters"}}
        ),
        step=steps[kept],
        series={"reward": run.reward[kept]},
        logging_steps=max(1, int(np.median(first))) if first.size else 1,
        assumptions=tuple(
            f"{name} = {value:g} taken as alike in all runs: the index does not tell it"
            for name, value in alike.items()
        ),
    )


def cohorts(runs: Sequence[PilotRun]) -> dict[str, tuple[str, tuple[float, float]]]:
    """Cohort of each run by its id, and the bounds of the cohort's reward, as a backtest has it."""
    return {
        run.id: (name, bounds_of(members)) for name, members in grouped(runs) for run in members
    }
