"""Forecasts of one run that has begun: draws weighted by its log, with its own luck."""

from __future__ import annotations

from copy import copy

import numpy as np

from advisor.forecast.forecaster import Forecaster
from advisor.forecast.stability import fluctuation_small, refresh_contracts
from advisor.model import equations as eq
from advisor.run.settings import Settings
from advisor.theory.arrays import FloatArray, IntArray

OF_DRAWS = ("population", "laws", "group")
"""What a forecaster computes once from its draws."""


class RunForecaster(Forecaster):
    """Forecaster whose luck is that of a run which has begun.

    Parameters
    ----------
    base : Forecaster
    luck : ndarray of shape (3, ..., draws)
        Plateau, stiffness, shape, in standard deviations.
    index : ndarray of shape (draws,), optional
        Which draws of ``base`` to take, with repeats; all by default.
    """

    def __init__(self, base: Forecaster, luck: FloatArray, index: IntArray | None = None) -> None:
        self.__dict__.update(copy(base).__dict__)
        self._run_noise = luck
        if index is not None:
            for name in OF_DRAWS:
                self.__dict__.pop(name, None)
            self._keep = self._keep[index]
            self._new_model = self._new_model[:, index]
            self.log_stiffness_ratio = self.log_stiffness_ratio[index]

    def collapse_rate(self, settings: Settings) -> FloatArray:
        """Collapse rate per optimizer step at peak learning rate, shape (..., draws).

        Where the refresh map of a draw does not contract, a run dies as fast as any does: so a run
        that lives on speaks against such draws.
        """
        law = eq.hazard(self.laws["hazard"] @ eq.hazard_design(self.covariates(settings)))
        contracts = refresh_contracts(self, settings) > 0
        return np.asarray(np.where(contracts, law, eq.MOST_HAZARD))

    def p_stable(self, settings: Settings, exposure: float, level: FloatArray) -> FloatArray:
        """Probability of each draw to stay stable over an exposure, shape (draws,).

        Parameters
        ----------
        settings : Settings
        exposure : float
            Steps to come, weighted by (rate / peak)^2.
        level : ndarray of shape (draws,)
            Train reward at the end, as a share of floor to ceiling.
        """
        alive = np.exp(-self.collapse_rate(settings) * exposure)
        return np.asarray(alive * fluctuation_small(self, settings, level))
