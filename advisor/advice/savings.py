"""How much sooner the advised run is where another would end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.advice.cost import Cost
from advisor.advice.evaluate import curve_steps
from advisor.forecast import Forecaster
from advisor.model import Posterior

if TYPE_CHECKING:
    from advisor.advice.answer_fields import Alternative, AnswerFields


@dataclass(frozen=True)
class Saving:
    """Step at which the mean curve of the advised run reaches another's end, and its price."""

    step: float
    cost: Cost


def saving(posterior: Posterior, advice: AnswerFields, other: Alternative) -> Saving | None:
    """Price at which the advised run has what another ends with."""
    forecaster = Forecaster(posterior, advice.target, seed=advice.seed)
    times = curve_steps(advice.steps)
    curve = forecaster.outcome(advice.settings, times).mean(axis=0)
    there = np.flatnonzero(curve >= other.reward)
    if not there.size or there[0] == 0:
        return None
    step = int(np.ceil(times[there[0]]))
    cost = advice.cost_model(advice.settings, step)
    return Saving(step, cost) if cost.paid < other.cost.paid else None
