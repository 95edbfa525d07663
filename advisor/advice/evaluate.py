"""Configurations under the posterior, one or many: reward, price, P(stable)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from statistics import mode
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from advisor.advice.candidates import AXES
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
    shift_of,
    stabilities_and_draws,
    stability,
)
from advisor.model import Posterior
from advisor.runs import Settings
from advisor.theory import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

CURVE_POINTS = 33
"""Steps at which a curve is asked for its way to a goal; between them it is interpolated."""

MOST = 1_000_000  # No setting is larger: beyond it a number is a mistake of units

NAMED = (*AXES[:-1], "refresh_interval", AXES[-1])  # Settings of a row of `what_if`


@dataclass(frozen=True)
class Evaluation:
    """A configuration under the posterior."""

    settings: Settings
    planned: Settings  # with the length that the budget gives it, which shapes a schedule
    reward: float
    stability: Stability
    cost: Cost
    value: float
    # By draw: the reward that it is expected to end with if it may be lost.
    utility: FloatArray = field(compare=False, repr=False)

    @property
    def stable(self) -> float:
        """P(stable)."""
        return self.stability.probability

    def is_feasible(self, level: float) -> bool:
        """Whether it reaches its goal and keeps P(stable) at the level."""
        return self.stable >= level and self.value > -np.inf


@dataclass(eq=False)
class Evaluator:
    """Evaluate configurations, once each; ``tried`` are those among which is chosen."""

    forecaster: Forecaster
    objective: Objective
    budget: Budget
    cost: CostModel
    goal: float | None = None
    _known: dict[Settings, Evaluation] = field(default_factory=dict, init=False, repr=False)
    _tried: dict[Settings, Evaluation] = field(default_factory=dict, init=False, repr=False)
    _curves: dict[Evaluation, FloatArray] = field(default_factory=dict, init=False, repr=False)

    @property
    def tried(self) -> list[Evaluation]:
        """Everything that was on offer so far."""
        return list(self._tried.values())

    def __call__(self, settings: Settings) -> Evaluation:
        """Evaluate one configuration that is on offer."""
        if settings not in self._tried:
            (self._tried[settings],) = self.compared([settings])
        return self._tried[settings]

    def compared(self, configurations: Iterable[Settings]) -> list[Evaluation]:
        """Evaluate configurations, faster together; what is on offer stays as it is."""
        asked = list(configurations)
        new = [one for one in dict.fromkeys(asked) if one not in self._known]
        paid = [self.budget.steps_of(one, self.cost) for one in new]
        steps = [max(1, most) for most in paid]
        if self.goal is not None:
            for one, last in zip(new, steps, strict=True):
                self._known[one] = self._towards_goal(self.goal, one, last)
            return [self._known[one] for one in asked]
        runs = [one.planned_over(last) for one, last in zip(new, steps, strict=True)]
        prices = list(map(self.cost, new, steps))
        for places, planned, last in stacked(runs, steps, self.forecaster.size):
            draws, utility, chances, _ = run_ends(self.forecaster, planned, last)
            values = list(map(self.objective.of, utility))
            ends = zip(places, draws, utility, values, chances, strict=True)
            for place, own, worth, value, chance in ends:
                self._known[new[place]] = Evaluation(
                    new[place],
                    runs[place],
                    float(own.mean()),
                    chance,
                    prices[place],
                    value if paid[place] > 0 else -np.inf,
                    worth,
                )
        return [self._known[one] for one in asked]

    def prepare_curves(self, runs: Iterable[Evaluation]) -> None:
        """Compute the mean curves of runs together."""
        new = [run for run in runs if run not in self._curves]
        planned, steps = [run.planned for run in new], [run.cost.steps for run in new]
        for places, of, last in stacked(planned, steps, self.forecaster.size * CURVE_POINTS):
            curves = self.forecaster.outcome(of, curve_steps(last)).mean(axis=-2)
            self._curves.update(zip([new[place] for place in places], curves, strict=True))

    def steps_to(self, run: Evaluation, goal: float) -> float | None:
        """Step at which the mean curve of a run reaches a reward, or None."""
        self.prepare_curves([run])
        return first_reaching(self._curves[run], curve_steps(run.cost.steps), goal)

    def seconds_to(self, runs: Sequence[Evaluation], goal: float) -> list[float]:
        """Times of runs to a reward, in steps where the time of a step is unknown."""
        self.prepare_curves(runs)
        steps = [self.steps_to(one, goal) for one in runs]
        paces = [self.cost.seconds_per_step(one.settings) or 1 for one in runs]
        return [np.inf if n is None else n * one for n, one in zip(steps, paces, strict=True)]

    def _towards_goal(self, goal: float, settings: Settings, steps: int) -> Evaluation:
        """Evaluate a configuration that is to reach a goal within so many steps."""
        planned, times = settings.planned_over(steps), curve_steps(steps)
        chances = np.mean(self.forecaster.outcome(planned, times) >= goal, axis=0)
        found = first_reaching(chances, times, self.objective.confidence)
        if found is not None:
            interval = settings.refresh_interval
            steps = min(steps, interval * max(1, int(np.ceil(found / interval))))
        draws, worth, (chance,), _ = run_ends(self.forecaster, planned, steps)
        price, value = self.cost(planned, steps), -np.inf
        if found is not None and self.budget.steps_of(settings, self.cost) > 0:
            time = steps * (self.cost.seconds_per_step(planned) or 1.0)
            value = -price.paid if self.objective.kind == "cheapest" else -time
        reward = float(draws.mean())
        return Evaluation(settings, planned, reward, chance, price, value, worth)


def stacked(
    configurations: Sequence[Settings], steps: Iterable[int], numbers: int
) -> Iterator[tuple[list[int], Settings, int]]:
    """Places of configurations alike but for `AXES`, these as arrays, and their steps."""
    groups: dict[tuple[Settings, int], list[int]] = {}
    for place, (one, last) in enumerate(zip(configurations, steps, strict=True)):
        same = one.model_copy(update=dict.fromkeys(AXES, 0))
        groups.setdefault((same, last), []).append(place)
    # An array holds configurations by draws (by steps): 32 MB.
    most = max(1, 4_000_000 // numbers)
    for (same, last), found in groups.items():
        for places in (found[at : at + most] for at in range(0, len(found), most)):
            own = [configurations[place] for place in places]
            columns = {name: np.array([getattr(one, name) for one in own]) for name in AXES}
            yield places, same.model_copy(update=columns), last


def run_ends(
    forecaster: Forecaster, planned: Settings, steps: int
) -> tuple[FloatArray, FloatArray, list[Stability], FloatArray]:
    """Reward at the end of runs, their utility, P(stable), and draws of that.

    A lost run is worth the floor; as many are lost as P(stable) says. What is known of where such
    runs do best moves the utility of those that live: the less the pilots tell, the more.
    """
    level = forecaster.scaled_reward(planned, steps)
    draws = forecaster.outcome_of(level)[..., 0]
    chances, lives = stabilities_and_draws(forecaster, planned, steps, level=level[..., 0])
    low, high = forecaster.outcome_bounds
    moved = forecaster.outcome_range * shift_of(forecaster, planned, steps)[..., None]
    alive = moved_to(lives, np.reshape([one.probability for one in chances], lives[..., :1].shape))
    utility = low + alive * (np.clip(draws + moved, low, high) - low)
    return draws, utility, chances, lives


def moved_to(lives: FloatArray, share: FloatArray) -> FloatArray:
    """P(stable) by draw, shape (..., draws), moved towards 0 or 1 until its mean is ``share``."""
    mean = lives.mean(axis=-1, keepdims=True)
    more = 1 - (1 - lives) * (1 - share) / np.maximum(1 - mean, 1e-9)
    return np.asarray(np.where(share > mean, more, lives * share / np.maximum(mean, 1e-9)))


def utilities(
    forecaster: Forecaster, configurations: Sequence[Settings], steps: Sequence[int]
) -> FloatArray:
    """Utility of runs: by draw, the reward that each is expected to end with if it may be lost."""
    runs = [one.planned_over(last) for one, last in zip(configurations, steps, strict=True)]
    found = np.empty((len(runs), forecaster.size))
    for places, planned, last in stacked(runs, steps, forecaster.size):
        found[places] = run_ends(forecaster, planned, last)[1]
    return found


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
    """Settings that no advice changes: the first pilot's; the usual KL and adapter."""
    pilots = pilots_of(posterior, target)
    first, *others = (pilot.settings for pilot in pilots)
    lived = [pilot.settings for pilot in pilots if pilot.collapse_step is None]
    names = ("kl_coefficient", "adapter")
    agreed: dict[str, Any] = {n: mode(getattr(s, n) for s in lived or [first]) for n in names}
    for name in Settings.CARRIED:
        stated = {getattr(other, name) for other in others} - {None}
        if getattr(first, name) is None and len(stated) == 1:
            agreed[name] = stated.pop()
    return first.model_copy(update=agreed)


