"""Learn the line on which P(stable) lies in truth, from what was said and what came."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from advisor.forecast.survival import log_odds, on_line, shrinkage
from advisor.model import sigmoid
from advisor.theory import FloatArray

INTERCEPT_SD, SLOPE_SD, NORM_SD = 2.0, 0.5, 2.0
"""Of the prior: without data P(stable) is what was said."""

LEAST_SPREAD = 0.3
"""Spread between groups below which none is believed: few groups cannot show that they agree."""

ROUNDS, STEPS = 30, 25


class Line(NamedTuple):
    """Log-odds of having lived, on those that were said.

    ``update_norm`` is the slope on the log norm of an Adam update, ``spread`` the deviation of the
    intercept between groups.
    """

    intercept: float
    slope: float
    update_norm: float
    spread: float

    def __call__(self, said: npt.ArrayLike, log_norm: npt.ArrayLike = 0.0) -> FloatArray:
        """Probabilities expected of an unseen group, of the shape of ``said``."""
        by = shrinkage(self.spread)
        return on_line(by * self.intercept, by * self.slope, by * self.update_norm, said, log_norm)


def learn_line(
    said: npt.ArrayLike,
    lived: npt.ArrayLike,
    group: npt.ArrayLike,
    runs: dict[str, int] | None = None,
    log_norm: npt.ArrayLike | None = None,
) -> Line:
    """Learn a line whose intercept varies between groups.

    Parameters
    ----------
    said : array_like of shape (forecasts,)
        P(stable).
    lived : array_like of shape (forecasts,)
        Whether the run was stable.
    group : array_like of shape (forecasts,)
        Table or repository of each.
    runs : dict of str to int, optional
        Distinct trained runs of a group: its forecasts weigh as many [default: each weighs one].

    log_norm : array_like of shape (forecasts,), optional
        Log norm of an Adam update (`stability.log_update_norm`) [default: no term in it].

    Returns
    -------
    line : Line
        Penalised likelihood, intercepts normal round their mean; slope near 1 unless told.
    """
    odds, came = log_odds(said), np.asarray(lived, dtype=float)
    names, place = np.unique(np.asarray(group), return_inverse=True)
    size = np.bincount(place)
    weight = np.ones(came.size)
    if runs is not None:
        weight = np.array([runs[str(name)] for name in names])[place] / size[place]
    columns = [odds] if log_norm is None else [odds, np.asarray(log_norm, dtype=float)]
    design = np.column_stack(columns)
    believed = np.array([1.0, 0.0])[: len(columns)]
    precisions = 1 / np.array([SLOPE_SD, NORM_SD])[: len(columns)] ** 2
    own, mean, slopes, spread = np.zeros(names.size), 0.0, believed.copy(), 1.0
    for _ in range(ROUNDS):
        for _ in range(STEPS):
            p = sigmoid(own[place] + design @ slopes)
            bend = weight * p * (1 - p)
            lean = np.bincount(place, weight * (came - p)) - (own - mean) / spread**2
            own = own + lean / (np.bincount(place, bend) + 1 / spread**2)
            p = sigmoid(own[place] + design @ slopes)
            bend = weight * p * (1 - p)
            pull = design.T @ (weight * (came - p)) - precisions * (slopes - believed)
            curvature = (design * bend[:, None]).T @ design + np.diag(precisions)
            slopes = slopes + np.linalg.solve(curvature, pull)
        variance = 1 / (np.bincount(place, bend) + 1 / spread**2)
        precision = names.size / spread**2
        mean = float(own.sum() / spread**2 / (precision + 1 / INTERCEPT_SD**2))
        spread = max(float(np.sqrt(np.mean((own - mean) ** 2 + variance))), LEAST_SPREAD)
    norm = 0.0 if log_norm is None else float(slopes[1])
    return Line(mean, float(slopes[0]), norm, spread)
