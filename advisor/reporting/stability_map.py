"""Figure: where a run stays stable, over learning rate, refresh interval and group size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.advice.candidates import default_lattice
from advisor.forecast.forecaster import Forecaster
from advisor.forecast.stability import stability
from advisor.model.posterior import Posterior
from advisor.reporting.names import level_text, scientific
from advisor.run.pilot_run import Hyperparameters
from advisor.theory.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from advisor.advice import Recommendation


MAP_DRAWS = 400
"""Draws behind the map: Monte Carlo error of a probability is at most .025."""

RATES = 25
MIN_ROWS, MAX_ROWS = 4, 8
MAX_PANELS = 4

RATE_PAD = 1.3
"""Factor by which the axis reaches beyond all rates offered and piloted."""

SAME_GROUP = 2**0.5
"""A mark stands in a panel when its group size is within this factor of the panel's."""


@dataclass(frozen=True)
class Mark:
    """A named point of the map.

    Attributes
    ----------
    name : str
    learning_rate : float
    interval : int
        K, optimizer steps per refresh.
    group_size : int
    panel : int
        Panel with the nearest group size.
    """

    name: str
    learning_rate: float
    interval: int
    group_size: int
    panel: int


@dataclass(frozen=True)
class StabilityMap:
    """The whole figure.

    Attributes
    ----------
    learning_rate : ndarray of shape (rates,)
    interval : ndarray of shape (intervals,)
        K, optimizer steps per refresh, at the advised epochs.
    group_size : ndarray of shape (panels,)
    probability : ndarray of shape (panels, intervals, rates)
        P(stable) by the planned step.
    level : float
        P(stable) wanted.
    limit : ndarray of shape (panels, intervals)
        Learning rate at which P(stable) first falls below the level; NaN where it is below
        everywhere, the last rate where it never falls.
    steps, epochs : int
        Horizon in optimizer steps; passes over one batch of rollouts.
    advised, next_pilot : Mark or None
    recipes : tuple of Mark
    pilot_rate, pilot_interval : ndarray of shape (pilots,)
        Of every pilot, of whatever model and task: all of them inform the map.
    pilot_panel : ndarray of shape (pilots,)
        Panel of each pilot; -1 where none has its group size.
    pilot_collapsed, pilot_of_target : ndarray of shape (pilots,), bool
        Whether it collapsed, and whether it trained the target's model on the target's task.
    other_groups : tuple of int
        Group sizes offered that have no panel.
    """

    learning_rate: FloatArray
    interval: IntArray
    group_size: IntArray
    probability: FloatArray
    level: float
    limit: FloatArray
    steps: int
    epochs: int
    advised: Mark
    next_pilot: Mark | None
    recipes: tuple[Mark, ...]
    pilot_rate: FloatArray
    pilot_interval: FloatArray
    pilot_panel: IntArray
    pilot_collapsed: BoolArray
    pilot_of_target: BoolArray
    other_groups: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """What the figure shows, for those who do not see it."""
        parts = [
            f"Probability that a run stays stable for {self.steps} steps, over learning rate and "
            f"refresh interval K, one panel per group size."
        ]
        row = int(np.argmin(np.abs(self.interval - self.advised.interval)))
        for group, limits in zip(self.group_size, self.limit, strict=True):
            end = limits[row]
            if np.isnan(end):
                found = f"below {level_text(self.level)} at every learning rate"
            elif end >= self.learning_rate[-1]:
                found = f"at least {level_text(self.level)} at every learning rate drawn"
            else:
                found = f"at least {level_text(self.level)} up to learning rate {scientific(end)}"
            parts.append(f"Group size {group}, K {self.interval[row]}: {found}.")
        star = self.advised
        parts.append(
            f"{star.name.capitalize()}: learning rate {scientific(star.learning_rate)}, "
            f"group size {star.group_size}, K {star.interval}."
        )
        return " ".join(parts)

    @property
    def note(self) -> str:
        """What the figure leaves out, if anything."""
        hidden = int(np.sum(self.pilot_panel < 0))
        parts = []
        if self.other_groups:
            sizes = ", ".join(map(str, self.other_groups))
            parts.append(f"Also offered, but not drawn: group size {sizes}.")
        if hidden:
            parts.append(
                f"{hidden} pilot{'s' if hidden > 1 else ''} of other group sizes not drawn."
            )
        return " ".join(parts)


NAMES = {"recommendation": "advised", "next_pilot": "best pilot", "infeasible": "safest found"}


