"""Configurations under the posterior, one or many: reward, price, P(stable)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from advisor.advice.cost import Cost, CostModel, learn_cost
from advisor.advice.request import Budget, Objective, Request
from advisor.advice.support import is_supported, outside, piloted
from advisor.common import DEFAULT_SEED
from advisor.errors import InputError
from advisor.forecast import (
    SUPPORT,
    Forecaster,
    Stability,
    Target,
    final_reward,
    interval_of,
    pilots_of,
    stability,
    stability_and_draws,
)
from advisor.model import Posterior
from advisor.runs import CARRIED, Settings
from advisor.theory import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

CURVE_POINTS = 33
"""Steps at which a curve is asked for its way to a goal; between them it is interpolated."""

MOST = 1_000_000
"""No setting is larger: beyond it a number is a mistake of units."""

NAMED = (
    "learning_rate",
    "group_size",
    "minibatches_per_refresh",
    "epochs_per_refresh",
    "refresh_interval",
    "prompts_per_step",
)
"""Settings of a row of `what_if`."""


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
    """Evaluate configurations, once each; ``tried`` are those among which is chosen."""

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
        self._known: dict[Settings, Evaluation] = {}
        self._tried: dict[Settings, Evaluation] = {}
        self._curves: dict[tuple[Settings, int], FloatArray] = {}

    @property
    def tried(self) -> list[Evaluation]:
        """Everything that was on offer so far."""
        return list(self._tried.values())

    def __call__(self, settings: Settings) -> Evaluation:
        """Evaluate one configuration that is on offer."""
        return self._tried.setdefault(settings, self.compared(settings))

    def compared(self, settings: Settings) -> Evaluation:
        """Evaluate one configuration to compare with: what is on offer stays as it is."""
        if settings not in self._known:
            self._known[settings] = self._evaluate(settings)
        return self._known[settings]

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

    def steps_to(self, settings: Settings, steps: int, goal: float) -> float | None:
        """Step at which the mean curve of a run of so many steps reaches a reward, or None."""
        curve = self.mean_curve(settings, steps)
        if curve[-1] < goal:
            return None
        gain = curve[-1] - curve[0]
        share = 1.0 if gain <= 0 else (goal - curve[0]) / gain
        return steps_to_share(curve, curve_steps(steps), float(np.clip(share, 0.0, 1.0)))

    def _evaluate(self, settings: Settings) -> Evaluation:
        steps = self._steps(settings)
        planned = settings.planned_over(steps)
        reached = self.budget.steps_of(settings, self.cost) > 0
        if self.goal is not None:
            times = curve_steps(steps)
            chances = np.mean(self.forecaster.outcome(planned, times) >= self.goal, axis=0)
            found = first_reaching(chances, times, self.objective.confidence)
            reached = reached and found is not None
            steps = steps if found is None else max(1, int(np.ceil(found)))
        draws, utility, chance = _ends(self.forecaster, planned, steps)
        price = self.cost(planned, steps)
        if not reached:
            value = -np.inf
        elif self.objective.kind == "reward":
            value = self.objective.of(utility)
        elif self.objective.kind == "cheapest":
            value = -price.paid
        else:
            value = -steps * (self.cost.seconds_per_step(planned) or 1.0)
        return Evaluation(settings, float(draws.mean()), chance, price, value)


def _ends(
    forecaster: Forecaster, planned: Settings, steps: int
) -> tuple[FloatArray, FloatArray, Stability]:
    """Reward at the end of a run, its utility (the floor where the run is lost), P(stable)."""
    level = forecaster.scaled_reward(planned, steps)
    draws = forecaster.outcome_of(level)[:, 0]
    chance, lives = stability_and_draws(forecaster, planned, steps, level=level[:, 0])
    floor = forecaster.outcome_bounds[0]
    return draws, floor + lives * (draws - floor), chance


def utilities(
    forecaster: Forecaster, configurations: Iterable[Settings], steps: Iterable[int]
) -> FloatArray:
    """Utility of runs: by draw, the reward that each is expected to end with if it may be lost."""
    ends = zip(configurations, steps, strict=True)
    return np.array([_ends(forecaster, one.planned_over(last), last)[1] for one, last in ends])


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


def base_settings(posterior: Posterior, target: Target) -> Settings:
    """Settings that no advice changes: those of the first pilot of the target, else of any.

    What it does not tell and nothing is computed from is that of the others where they agree.
    """
    first, *others = (pilot.settings for pilot in pilots_of(posterior, target))
    agreed = {}
    for name in CARRIED:
        told = {getattr(other, name) for other in others} - {None}
        if getattr(first, name) is None and len(told) == 1:
            agreed[name] = told.pop()
    return first.model_copy(update=agreed)


def what_if(
    posterior: Posterior,
    request: Request | None = None,
    *,
    learning_rate: npt.ArrayLike | None = None,
    group_size: npt.ArrayLike | None = None,
    minibatches_per_refresh: npt.ArrayLike | None = None,
    epochs_per_refresh: npt.ArrayLike | None = None,
    prompts_per_step: npt.ArrayLike | None = None,
    steps: npt.ArrayLike | None = None,
) -> pd.DataFrame:
    """Evaluate settings under the posterior.

    Parameters
    ----------
    posterior : Posterior
    request : Request, optional
        Whose target, steps and price count, as in `advise`; `Study.what_if` repeats those of a
        saved answer, and its numbers.
    learning_rate, group_size, minibatches_per_refresh, epochs_per_refresh : array_like
    prompts_per_step, steps : array_like
        Broadcast against each other; what is not given is that of the target's first pilot, and
        three times the longest pilot for the steps.

    Returns
    -------
    table : pandas.DataFrame
        A row per configuration: the settings, mean of the reward at the last step with the 80 %
        interval of one run (the mean of its last tenth, as in the answer), P(stable) with its parts
        and its interval between tables or repositories, whether so long a run is supported by the
        pilots (three times the longest at most), the settings ``outside`` what any pilot ran (names
        with commas between, where the numbers are the prior's word), and the price.

    Raises
    ------
    InputError
        A value is impossible, or the shapes do not broadcast.
    """
    import pandas as pd

    changes = {
        "learning_rate": learning_rate,
        "group_size": group_size,
        "minibatches_per_refresh": minibatches_per_refresh,
        "epochs_per_refresh": epochs_per_refresh,
        "prompts_per_step": prompts_per_step,
        "steps": steps,
    }
    asked = request or Request()
    target = asked.target_in(posterior)
    if steps is None:
        changes["steps"] = asked.steps or int(SUPPORT * posterior.meta.longest)
    cost = learn_cost(posterior, target, gpus=asked.gpus, seconds_per_step=asked.seconds_per_step)
    forecaster = Forecaster(posterior, target, seed=DEFAULT_SEED)
    return pd.DataFrame(what_if_rows(forecaster, cost, base_settings(posterior, target), changes))


def what_if_rows(
    forecaster: Forecaster,
    cost: CostModel,
    base: Settings,
    changes: Mapping[str, npt.ArrayLike | None],
) -> list[dict[str, Any]]:
    """Rows of `what_if` for changes of ``base``, the steps among them, broadcast together."""
    named = {name: np.asarray(value) for name, value in changes.items() if value is not None}
    try:
        columns = np.broadcast_arrays(*named.values())
    except ValueError as error:
        shapes = ", ".join(f"{name} {value.shape}" for name, value in named.items())
        raise InputError(
            f"the settings do not broadcast: {shapes}",
            argument=", ".join(named),
            advice="Give one value or as many as the others",
        ) from error
    each = zip(*(column.ravel().tolist() for column in columns), strict=True)
    return [
        _row(forecaster, cost, _changed(base, dict(zip(named, values, strict=True))))
        for values in each
    ]


def _changed(base: Settings, changes: dict[str, float]) -> Settings:
    """Settings with changes that can be."""
    found: dict[str, float] = {}
    for name, value in changes.items():
        is_counted = name not in ("learning_rate", "prompts_per_step")
        is_whole = not is_counted or float(value).is_integer()
        least = 2 if name == "group_size" else int(is_counted)
        if not (least <= value <= MOST and value > 0 and is_whole):
            wanted = f"whole number from {least}" if least else "positive number"
            raise InputError(
                f"{name} {value:g} cannot be",
                argument=name,
                advice=f"Give a {wanted}, at most {MOST:,}",
            )
        field = "planned_steps" if name == "steps" else name
        found[field] = int(value) if is_counted else value
    return base.model_copy(update=found)


def _row(forecaster: Forecaster, price: CostModel, settings: Settings) -> dict[str, Any]:
    steps, posterior = settings.planned_steps or 0, forecaster.posterior
    point = float(forecaster.outcome(settings, [steps]).mean())
    reward = interval_of(final_reward(forecaster, settings, steps), mean=point)
    found, paid = stability(forecaster, settings, steps), price(settings, steps)
    return {
        **{name: getattr(settings, name) for name in NAMED},
        "steps": steps,
        "reward": reward.mean,
        "reward_low": reward.low,
        "reward_high": reward.high,
        "p_stable": found.probability,
        "p_refresh": found.refresh,
        "p_tolerance": found.tolerance,
        "p_fluctuation": found.fluctuation,
        "p_stable_low": found.low,
        "p_stable_high": found.high,
        "supported": is_supported(steps, posterior.meta.longest),
        "outside": ", ".join(outside(settings.model_dump(), piloted(posterior))),
        "completions": paid.completions,
        "gpu_hours": paid.gpu_hours,
    }
