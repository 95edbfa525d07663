"""P(stable) and its parts, as pure functions of posterior draws and a configuration."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from advisor.dynamics import stability_margin
from advisor.posterior import Forecaster
from advisor.runs.pilot_run import Hyperparameters

FloatArray = npt.NDArray[np.float64]


class Stability(BaseModel):
    """Probability of a stable run and what it is made of.

    Attributes
    ----------
    probability : float
        Joint over draws: the refresh map contracts and no collapse happens by the horizon.
    refresh : float
        Probability that the refresh map contracts (spectral radius below one) under the posterior
        stiffness, the uncorrected share and an unknown stiffness ratio.
    tolerance : float
        Probability of no collapse by the horizon, from pilots that collapsed and pilots that lived.
    error : float
        Monte Carlo standard error of ``probability``.
    """

    model_config = ConfigDict(frozen=True)

    probability: float
    refresh: float
    tolerance: float
    error: float


def refresh_contracts(forecaster: Forecaster, settings: Hyperparameters) -> FloatArray:
    """1 where the refresh map of a draw contracts, shape (draws,).

    The reward curve shows a slow, reward-weighted mode; the stiffest mode sets stability, so the
    fitted stiffness is multiplied by a ratio >= 1 drawn from its prior (theory section 4).
    """
    margin = stability_margin(
        forecaster.law_stiffness(settings),
        settings.momentum or 0.0,
        settings.refresh_interval or 1,
        lag=settings.lag or 0.0,
        uncorrected_share=forecaster.uncorrected_share(settings),
        stiffness_ratio=np.exp(forecaster.log_stiffness_ratio),
    )
    return (margin > 0).astype(float)


def stability(forecaster: Forecaster, settings: Hyperparameters, steps: int) -> Stability:
    """P(stable) of a configuration by a horizon.

    Parameters
    ----------
    forecaster : Forecaster
    settings : Hyperparameters
        Completed.
    steps : int
        Planned optimizer steps.

    Returns
    -------
    stability : Stability
    """
    contracts = refresh_contracts(forecaster, settings)
    survives = forecaster.survival(settings, steps)
    joint = contracts * survives
    return Stability(
        probability=float(joint.mean()),
        refresh=float(contracts.mean()),
        tolerance=float(survives.mean()),
        error=float(joint.std() / np.sqrt(joint.size)),
    )