def what_if(
    posterior: Posterior, request: Request | None = None, **changes: npt.ArrayLike | None
) -> pd.DataFrame:
    """Evaluate settings under the posterior.

    Parameters
    ----------
    posterior : Posterior
    request : Request, optional
        Whose target, steps and price count, as in `advise`; `Study.what_if` repeats those of a
        saved answer, and its numbers.
    **changes : array_like
        ``learning_rate``, ``group_size``, ``minibatches_per_refresh``, ``epochs_per_refresh``,
        ``prompts_per_step`` and ``steps``, broadcast against each other. What is not given is that
        of the target's first pilot, and three times the longest pilot for the steps.

    Returns
    -------
    table : pandas.DataFrame
        A row per configuration: the settings, the reward, P(stable) and the price. The reward is
        the mean at the last step, with the 80 % interval of one run (the mean of its last tenth).
        P(stable) has its parts and its interval between tables or repositories. A run of more than
        three times the longest pilot is not supported. ``outside`` names settings that no pilot
        ran, with commas between; there the numbers come from the prior.
    """
    import pandas as pd

    runs = posterior.meta.runs
    asked = (request or Request()).in_steps(run.settings.refresh_interval for run in runs)
    target = asked.target_in(posterior)
    if changes.get("steps") is None:
        changes["steps"] = asked.steps or int(SUPPORT * posterior.meta.longest)
    cost = learn_cost(posterior, target, gpus=asked.gpus, seconds_per_step=asked.seconds_per_step)
    forecaster = Forecaster(posterior, target, seed=DEFAULT_SEED)
    return pd.DataFrame(what_if_rows(forecaster, cost, base_settings(posterior, target), changes))