def stability_map_info(
    posterior: Posterior, recommendation: Recommendation, *, draws: int = MAP_DRAWS
) -> StabilityMap:
    """Evaluate P(stable) around a recommendation.

    Parameters
    ----------
    posterior : Posterior
    recommendation : Recommendation
        Its target, steps, level and epochs are those of the map.
    draws : int
        Thinned evenly out of the posterior; the same for all configurations.

    Returns
    -------
    info : StabilityMap
        The advised group size and its neighbours among those that could be chosen.
    """
    settings, meta = recommendation.settings, posterior.meta
    lattice = default_lattice(posterior, settings)
    epochs = settings.epochs_per_refresh or 1
    sizes = recommendation.choices.get("group_size", lattice.axes["group_size"])
    offered = {*map(int, sizes), settings.group_size or 1}
    groups = _around(sorted(offered), settings.group_size)
    pilots = [run.hyperparameters for run in meta.runs]
    pilot_rate = np.array([run["learning_rate"] for run in pilots], dtype=float)
    pilot_interval = np.array(
        [run["minibatches_per_refresh"] * run["epochs_per_refresh"] for run in pilots], dtype=float
    )
    blue = [settings, *([recommendation.next_pilot.settings] if recommendation.next_pilot else [])]
    reach = [*pilot_rate, *lattice.axes["learning_rate"], *(s.learning_rate or 1.0 for s in blue)]
    rates = np.geomspace(min(reach) / RATE_PAD, max(reach) * RATE_PAD, RATES)
    highest = max(*pilot_interval, *(s.refresh_interval or 1 for s in blue))
    rows = int(np.clip(np.ceil(np.log2(highest / epochs)) + 2, MIN_ROWS, MAX_ROWS))
    minibatches = 2 ** np.arange(rows)

    forecaster = Forecaster(posterior, recommendation.target, draws=draws)

    def stable(group: int, count: int, rate: float) -> float:
        configuration = settings.model_copy(
            update={
                "learning_rate": rate,
                "group_size": group,
                "minibatches_per_refresh": count,
            }
        )
        return stability(forecaster, configuration, recommendation.steps).probability

    probability = np.array(
        [
            [[stable(group, int(count), float(rate)) for rate in rates] for count in minibatches]
            for group in groups
        ]
    )
    pilot = recommendation.next_pilot
    target = (recommendation.target.task, recommendation.target.model)
    panels = [_panel(groups, run["group_size"]) for run in pilots]
    return StabilityMap(
        learning_rate=rates,
        interval=minibatches * epochs,
        group_size=np.array(groups),
        probability=probability,
        level=recommendation.level,
        limit=np.apply_along_axis(_limit, 2, probability, rates, recommendation.level),
        steps=recommendation.steps,
        epochs=epochs,
        advised=_mark(NAMES[recommendation.kind], settings, groups),
        next_pilot=None if pilot is None else _mark("next pilot", pilot.settings, groups),
        recipes=tuple(_mark(r.name, r.settings, groups) for r in recommendation.recipes),
        pilot_rate=pilot_rate,
        pilot_interval=pilot_interval,
        pilot_panel=np.array(
            [
                panel if _is_near(groups[panel], run["group_size"]) else -1
                for panel, run in zip(panels, pilots, strict=True)
            ]
        ),
        pilot_collapsed=np.array([run.collapse_step is not None for run in meta.runs]),
        pilot_of_target=np.array([(run.task, run.model) == target for run in meta.runs]),
        other_groups=tuple(sorted(offered - set(groups))),
    )


def _around(offered: list[int], group: int | None) -> list[int]:
    """At most ``MAX_PANELS`` neighbours of a group size, itself among them."""
    index = offered.index(group or 1)
    first = max(0, min(index - 1, len(offered) - MAX_PANELS))
    return offered[first : first + MAX_PANELS]


def _mark(name: str, of: Hyperparameters, groups: list[int]) -> Mark:
    group = of.group_size or 1
    return Mark(
        name, of.learning_rate or 0.0, of.refresh_interval or 1, group, _panel(groups, group)
    )


def _panel(groups: list[int], group: int) -> int:
    return int(np.argmin(np.abs(np.log(np.array(groups) / group))))


def _is_near(group: int, other: int) -> bool:
    return bool(max(group / other, other / group) <= SAME_GROUP)


def _limit(probability: FloatArray, rates: FloatArray, level: float) -> float:
    """Rate at which the probability first falls below the level, interpolated in its log."""
    below = np.flatnonzero(probability < level)
    if below.size == 0:
        return float(rates[-1])
    first = int(below[0])
    if first == 0:
        return float("nan")
    before, after = probability[first - 1], probability[first]
    share = (before - level) / (before - after)
    return float(rates[first - 1] * (rates[first] / rates[first - 1]) ** share)
