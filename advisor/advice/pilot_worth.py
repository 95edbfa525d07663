"""What is worth doing with a few pilots: what it is expected to teach, less what it costs.

Whatever pilots cost, the full run is shorter by. So the worth of some actions (finish a pilot,
start one, extend one) is the reward that the full run then reaches: what is decided best on the
steps that are left, with the gain by what the actions would show (`advisor.advice.pilot_worth`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from advisor.advice.cost import fresh_completions
from advisor.forecast import Forecaster, rest_stable, stability_draws
from advisor.model import planned_factors
from advisor.runs import Settings
from advisor.theory import FloatArray

ROUNDING = 1e-9
"""Of shares that are added up."""


@dataclass(frozen=True, eq=False)
class Action:
    """Something that can be done before the full run."""

    name: str
    kind: Literal["start", "continue", "extend", "new"]
    settings: Settings
    begun: int
    steps: int
    price: float
    stable: float
    look: FloatArray = field(repr=False)

    @classmethod
    def of(
        cls,
        forecaster: Forecaster,
        name: str,
        kind: Literal["start", "continue", "extend", "new"],
        settings: Settings,
        steps: tuple[int, int],
        price: float,
    ) -> Action:
        """Simulate what a pilot would show between two steps; its forecaster has its own effects.

        Many parameters because: it names the action and what is simulated of it.
        """
        begun, last = steps
        planned = settings.planned_over(last)
        if begun:
            factors = planned_factors(planned, last)[begun:]
            level = forecaster.scaled_reward(planned, last)[:, 0]
            stable = rest_stable(forecaster, planned, float(np.sum(factors**2)), level)
        else:
            stable = stability_draws(forecaster, planned, last)
        rng = np.random.default_rng([forecaster.seed, *name.encode(), last])
        look = shown(forecaster, settings, last, stable, rng, begun=begun)
        return cls(name, kind, settings, begun, last, price, float(stable.mean()), look)


@dataclass
class Worth:
    """Worth of actions under one forecaster of the full run."""

    forecaster: Forecaster
    offered: Sequence[Settings]
    whole: Settings
    steps: int
    spent: float
    room: float
    _utilities: dict[int, FloatArray] = field(default_factory=dict, repr=False)
    _gains: dict[frozenset[str], float] = field(default_factory=dict, repr=False)

    def left(self, actions: Sequence[Action] = ()) -> int:
        """Steps that the same money leaves for the full run."""
        price = self.spent + sum(action.price for action in actions)
        return max(1, round((1 - price) * self.steps))

    def affords(self, actions: Sequence[Action]) -> bool:
        """Whether there is room for the price of some actions."""
        return sum(action.price for action in actions) <= self.room + ROUNDING

    def untold(self, actions: Sequence[Action] = ()) -> float:
        """Reward of the best decision as it stands, on what the actions leave; in the range."""
        return float(self._utility(self.left(actions)).mean(axis=1).max())

    def gain(self, actions: Sequence[Action]) -> float:
        """Expected rise of that reward by what the actions show, as a share of the range."""
        key = frozenset(f"{action.name} {action.steps}" for action in actions)
        if key not in self._gains:
            looks = [action.look for action in actions]
            rng = np.random.default_rng([self.forecaster.seed, 2])
            utility = self._utility(self.left(actions))
            self._gains[key] = information_gain(utility, np.hstack(looks), rng) if looks else 0.0
        return self._gains[key]

    def __call__(self, actions: Sequence[Action]) -> float:
        """Expected reward of the full run after some actions, as a share of the range."""
        return self.untold(actions) + self.gain(actions)

    def _utility(self, left: int) -> FloatArray:
        if left not in self._utilities:
            low, high = self.forecaster.outcome_bounds
            lasts = [max(1, round(left / self._times(one))) for one in self.offered]
            found = utilities(self.forecaster, self.offered, lasts)
            self._utilities[left] = (found - low) / (high - low)
        return self._utilities[left]

    def _times(self, settings: Settings) -> float:
        """Price of a step over that of a step of the full run as it was planned."""
        return fresh_completions(settings) / fresh_completions(self.whole)


def worthwhile(worth: Worth, rest: Sequence[Action], more: Sequence[Action]) -> list[Action]:
    """Actions to take together: none of them could be left out, and none is missing."""
    kept: list[Action] = []
    for action in rest:
        if worth.affords([*kept, action]):
            kept.append(action)
    while kept:
        without = [[one for one in kept if one is not action] for action in kept]
        best = max(without, key=worth)
        if worth(kept) - worth(best) > IDLE:
            break
        kept = best
    while True:
        further = [[*kept, one] for one in (*rest, *more) if one not in kept]
        further = [actions for actions in further if worth.affords(actions)]
        best = max(further, key=worth, default=kept)
        if worth(best) - worth(kept) <= IDLE:
            return kept
        kept = best


def margin(worth: Worth, kept: Sequence[Action], action: Action) -> tuple[float, float]:
    """What one action adds to others, and what its price would have been worth as training."""
    without = [one for one in kept if one is not action]
    both = [*without, action]
    return worth.gain(both) - worth.gain(without), worth.untold(without) - worth.untold(both)


LOOKS = (1 / 3, 2 / 3, 1.0)
"""Shares of what is to come of a pilot at which its reward is looked at; each time a third of its
rows is averaged."""

IDLE = 0.001
"""Gain, as a share of the reward range, up to which what is done changes nothing worth doing."""

SHUFFLES = 2
"""Times that results are dealt to the wrong draws, to see what the regression finds in noise."""


def utilities(
    forecaster: Forecaster,
    configurations: Sequence[Settings],
    steps: Sequence[int],
) -> FloatArray:
    """Reward at the end of a run, or the floor where it is lost, shape (configurations, draws)."""
    floor = forecaster.outcome_bounds[0]
    out = []
    for settings, last in zip(configurations, steps, strict=True):
        planned = settings.planned_over(last)
        level = forecaster.scaled_reward(planned, last)
        stable = stability_draws(forecaster, planned, last, level=level[:, 0])
        out.append(floor + stable * (forecaster.outcome_of(level)[:, 0] - floor))
    return np.array(out)


def shown(
    forecaster: Forecaster,
    pilot: Settings,
    steps: int,
    stable: FloatArray,
    rng: np.random.Generator,
    *,
    begun: int = 0,
) -> FloatArray:
    """What a pilot would show under each draw after its first steps, shape (draws, features).

    Those ``begun`` are behind it; without any it is a pilot that has yet to start.

    Whether it collapses (``stable`` is the probability that it does not, shape (draws,)), and,
    where it does not, its reward at three points with its wander and the noise of its batches:
    those of a new seed.
    """
    planned = pilot.planned_over(steps)
    times = np.maximum(1, np.round(begun + np.array(LOOKS) * (steps - begun))).astype(int)
    level = np.clip(forecaster.scaled_reward(planned, times), 0.01, 0.99)
    rows = max(1.0, (steps - begun) / len(LOOKS)) * pilot.prompts_per_step
    noise = np.sqrt(level * (1 - level) / rows)
    wander = np.exp(forecaster.population["log_misfit"])[:, None] * rng.standard_normal(
        (level.shape[0], 1)
    )
    seen = level + wander + noise * rng.standard_normal(level.shape)
    collapses = rng.random(level.shape[0]) > stable
    seen[collapses] = 0.0
    middle = seen[~collapses].mean(axis=0) if not collapses.all() else 0.0
    centred = np.where(collapses[:, None], 0.0, seen - middle)
    return np.column_stack(
        [
            np.ones(level.shape[0]),
            collapses.astype(float),
            centred,
            centred**2,
            centred[:, :1] * centred[:, -1:],
        ]
    )


def information_gain(utility: FloatArray, features: FloatArray, rng: np.random.Generator) -> float:
    """Expected gain of the decision by a pilot's result, in units of the utility."""
    orders = [np.arange(features.shape[0])]
    orders += [rng.permutation(features.shape[0]) for _ in range(SHUFFLES)]
    found = [_best_expected(utility, features[order]) for order in orders]
    return max(0.0, found[0] - float(np.mean(found[1:])))


def _best_expected(utility: FloatArray, features: FloatArray) -> float:
    # Products of BLAS start threads, which on a busy machine wait for each other ten times as long
    # as these small sums take.
    gram = np.einsum("di,dj->ij", features, features)
    # A tiny ridge: columns that are all zero (no draw collapses) must not break the solve.
    gram += 1e-9 * np.trace(gram) * np.eye(gram.shape[0])
    weights = np.linalg.solve(gram, np.einsum("di,cd->ic", features, utility))
    fitted = np.einsum("di,ic->dc", features, weights)
    return float(fitted.max(axis=1).mean())