def what_if_rows(
    forecaster: Forecaster,
    cost: CostModel,
    base: Settings,
    changes: Mapping[str, npt.ArrayLike | None],
    at_step: int | None = None,
) -> list[dict[str, Any]]:
    """Rows of `what_if` for changes of ``base``, the steps among them, broadcast together.

    With ``at_step`` a run of ``base`` has done so many steps when the changes come: what is said
    holds for one that is alive by then.
    """
    for name in changes.keys() - {*AXES, "steps"}:
        near = get_close_matches(name, (*AXES, "steps"), 1, 0.0)[0]
        raise InputError(f"there is no setting '{name}'", advice=f"Write {near}")
    named = {name: np.asarray(value) for name, value in changes.items() if value is not None}
    try:
        columns = np.broadcast_arrays(*named.values())
    except ValueError as error:
        shapes = ", ".join(f"{name} {value.shape}" for name, value in named.items())
        problem = f"the settings do not broadcast: {shapes}"
        advice = "Give one value or as many as the others"
        raise InputError(problem, argument=", ".join(named), advice=advice) from error
    each = zip(*(column.ravel().tolist() for column in columns), strict=True)
    changed = (_changed(base, dict(zip(named, values, strict=True))) for values in each)
    return [_row(forecaster, cost, settings, base, at_step) for settings in changed]


def _changed(base: Settings, changes: dict[str, float]) -> Settings:
    """Settings with changes that can be."""
    found: dict[str, float] = {}
    for name, value in changes.items():
        is_counted = name not in ("learning_rate", "prompts_per_step")
        is_number = isinstance(value, int | float)
        least = 2 if name == "group_size" else int(is_counted)
        is_whole = is_number and (not is_counted or float(value).is_integer())
        if not (is_whole and least <= value <= MOST and value > 0):
            wanted = f"whole number from {least}" if least else "positive number"
            problem = f"{name} {value:g} cannot be" if is_number else f"{value!r} is no {name}"
            advice = f"Give a {wanted}, at most {MOST:,}"
            raise InputError(problem, argument=name, advice=advice)
        field = "planned_steps" if name == "steps" else name
        found[field] = int(value) if is_counted else value
    return base.model_copy(update=found)


def _row(
    forecaster: Forecaster,
    price: CostModel,
    settings: Settings,
    base: Settings,
    at_step: int | None,
) -> dict[str, Any]:
    steps, posterior = settings.planned_steps or 0, forecaster.posterior
    rest, done = steps - (at_step or 0), 0
    paid = [price(settings, rest)]
    if at_step is not None:
        _check_change(settings, at_step)
        paid.append(price(base, at_step))
        done = forecaster.carried_steps(base, at_step, settings)
        # It is no longer than it is for standing where others come later or sooner.
        forecaster = forecaster.with_longest(posterior.meta.longest * (done + rest) / steps)
    planned = settings.planned_over(done + rest)
    level = forecaster.scaled_reward(planned, [done + rest])
    point = float(forecaster.outcome_of(level).mean())
    reward = interval_of(final_reward(forecaster, planned, done + rest), mean=point)
    left = {"planned_steps": rest, "warmup_steps": max(0, settings.warmup_steps - (at_step or 0))}
    found = stability(forecaster, settings.model_copy(update=left), rest, level=level[:, 0])
    hours = [one.gpu_hours for one in paid if one.gpu_hours is not None] or None
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
        "completions": sum(one.completions for one in paid),
        "gpu_hours": hours and sum(hours),
    }


def _check_change(settings: Settings, at_step: int) -> None:
    """Refuse a change on the way that no run can make or that nothing tells the effect of."""
    if not 0 < at_step < (settings.planned_steps or 0):
        problem = f"no run of {settings.planned_steps} steps can change at step {at_step}"
        raise InputError(problem, argument="at_step", advice="Give a step before its end")
    if settings.schedule != "constant":
        problem = f"the schedule is {settings.schedule}: a trainer that resumes plans it again"
        advice = "Ask for the rest as a run of its own, or for one with a constant schedule"
        raise InputError(problem, argument="at_step", advice=advice)
