"""One configuration under the posterior: reward, price, P(stable)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from advisor.advice.cost import Cost, CostModel
from advisor.advice.request import Budget, Objective
from advisor.forecast import Forecaster, Stability, stability_and_draws
from advisor.runs import Settings
from advisor.theory import FloatArray, IntArray

CURVE_POINTS = 33
"""Steps at which a curve is asked for its way to a goal; between them it is interpolated."""


@dataclass(frozen=True)
class Evaluation:
    """A configuration under the posterior."""

    settings: Settings
    reward: float
    stability: Stability
    cost: Cost
    value: float

    def is_feasible(self, level: float) -> bool:
        """Whether it reaches its goal and keeps P(stable) at the level."""
        return self.stability.least >= level and self.value > -np.inf


class Evaluator:
    """Evaluate configurations, once each."""

    def __init__(
        self,
        forecaster: Forecaster,
        objective: Objective,
        budget: Budget,
        cost: CostModel,
        goal: float | None = None,
    ) -> None:
        self.forecaster = forecaster
        self.objective = objective
        self.budget = budget
        self.cost = cost
        self.goal = goal
        self._seen: dict[Settings, Evaluation] = {}
        self._curves: dict[tuple[Settings, int], FloatArray] = {}

    @property
    def tried(self) -> list[Evaluation]:
        """Everything evaluated so far."""
        return list(self._seen.values())

    def __call__(self, settings: Settings) -> Evaluation:
        """Evaluate one configuration."""
        if settings not in self._seen:
            self._seen[settings] = self._evaluate(settings)
        return self._seen[settings]

    def planned(self, settings: Settings) -> Settings:
        """Settings with the length that the budget gives them, which shapes a schedule."""
        return settings.planned_over(self._steps(settings))

    def _steps(self, settings: Settings) -> int:
        return max(1, self.budget.steps_of(settings, self.cost))

    def mean_curve(self, settings: Settings, steps: int) -> FloatArray:
        """Expected reward at `curve_steps` of a run of so many steps."""
        asked = settings, steps
        if asked not in self._curves:
            draws = self.forecaster.outcome(self.planned(settings), curve_steps(steps))
            self._curves[asked] = draws.mean(axis=0)
        return self._curves[asked]

    def _evaluate(self, settings: Settings) -> Evaluation:
        steps = self._steps(settings)
        planned = settings.planned_over(steps)
        reached = self.budget.steps_of(settings, self.cost) > 0
        if self.goal is not None:
            found = self._steps_to(self.goal, planned, steps)
            reached = reached and found is not None
            steps = steps if found is None else found
        level = self.forecaster.scaled_reward(planned, steps)
        draws = self.forecaster.outcome_of(level)[:, 0]
        price = self.cost(planned, steps)
        chance, lives = stability_and_draws(self.forecaster, planned, steps, level=level[:, 0])
        if not reached:
            value = -np.inf
        elif self.objective.kind == "reward":
            floor = self.forecaster.outcome_bounds[0]
            value = self.objective.of(floor + lives * (draws - floor))
        elif self.objective.kind == "cheapest":
            value = -price.paid
        else:
            value = -steps * (self.cost.seconds_per_step(planned) or 1.0)
        return Evaluation(
            settings,
            float(draws.mean()),
            chance,
            price,
            value,
        )

    def _steps_to(self, goal: float, settings: Settings, most: int) -> int | None:
        """First step by which the goal is reached with the objective's confidence, or None."""
        times = curve_steps(most)
        reached = np.mean(self.forecaster.outcome(settings, times) >= goal, axis=0)
        found = first_reaching(reached, times, self.objective.confidence)
        return None if found is None else max(1, int(np.ceil(found)))


def curve_steps(most: int) -> IntArray:
    """Steps from 0 to ``most``, close together at the start where a curve is steep."""
    spaced = most * np.linspace(0.0, 1.0, CURVE_POINTS) ** 2
    return np.unique(np.round(spaced).astype(np.int64))


def steps_to_share(curve: FloatArray, steps: npt.ArrayLike, share: float) -> float:
    """First step at which a mean curve has made a share of its gain, interpolated."""
    gain = curve[-1] - curve[0]
    found = first_reaching(curve, steps, curve[0] + share * gain) if gain > 0 else None
    return float(np.asarray(steps)[-1]) if found is None else found


def first_reaching(values: FloatArray, steps: npt.ArrayLike, level: float) -> float | None:
    """First step at which values reach a level, interpolated; None where none does."""
    times = np.asarray(steps, dtype=float)
    enough = values >= level
    if not enough.any():
        return None
    last = int(np.argmax(enough))
    if last == 0:
        return float(times[0])
    share = (level - values[last - 1]) / (values[last] - values[last - 1])
    return float(times[last - 1] + share * (times[last] - times[last - 1]))


def undominated(evaluations: list[Evaluation]) -> list[Evaluation]:
    """Frontier of reward against price against risk: none is better in all three."""
    merits = np.array(
        [[e.reward, -e.cost.paid, e.stability.probability] for e in evaluations], dtype=float
    )
    kept = []
    for index, own in enumerate(merits):
        is_beaten = np.any(np.all(merits >= own, axis=1) & np.any(merits > own, axis=1))
        if not is_beaten:
            kept.append(evaluations[index])
    return sorted(kept, key=lambda e: (e.cost.paid, -e.reward))
