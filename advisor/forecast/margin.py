"""How near a run that is there stands to its refresh limit, and how damped, under a posterior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from advisor.forecast.forecaster import Forecaster, Target
from advisor.forecast.survival import stiffness_left
from advisor.model import Posterior
from advisor.runs import PilotRun, Settings
from advisor.theory import FloatArray, coefficients, damping_ratio

CLOSED_FORM = 0.25
"""Stiffness times uncorrected age below which the closed form holds to 0.05 (docs/theory, T7)."""


class Margin(NamedTuple):
    """Stability of a run's stiffest mode under a posterior.

    Attributes
    ----------
    stiffness : ndarray of shape (draws,)
        Over the largest that the run's refresh schedule stands: the refresh map diverges at 1 and
        above (docs/theory, T16).
    damping : ndarray of shape (draws,)
        Damping ratio: above 1 overdamped, below it the mode oscillates (docs/theory, T8); NaN in
        draws so stale that the closed form does not hold. Whether the oscillation dies out is told
        by the refresh map alone.
    """

    stiffness: FloatArray
    damping: FloatArray


def refresh_margin(posterior: Posterior, run: PilotRun) -> Margin | None:
    """How near a run stands to its refresh limit; None where task, size or a setting is unknown."""
    known = _known(posterior, run)
    if known is None:
        return None
    forecaster, settings = known
    ratio = np.exp(forecaster.log_stiffness_ratio)
    stiffness = forecaster.law_stiffness(settings) * ratio
    share, age = forecaster.uncorrected_share(settings), settings.mean_age
    damping = damping_ratio(coefficients(stiffness, settings.momentum, age, share))
    return Margin(
        np.asarray(stiffness_left(forecaster, settings) * ratio),
        np.where(share * stiffness * age < CLOSED_FORM, damping, np.nan),
    )


def _known(posterior: Posterior, run: PilotRun) -> tuple[Forecaster, Settings] | None:
    meta, group = posterior.meta, (run.task or "", run.model or "")
    is_piloted = group in meta.groups
    size = meta.group_parameters[meta.groups.index(group)] if is_piloted else run.parameters
    if size is None or group[0] not in meta.tasks:
        return None
    if run.hyperparameters.lacking:
        return None
    target = Target(group[0], group[1], size)
    return Forecaster(posterior, target), run.hyperparameters.completed()
