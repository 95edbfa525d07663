"""From a posterior to a recommendation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from advisor._compat import Progress, silent
from advisor.advice.lattice import RATE_REACH, Lattice, default_lattice, largest_surviving_rate
from advisor.advice.next_pilot import is_first_contact, suggest_pilot
from advisor.advice.recipes import RECIPES
from advisor.advice.recommendation import Alternative, Interval, NextPilot, Recommendation
from advisor.advice.search import Evaluation, Evaluator, search, time_to_gain
from advisor.advice.target import largest_target
from advisor.advice.wording import SUPPORT, percent
from advisor.errors import InputError
from advisor.posterior import Forecaster, Posterior, Target
from advisor.posterior.posterior import INTERVAL
from advisor.runs.pilot_run import Hyperparameters

FloatArray = npt.NDArray[np.float64]

RESOLUTION = 0.01
"""Share of the reward range below which two expected rewards count as equal: the one with the
smaller batch, then the safer one, wins. Seed-to-seed spread is larger."""


def recommend(
    posterior: Posterior,
    *,
    target: Target | None = None,
    steps: int | None = None,
    level: float = 0.9,
    group_sizes: tuple[int, ...] | None = None,
    learning_rates: tuple[float, ...] | None = None,
    trials: int = 300,
    seed: int = 0,
    progress: Progress = silent,
) -> Recommendation:
    """Recommend group size, learning rate and refresh interval.

    Parameters
    ----------
    posterior : Posterior
    target : Target, optional
        What the full run trains; by default the largest piloted model, on its task.
    steps : int, optional
        Planned optimizer steps; by default three times the longest pilot.
    level : float
        P(stable) wanted, in (0, 1).
    group_sizes, learning_rates : tuple, optional
        Restrict the choices.
    trials : int
        Optuna trials over the posterior; no run is launched.
    seed : int
        Of the search and of the seed noise.
    progress : callable, optional

    Returns
    -------
    recommendation : Recommendation
        Its ``kind`` says whether the pilots hold an answer.

    Raises
    ------
    InputError
        The request contradicts itself or the pilots.
    """
    check_request(level, steps)
    assumptions = list(posterior.meta.notes)
    if target is None:
        target = largest_target(posterior)
        assumptions.append(f"target = {target.model} on {target.task} (the largest piloted model)")
    if steps is None:
        steps = int(SUPPORT * posterior.meta.longest)
        assumptions.append(f"planned steps = {steps} (three times the longest pilot)")
    forecaster = Forecaster(posterior, target, seed=seed)
    fixed = _fixed(posterior, target, steps)
    evaluate = Evaluator(forecaster, steps)
    lattice = default_lattice(
        posterior, fixed, group_sizes=group_sizes, learning_rates=learning_rates
    )
    pilot: NextPilot | None = None
    if is_first_contact(posterior):
        kind, chosen = "next_pilot", evaluate(_best_piloted(posterior, fixed))
        pilot = suggest_pilot(forecaster, chosen.settings)
        binding = _bound(evaluate, lattice, chosen, level)
    else:
        best, safest = search(evaluate, lattice, level, trials=trials, seed=seed, progress=progress)
        if best is None:
            kind, chosen = "infeasible", safest
            pilot = suggest_pilot(forecaster, chosen.settings)
            binding = _shortfall(safest, level)
        else:
            kind = "recommendation"
            chosen = _cheapest_equal(evaluate, best, level, posterior)
            binding = _binding(evaluate, lattice, chosen, level, posterior)
    curve = forecaster.outcome(chosen.settings, np.arange(steps + 1))
    last = curve[:, -1]
    recipes = [
        Alternative(name=name, settings=e.settings, reward=e.reward, stability=e.stability)
        for name, values in RECIPES.items()
        for e in [evaluate(fixed.model_copy(update=values))]
    ]
    return Recommendation(
        kind=kind,
        settings=chosen.settings,
        target=target,
        steps=steps,
        level=level,
        measure="held-out reward" if forecaster.is_evaluated else "reward",
        reward=_interval(last),
        peak=_interval(forecaster.peak(chosen.settings, steps)),
        stability=chosen.stability,
        steps_to_95=time_to_gain(curve.mean(axis=0), 0.95),
        binding=binding,
        recipes=tuple(recipes),
        next_pilot=pilot,
        pilots=len(posterior.meta.runs),
        collapsed=sum(run.collapse_step is not None for run in posterior.meta.runs),
        longest_pilot=posterior.meta.longest,
        cautions=tuple(_cautions(posterior, forecaster, steps)),
        assumptions=tuple(assumptions),
        provenance=posterior.meta.provenance,
    )


def _interval(draws: FloatArray) -> Interval:
    return Interval(
        mean=float(draws.mean()),
        lower=float(np.quantile(draws, (1 - INTERVAL) / 2)),
        upper=float(np.quantile(draws, (1 + INTERVAL) / 2)),
    )


def check_request(level: float, steps: int | None) -> None:
    """Refuse a request that no pilots could answer, before anything is fitted.

    Raises
    ------
    InputError
        The level is no probability, or no step is planned.
    """
    if not 0 < level < 1:
        raise InputError(
            f"level {level:g} is no probability strictly between 0 and 1",
            key="level",
            advice="Give one like 0.9",
        )
    if steps is not None and steps < 1:
        raise InputError(f"{steps} planned steps", key="steps", advice="Plan at least one step")


def _fixed(posterior: Posterior, target: Target, steps: int) -> Hyperparameters:
    """Settings that the advice keeps: those of the pilots nearest to the target."""
    runs = posterior.meta.runs
    same = [run for run in runs if (run.task, run.model) == (target.task, target.model)]
    settings = Hyperparameters.model_validate((same or list(runs))[0].hyperparameters)
    return settings.model_copy(update={"planned_steps": steps})


def _best_piloted(posterior: Posterior, fixed: Hyperparameters) -> Hyperparameters:
    """Piloted settings with the highest final reward among those that lived, else the gentlest."""
    runs = posterior.meta.runs
    alive = [run for run in runs if run.collapse_step is None]
    best = (
        max(alive, key=lambda run: run.last_reward)
        if alive
        else min(runs, key=lambda run: float(run.hyperparameters["learning_rate"]))
    )
    settings = Hyperparameters.model_validate(best.hyperparameters)
    return settings.model_copy(update={"planned_steps": fixed.planned_steps})


def _cheapest_equal(
    evaluate: Evaluator, best: Evaluation, level: float, posterior: Posterior
) -> Evaluation:
    """Smallest batch, then safest, among those whose reward cannot be told from the best."""
    tolerance = RESOLUTION * (posterior.meta.ceiling - posterior.meta.floor)
    equal = [
        e
        for e in evaluate.tried
        if e.stability.probability >= level and e.reward >= best.reward - tolerance
    ]
    return min(
        equal,
        key=lambda e: (e.settings.group_size, -round(e.stability.probability, 3), -e.reward),
    )


def _bound(evaluate: Evaluator, lattice: Lattice, chosen: Evaluation, level: float) -> str:
    """Largest learning rate that keeps the level at the piloted group size and refresh interval."""
    allowed = [
        rate
        for rate in lattice.learning_rates
        if evaluate(
            chosen.settings.model_copy(update={"learning_rate": rate})
        ).stability.probability
        >= level
    ]
    if not allowed:
        return f"no learning rate tried keeps P(stable) at {percent(level)}"
    return (
        f"learning rates up to {max(allowed):.2g} keep P(stable) at {percent(level)} or more at "
        "this group size and refresh interval"
    )


def _shortfall(safest: Evaluation, level: float) -> str:
    parts = {
        "the learning rate that this task and model tolerate": safest.stability.tolerance,
        "the refresh interval": safest.stability.refresh,
    }
    worst = min(parts, key=lambda name: parts[name])
    return (
        f"{worst} (its part is {percent(parts[worst])}; the level asks for {percent(level)}). "
        "A lower level, shorter run, or a pilot at a lower learning rate would free it"
    )


def _binding(
    evaluate: Evaluator, lattice: Lattice, chosen: Evaluation, level: float, posterior: Posterior
) -> str:
    better = [
        e
        for e in evaluate.tried
        if e.reward > chosen.reward + RESOLUTION * (posterior.meta.ceiling - posterior.meta.floor)
        and e.stability.probability < level
    ]
    if better:
        top = max(better, key=lambda e: e.reward)
        return (
            f"P(stable): learning rate {top.settings.learning_rate:.2g}, group size "
            f"{top.settings.group_size}, K {top.settings.refresh_interval} would give "
            f"{top.reward:.3f} at P(stable) {percent(top.stability.probability)}"
        )
    last, surviving = lattice.learning_rates[-1], largest_surviving_rate(posterior)
    if chosen.settings.learning_rate == last:
        is_reach = surviving is not None and last == float(f"{surviving * RATE_REACH:.2g}")
        edge = (
            f"{RATE_REACH:g} times the largest that survived a pilot" if is_reach else f"{last:.2g}"
        )
        return (
            f"the learning rate, at the edge of what was offered ({edge}); a pilot there would "
            "tell whether more is better"
        )
    return (
        "nothing: higher learning rates gain less than a hundredth of the reward range, and "
        "fewer completions per step would lose more"
    )


def _cautions(posterior: Posterior, forecaster: Forecaster, steps: int) -> list[str]:
    meta = posterior.meta
    out = []
    if steps > SUPPORT * meta.longest:
        out.append(
            f"{steps} steps are more than {SUPPORT:g} times the longest pilot "
            f"({meta.longest:.0f}): survival that far is not supported by these pilots."
        )
    if not any(run.collapse_step is not None for run in meta.runs):
        out.append(
            "No pilot failed, so the tolerated learning rate is bounded by the prior and by "
            f"{RATE_REACH:g} times the largest piloted rate."
        )
    if largest_surviving_rate(posterior) is None:
        out.append("Every pilot collapsed; nothing here is known to live.")
    for name, what in (("learning_rate", "learning rate"), ("group_size", "group size")):
        values = {run.hyperparameters[name] for run in meta.runs}
        if len(values) == 1:
            out.append(
                f"All pilots ran at {what} {values.pop():g}: what another {what} does is the "
                "prior's word."
            )
    if not forecaster.is_piloted:
        out.append(
            f"No pilot ran {forecaster.target.model} on {forecaster.target.task}: its stiffness, "
            f"start and tolerance are extrapolated from {posterior.sizes} model size"
            f"{'s' if posterior.sizes > 1 else ''}."
        )
    if any(not run.hyperparameters["importance_ratio"] for run in meta.runs):
        out.append("Some pilots ran without an importance ratio; all of their staleness counts.")
    return out
