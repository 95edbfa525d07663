"""Other configurations that the reader may want: cheaper, safer, faster, the best pilot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.advice.answer_fields import Alternative, PriorCheck
from advisor.advice.cost import Cost
from advisor.advice.evaluate import Evaluation, Evaluator, curve_steps, steps_to_share
from advisor.advice.request import Budget, Objective
from advisor.findings import log_prior
from advisor.forecast import (
    Forecaster,
    line_for,
    log_update_norm,
    pilots_of,
    recalibrated,
    stability_draws,
)
from advisor.model import Posterior, smoothed_weights
from advisor.runs import Settings

if TYPE_CHECKING:
    from advisor.advice.answer_fields import Alternative, AnswerFields

GIVEN_UP = 0.05
"""Share of the reward range that a trade-off may cost."""

NOTABLY = 0.8
"""Price or time of a trade-off over the advised one, at most."""

SAFER = 0.01
"""P(stable) that a safer configuration must add."""

LEAST_GROUP = 2
"""A group of one has no spread."""

SHARE = 0.95
"""Share of the advised gain whose time is stated."""


def as_alternative(name: str, evaluate: Evaluator, found: Evaluation, goal: float) -> Alternative:
    """Name an evaluation, with its time to a reward ``goal``."""
    return Alternative(
        name=name,
        settings=found.settings,
        reward=found.reward,
        stability=found.stability,
        cost=found.cost,
        steps_to_95=_steps_to(evaluate, found.settings, found.cost.steps, goal),
    )


def advised_goal(forecaster: Forecaster, settings: Settings, steps: int) -> float:
    """Reward at which 95 % of the advised gain is made."""
    curve = forecaster.outcome(settings, [0, steps]).mean(axis=0)
    return float(curve[0] + SHARE * (curve[-1] - curve[0]))


def trade_offs(
    evaluate: Evaluator, chosen: Evaluation, level: float, goal: float
) -> tuple[Alternative, ...]:
    """Cheaper, safer and faster configurations among those tried."""
    low, high = evaluate.forecaster.outcome_bounds
    enough = chosen.reward - GIVEN_UP * (high - low)
    good = [e for e in evaluate.tried if e.reward >= enough and e is not chosen]
    feasible = [e for e in good if e.is_feasible(level)]
    out = []
    cheaper = [e for e in feasible if e.cost.paid <= NOTABLY * chosen.cost.paid]
    least = min(cheaper, key=lambda e: (e.cost.paid, -e.reward), default=None)
    if least is not None:
        out.append(as_alternative("cheaper", evaluate, least, goal))
    safer = [e for e in good if e.stability.probability >= chosen.stability.probability + SAFER]
    if safer:
        best = max(safer, key=lambda e: (round(e.stability.probability, 2), e.reward))
        out.append(as_alternative("safer", evaluate, best, goal))
    faster = _fastest(evaluate, feasible, chosen, goal)
    if faster is not None and faster is least:
        out[0] = out[0].model_copy(update={"name": "cheaper and faster"})
    elif faster is not None:
        out.append(as_alternative("faster", evaluate, faster, goal))
    return tuple(out)


def at_equal_completions(
    evaluate: Evaluator, chosen: Evaluation, goal: float, devices: int
) -> tuple[Alternative, ...]:
    """Half the group for twice the steps, and twice the group for half the steps."""
    prompts = chosen.settings.prompts_per_step
    group, steps = chosen.settings.group_size, chosen.cost.steps
    out = []
    for name, size, length in (
        ("half the group, twice the steps", group / 2, steps * 2),
        ("twice the group, half the steps", group * 2, steps // 2),
    ):
        if size < LEAST_GROUP or size != int(size) or length < 1 or prompts * size % devices:
            continue
        longer = Evaluator(evaluate.forecaster, Objective(), Budget(steps=length), evaluate.cost)
        found = longer(chosen.settings.model_copy(update={"group_size": int(size)}))
        out.append(as_alternative(name, longer, found, goal))
    return tuple(out)


def best_piloted(evaluate: Evaluator, posterior: Posterior) -> Evaluation:
    """Piloted configuration with the highest forecast among those that lived, else the gentlest."""
    own = pilots_of(posterior, evaluate.forecaster.target)
    alive = [run for run in own if run.collapse_step is None]
    if not alive:
        gentlest = min(own, key=lambda run: run.settings.learning_rate)
        return evaluate(gentlest.settings)
    found = [evaluate(run.settings) for run in alive]
    floor = evaluate.forecaster.outcome_bounds[0]
    return max(found, key=lambda e: (e.reward - floor) * e.stability.probability)


def _fastest(
    evaluate: Evaluator, feasible: list[Evaluation], chosen: Evaluation, goal: float
) -> Evaluation | None:
    time = _timer(evaluate, goal)
    own = time(chosen)
    timed = [(time(e), e) for e in feasible]
    quicker = [(seconds, e) for seconds, e in timed if seconds <= NOTABLY * own < np.inf]
    return min(quicker, key=lambda pair: pair[0])[1] if quicker else None


def _timer(evaluate: Evaluator, goal: float) -> Callable[[Evaluation], float]:
    """Seconds to the goal, or steps where the time of a step is unknown."""

    def time(found: Evaluation) -> float:
        steps = _steps_to(evaluate, found.settings, found.cost.steps, goal)
        each = evaluate.cost.seconds_per_step(found.settings) or 1.0
        return np.inf if steps is None else steps * each

    return time


def _steps_to(evaluate: Evaluator, settings: Settings, steps: int, goal: float) -> float | None:
    times, curve = curve_steps(steps), evaluate.mean_curve(settings, steps)
    if curve[-1] < goal:
        return None
    gain = curve[-1] - curve[0]
    share = 1.0 if gain <= 0 else (goal - curve[0]) / gain
    return steps_to_share(curve, times, float(np.clip(share, 0.0, 1.0)))


@dataclass(frozen=True)
class Saving:
    """Step at which the mean curve of the advised run reaches another's end, and its price."""

    step: float
    cost: Cost


