"""Where runs do best: what is known before any pilot, moved by what pilots are forecast to become.

The end of a run is taken as a height, less a loss that grows with the squared decades from the
optimum, and faster above the best learning rate than below it, since there runs die. The prior of
the optimum is what other projects found; forecasts along a ladder of values are the evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from advisor.forecast.target import pilots_of
from advisor.model import DecisionRule, KnownOptimum
from advisor.runs import Settings
from advisor.theory import FloatArray

if TYPE_CHECKING:
    from advisor.forecast.forecaster import Forecaster

OPTIMA = np.linspace(-2.5, 2.5, 101)[:, None, None]
"""Decades from what is known at which the optimum may be."""

HEIGHTS = np.linspace(0.05, 1.0, 20)[:, None]
"""Ends at the optimum, as shares of the reward's range."""

LADDER_REACH = 3.0  # Factor by which the ladder goes beyond the pilots
WIDER = 3.0  # Decades on either side of the ladder at which the shift is known
LEAST_ERROR = 0.02  # Share of the reward's range by which any forecast errs

STACKED = {
    "learning_rate": ("learning_rate",),
    "group_size": ("group_size",),
    "refresh_interval": ("minibatches_per_refresh", "epochs_per_refresh"),
}
"""Axis along which an optimum may be known -> settings that make it up; the first one moves."""


def shift_of(forecaster: Forecaster, settings: Settings, steps: int) -> FloatArray:
    """By how much what is known moves the expected end, a share of the reward's range.

    Of stacked settings an array; zero where nothing is known.
    """
    priors = forecaster.posterior.meta.priors
    moved = np.zeros(np.shape(settings.learning_rate))
    if (known := priors.known_optimum) is None:
        return moved
    for axis, place in known.places.items():
        if (axis, steps) not in forecaster.known_shifts:
            ladder, ends = _ladder(forecaster, axis, steps)
            decades = np.log10(ladder / place)
            found = shifts_of(ends, decades, axis, known, priors.decision)
            forecaster.known_shifts[axis, steps] = found
        at = np.log10(np.asarray(getattr(settings, axis)) / place)
        moved = moved + np.interp(at, *forecaster.known_shifts[axis, steps])
    return np.asarray(moved)


def shifts_of(
    ends: FloatArray, decades: FloatArray, axis: str, known: KnownOptimum, rule: DecisionRule
) -> tuple[FloatArray, FloatArray]:
    """Places in decades from what is known, and by how much expected ends move there.

    ``ends`` has shape (places, draws), in shares of the reward's range, forecast at ``decades``.
    Forecasts of one project err together by ``rule.common_error``, so their level tells little,
    and the mean shift of those places is zero.
    """
    low, high = np.quantile(ends, [0.1, 0.9], axis=-1)
    # A normal's 80 % interval is 2.563 standard deviations wide.
    mean, variance = ends.mean(axis=-1), ((high - low) / 2.563) ** 2 + LEAST_ERROR**2
    everywhere = np.linspace(decades[0] - WIDER, decades[-1] + WIDER, 121)
    above = rule.loss_above if axis == "learning_rate" else rule.loss_below

    def made_at(places: FloatArray) -> FloatArray:
        """Ends there, shape (optima, heights, places)."""
        away = places - OPTIMA
        loss = np.where(away > 0, above, rule.loss_below) * away**2
        return np.asarray(HEIGHTS * (1 - np.minimum(loss, 1.0)))

    made = made_at(decades)
    precision = np.linalg.inv(np.diag(variance) + rule.common_error**2)
    misfit = np.einsum("ohi,ij,ohj->oh", mean - made, precision, mean - made)
    # Optima of projects differ as much among each other as their mean from a new one's.
    spread = rule.optimum_spread * np.sqrt(1 + 1 / known.projects)
    weight = np.exp(-0.5 * (misfit - misfit.min() + (OPTIMA[..., 0] / spread) ** 2))
    weight /= weight.sum()
    level = np.average(np.einsum("oh,ohi->i", weight, made) - mean, weights=1 / variance)
    expected = np.einsum("oh,ohi->i", weight, made_at(everywhere))
    return everywhere, expected - level - np.interp(everywhere, decades, mean)


def _ladder(forecaster: Forecaster, axis: str, steps: int) -> tuple[FloatArray, FloatArray]:
    """Values half a decade apart round the pilots', and ends there as shares (places, draws)."""
    pilots = pilots_of(forecaster.posterior, forecaster.target)
    own = next((run for run in pilots if run.collapse_step is None), pilots[0]).settings
    values = [getattr(run.settings, axis) for run in pilots]
    low, high = min(values) / LADDER_REACH, max(values) * LADDER_REACH
    ladder = np.geomspace(low, high, round(2 * np.log10(high / low)) + 1)
    if axis != "learning_rate":  # a group has two members
        ladder = np.unique(np.maximum(np.rint(ladder), 2 if axis == "group_size" else 1))
    names = [name for settings in STACKED.values() for name in settings]
    columns = {name: np.full(ladder.shape, getattr(own, name)) for name in names}
    first, *rest = STACKED[axis]
    columns |= {first: ladder} | {name: np.ones(ladder.size) for name in rest}
    columns["prompts_per_step"] = np.full(ladder.shape, own.prompts_per_step)
    planned = own.planned_over(steps).model_copy(update=columns)
    ends = forecaster.outcome_of(forecaster.scaled_reward(planned, steps))[..., 0]
    return ladder, (ends - forecaster.outcome_bounds[0]) / forecaster.outcome_range
