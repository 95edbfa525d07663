"""A plan of pilots of one small model, as ``advisor plan`` would name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from simulated_runs import Plan

from advisor.advice import Design, PilotPlan, PlannedPilot

KNOWN = {
    "log_run_plateau_spread": np.log(0.5),
    "log_run_rate_spread": np.log(0.5),
    "log_run_loss_spread": np.log(0.8),
}
"""Spreads of runs that pilots of this plan show."""


def made_plan(rates: Sequence[float], length: int, steps: int = 1000, **changes: Any) -> PilotPlan:
    """Pilots of a length at some learning rates, before a run of so many steps."""
    pilots = [
        PlannedPilot(
            name=f"pilot-{number}",
            model="tiny-s",
            parameters=1e5,
            settings=Plan(rate, steps=length).completed,
            steps=length,
            price=length / steps,
            stable=0.9,
        )
        for number, rate in enumerate(rates, start=1)
    ]
    design = Design(
        pilots=len(pilots),
        model="tiny-s",
        steps=length,
        learning_rates=tuple(rates),
        price=len(pilots) * length / steps,
        gain=0.1,
        left=steps,
        worth=0.1,
    )
    given = {
        "kind": "pilots",
        "pilots": tuple(pilots),
        "designs": (design,),
        "run_gain": 0.4,
        "settings": Plan(3e-4).completed.planned_over(steps),
        "steps": steps,
        "share": 0.25,
        "model": "tiny-s",
        "parameters": 1e5,
        "task": "sort",
        "start_reward": None,
        "trainer": "trl",
        "devices": 1,
        "priors": "small_models",
    }
    return PilotPlan(**given | changes)
