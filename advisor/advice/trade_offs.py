"""What limits an answer, and what else the reader may want: cheaper, safer, faster, surer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from advisor.advice.answer_fields import Alternative, PriorCheck
from advisor.advice.candidates import RATE_REACH, Lattice
from advisor.advice.evaluate import Evaluation, Evaluator, run_ends, stacked
from advisor.advice.reasons import Binding, binding, level_flag
from advisor.advice.wording import level_text, percent, short_text
from advisor.forecast import expected_of, pilots_of, refresh_contracts, stiffness_left
from advisor.model import Posterior, RunSummary, log_prior, peaked, smoothed_weights
from advisor.runs import Settings

NOTABLY = 0.8  # Price or time of a trade-off over the advised one, at most
NOTICED = 0.01  # Share of the reward range that a freed constraint must give to be named

RATE = "learning_rate"


def as_alternative(
    name: str, evaluate: Evaluator, found: Evaluation, goal: float, p_beaten: float | None = None
) -> Alternative:
    """Name an evaluation, with its time to a reward ``goal`` and P that what was chosen wins."""
    return Alternative(
        name=name,
        settings=found.settings,
        reward=found.reward,
        stability=found.stability,
        cost=found.cost,
        steps_to_95=evaluate.steps_to(found, goal),
        p_beaten=p_beaten,
    )


def p_better(one: Evaluation, other: Evaluation) -> float:
    """Probability that a run is worth more than another one, under the same draws."""
    is_more, is_equal = one.utility > other.utility, one.utility == other.utility
    return float(np.mean(is_more) + np.mean(is_equal) / 2)


def trade_offs(
    evaluate: Evaluator, chosen: Evaluation, level: float, goal: float
) -> tuple[Alternative, ...]:
    """Cheaper, safer and faster configurations among those tried."""
    enough = chosen.reward - 0.05 * evaluate.forecaster.outcome_range  # what one may cost
    good = [e for e in evaluate.tried if e.reward >= enough and e is not chosen]
    feasible = [e for e in good if e.is_feasible(level)]
    paid = [e.cost.paid for e in feasible]
    order = np.lexsort(([-e.reward for e in feasible], paid))
    is_cheaper = bool(feasible) and paid[order[0]] <= NOTABLY * chosen.cost.paid
    least = feasible[order[0]] if is_cheaper else None
    # P(stable) that a safer configuration must add.
    safer = [e for e in good if e.stability.probability >= chosen.stability.probability + 0.01]
    safest = max(safer, key=lambda e: (round(e.stability.probability, 2), e.reward), default=None)

    most, *times = evaluate.seconds_to([chosen, *feasible], goal)
    first = min(times, default=np.inf)
    is_faster = first <= NOTABLY * most < np.inf and most > 0
    faster = feasible[times.index(first)] if is_faster else None
    found: dict[Evaluation, list[str]] = {}
    for name, one in (("cheaper", least), ("safer", safest), ("faster", faster)):
        if one is not None:
            found.setdefault(one, []).append(name)
    return tuple(
        as_alternative(" and ".join(names), evaluate, one, goal, p_better(chosen, one))
        for one, names in found.items()
    )


def best_piloted(evaluate: Evaluator, posterior: Posterior) -> Evaluation:
    """Piloted configuration with the highest forecast among those that lived, else the gentlest."""
    own = pilots_of(posterior, evaluate.forecaster.target)
    gentlest = min(own, key=lambda run: run.settings.learning_rate)
    alive = [run for run in own if run.collapse_step is None] or [gentlest]
    return max(evaluate.compared(settings_run(alive)), key=lambda e: e.value)


def settings_run(runs: Sequence[RunSummary]) -> list[Settings]:
    """Settings of runs, without those whose warm-up was not over where that of others was."""
    return [run.settings for run in peaked(runs)]


POWERS = (0.8, 1.25)
"""Powers of the priors (arXiv:2107.14054, which goes closer to 1 for a derivative): what an eighth
less or more of spread would do."""

COMPARED = 24  # Configurations with the best values among which the choice is asked again


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
    plans = [one.planned for one in compared]
    rewards, utility, stable, contracts = np.empty((4, len(plans), forecaster.size))
    parts = list(stacked(plans, [one.cost.steps for one in compared], forecaster.size))
    for places, planned, last in parts:
        rewards[places], utility[places], _, stable[places] = run_ends(forecaster, planned, last)
        contracts[places] = refresh_contracts(forecaster, stiffness_left(forecaster, planned))
    logs = log_prior(forecaster.posterior)[forecaster.indices]
    at = compared.index(chosen)
    slack = indifference * forecaster.outcome_range if is_reward else 0.0
    chances, fixed = np.empty(len(plans)), np.array([one.value for one in compared])
    found = []
    for power in POWERS:
        weights, k = smoothed_weights((power - 1) * logs)
        for places, planned, _ in parts:
            own = stable[places] @ weights, contracts[places] @ weights
            chances[places] = expected_of(forecaster, planned, *own)[0]
        values = np.where(chances >= level, utility @ weights if is_reward else fixed, -np.inf)
        if values[at] >= values.max() - slack > -np.inf:
            best: Evaluation | None = chosen
        else:
            best = compared[int(values.argmax())] if np.isfinite(values).any() else None
        found.append(
            PriorCheck(
                power=power,
                reward=float(rewards[at] @ weights),
                stability=float(chances[at]),
                best=None if best is None else best.planned,
                pareto_k=float(k),
            )
        )
    return tuple(found)


def bound(evaluate: Evaluator, lattice: Lattice, chosen: Evaluation, level: float) -> Binding:
    """Largest learning rate that keeps the level at the piloted group size and refresh interval."""
    tried = lattice.axes["learning_rate"]
    runs = [evaluate(chosen.settings.model_copy(update={"learning_rate": rate})) for rate in tried]
    allowed = [run.settings.learning_rate for run in runs if run.stable >= level]
    wanted: dict[str, Any] = {"axis": RATE, "level": level_text(level)}
    if not allowed:
        return binding("no_rate", **wanted, freed_by="a lower learning rate")
    if max(allowed) == tried[-1]:
        return binding("every_rate", value=tried[-1], **wanted)
    above = min(rate for rate in tried if rate > max(allowed))
    return binding("rates_up_to", value=max(allowed), above=above, **wanted)


def shortfall(evaluate: Evaluator, nearest: Evaluation, level: float, start: float) -> Binding:
    """Constraint that no configuration meets, and what would free it."""
    if all(evaluate.budget.steps_of(e.settings, evaluate.cost) < 1 for e in evaluate.tried):
        return binding("no_step", freed_by="a larger budget")
    if evaluate.goal is not None and not any(e.value > float("-inf") for e in evaluate.tried):
        best = max(evaluate.tried, key=lambda e: e.reward)
        sure = percent(evaluate.objective.confidence)
        freed = "a longer run, a lower goal or more risk"
        wanted: dict[str, Any] = {"goal": evaluate.goal, "confidence": sure}
        return binding("goal_missed", freed_by=freed, best=best.reward, **wanted)
    if nearest.is_feasible(level) and nearest.reward <= start:
        freed = "pilots that gain something, or another reward"
        return binding("no_gain", value=nearest.reward, freed_by=freed, start=start)
    axes = {"tolerance": RATE, "refresh": "refresh_interval", "fluctuation": None}
    worst = min(axes, key=lambda name: float(getattr(nearest.stability, name)))
    part = getattr(nearest.stability, worst)
    freed = "a lower level, a shorter run, or a pilot at a lower learning rate"
    parts: dict[str, Any] = {"part": percent(part, level), "level": level_text(level)}
    return binding(worst, axis=axes[worst], freed_by=freed, **parts)


def limiting_factor(
    evaluate: Evaluator, lattice: Lattice, chosen: Evaluation, level: float
) -> Binding:
    """Constraint that would give most if it were freed."""
    noticed = chosen.reward + NOTICED * evaluate.forecaster.outcome_range
    meta, is_reward = evaluate.forecaster.posterior.meta, evaluate.objective.kind == "reward"
    has_known = is_reward and meta.priors.known_optimum is not None
    above = [e for e in evaluate.tried if e.reward > noticed and evaluate.goal is None]
    bound = [e for e in above if e.stable < level or (has_known and e.is_feasible(level))]
    if bound:
        top = max(bound, key=lambda e: e.reward)
        own: dict[str, Any] = {"axis": RATE, "value": top.settings.learning_rate}
        own |= {"gain": top.reward - chosen.reward, "reward": top.reward}
        own = {"settings": short_text(top.settings, chosen.settings)} | own
        if top.stable < level:
            flag, least = level_flag(top.stable), percent(top.stable, level)
            return binding("unstable", **own, freed_by=flag, least=least)
        flag = f"--learning-rates {top.settings.learning_rate:g}"
        chance = percent(p_better(top, chosen))
        return binding("farther_from_known", **own, freed_by=flag, chance=chance)
    (*others, last), surviving = lattice.axes[RATE], meta.largest_surviving_rate
    if others and chosen.settings.learning_rate == last:
        is_reach = surviving is not None and last == float(f"{surviving * RATE_REACH:.2g}")
        reach = f"{RATE_REACH:g} times the largest that survived a pilot"
        edge = reach if is_reach else f"{last:.3g}"
        return binding("edge", axis=RATE, value=last, freed_by="a pilot there", edge=edge)
    if evaluate.goal is not None:
        return binding("cheapest_goal", goal=evaluate.goal)
    return binding("nothing")