def saving(posterior: Posterior, advice: AnswerFields, other: Alternative) -> Saving | None:
    """Price at which the advised run has what another ends with."""
    forecaster = Forecaster(posterior, advice.target, seed=advice.seed)
    times = curve_steps(advice.steps)
    curve = forecaster.outcome(advice.settings, times).mean(axis=0)
    there = np.flatnonzero(curve >= other.reward)
    if not there.size or there[0] == 0:
        return None
    step = int(np.ceil(times[there[0]]))
    cost = advice.cost_model(advice.settings, step)
    return Saving(step, cost) if cost.paid < other.cost.paid else None


POWERS = (0.8, 1.25)
"""Powers of the priors (arXiv:2107.14054, which goes closer to 1 for a derivative): what an eighth
less or more of spread would do."""

COMPARED = 24
"""Configurations with the best values among which the choice is asked again."""


def prior_checks(
    evaluate: Evaluator, chosen: Evaluation, level: float, indifference: float
) -> tuple[PriorCheck, ...]:
    """Answer under the priors at other powers."""
    forecaster = evaluate.forecaster
    compared = sorted(evaluate.tried, key=lambda e: e.value, reverse=True)[:COMPARED]
    if chosen not in compared:
        compared.append(chosen)
    # A price or a time does not turn on the draws: there the choice stands or falls with P.
    is_reward = evaluate.objective.kind == "reward" and evaluate.objective.quantile is None
    rewards, stable, norms = [], [], []
    for one in compared:
        planned, steps = evaluate.planned(one.settings), one.cost.steps
        norms.append(log_update_norm(planned.learning_rate, forecaster.target.parameters))
        scaled = forecaster.scaled_reward(planned, steps)
        rewards.append(forecaster.outcome_of(scaled)[:, 0])
        stable.append(stability_draws(forecaster, planned, steps, level=scaled[:, 0]))
    logs = log_prior(forecaster.posterior)[forecaster.indices]
    at, (low, high) = compared.index(chosen), forecaster.outcome_bounds
    slack = indifference * (high - low) if is_reward else 0.0
    line = line_for(forecaster.posterior.meta.priors, chosen.settings)
    fixed = np.array([one.value for one in compared])
    found = []
    for power in POWERS:
        weights, k = smoothed_weights((power - 1) * logs)
        means = np.array([float(weights @ draws) for draws in rewards])
        worth = np.array(
            [low + float(weights @ (p * (r - low))) for r, p in zip(rewards, stable, strict=True)]
        )
        said = [float(weights @ draws) for draws in stable]
        probabilities = np.array(
            [recalibrated(one, line, norm) for one, norm in zip(said, norms, strict=True)]
        )
        is_enough = np.minimum(said, probabilities) >= level
        values = np.where(is_enough, worth if is_reward else fixed, -np.inf)
        if values[at] >= values.max() - slack > -np.inf:
            best: Evaluation | None = chosen
        else:
            best = compared[int(values.argmax())] if np.isfinite(values).any() else None
        found.append(
            PriorCheck(
                power=power,
                reward=float(means[at]),
                stability=float(probabilities[at]),
                best=None if best is None else evaluate.planned(best.settings),
                pareto_k=float(k),
            )
        )
    return tuple(found)
