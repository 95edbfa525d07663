"""What the group size does to the reward where the policy was not trained."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from contexts import Plan, linear_task, train


def elsewhere(quick: bool) -> list[dict[str, Any]]:
    """Settled reward on train contexts and off them, by group size."""
    task, rows = linear_task(), []
    task = replace(task, held_out={"train": (task.features, task.success), **task.held_out})
    steps, seeds = (300, 2) if quick else (3000, 24)
    for optimizer, scaling, rate in (
        ("sgd", "leave_one_out", 0.5),
        ("sgd", "group", 0.5),
        ("adamw", "leave_one_out", 5e-3),
    ):
        for group in (2, 4, 8, 16, 32):
            plan = Plan(rate, steps, group_size=group, scaling=scaling, optimizer=optimizer)
            found = train(task, plan, seeds)
            settled = {
                name: values[:, values.shape[1] // 2 :].mean(axis=1)
                for name, values in found.evaluated.items()
            }
            rows.append(
                {
                    "optimizer": optimizer,
                    "scaling": scaling,
                    "group_size": group,
                    **{name: float(values.mean()) for name, values in settled.items()},
                    "error": float(max(v.std(ddof=1) for v in settled.values()) / np.sqrt(seeds)),
                }
            )
    return rows


def spreads(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Range over group sizes of each evaluation, by optimizer and advantages."""
    out = {}
    for name in dict.fromkeys(f"{r['optimizer']}, {r['scaling']}" for r in rows):
        own = [r for r in rows if f"{r['optimizer']}, {r['scaling']}" == name]
        kinds = ("train", "held-out contexts", "shifted contexts", "other rewards")
        out[name] = {kind: float(np.ptp([r[kind] for r in own])) for kind in kinds}
        out[name]["largest error"] = max(r["error"] for r in own)
    return out
