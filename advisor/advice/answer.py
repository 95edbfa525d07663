"""From a posterior to a recommendation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from advisor.advice.candidates import Lattice, default_lattice, largest_surviving_rate, within_reach
from advisor.advice.cautions import cautions
from advisor.advice.cost import CostModel, learn_cost
from advisor.advice.evaluate import Evaluation, Evaluator, curve_steps, steps_to_share, undominated
from advisor.advice.limiting_factor import bound, shortfall, what_binds
from advisor.advice.next_pilot import choose_pilot, is_first_contact
from advisor.advice.objective import Budget, Objective
from advisor.advice.recommendation import NextPilot, Recommendation
from advisor.advice.scenario import base_settings
from advisor.advice.search import SamplerName, search
from advisor.advice.trade_offs import (
    advised_goal,
    as_alternative,
    at_equal_completions,
    best_piloted,
    trade_offs,
)
from advisor.advice.wording import SUPPORT
from advisor.errors import CannotTellError, InputError
from advisor.findings.design import informed_share
from advisor.forecast.forecaster import Forecaster, Target
from advisor.forecast.interval import interval_of
from advisor.forecast.predictive import final_reward, peak
from advisor.forecast.target import largest_target
from advisor.model.compat import Progress, silent
from advisor.model.posterior import Posterior
from advisor.model.presets import outside_evidence
from advisor.run.settings import Settings
from advisor.trainers.registry import recipes as trainer_recipes

Look = Callable[[Evaluator], tuple[Evaluation | None, Evaluation]]

RESOLUTION = 0.01
"""Share of the reward range below which two expected rewards count as equal: the cheaper one, then
the safer one, wins. Seed-to-seed spread is larger."""

WORTH_A_PILOT = 0.005
"""Expected rise of the final reward, as a share of its range, from which a pilot is suggested."""

DECIDING = (
    "rate.learning_rate",
    "rate.group_size",
    "plateau_loss.learning_rate",
    "hazard.learning_rate",
    "curvature_exponent",
)
"""Terms whose share of data is stated with the answer."""


def recommend(
    posterior: Posterior,
    *,
    target: Target | None = None,
    steps: int | None = None,
    completions: float | None = None,
    gpu_hours: float | None = None,
    level: float = 0.9,
    objective: Objective | None = None,
    cost: CostModel | None = None,
    group_sizes: Sequence[int] | None = None,
    learning_rates: Sequence[float] | None = None,
    devices: int = 1,
    choose_from: Sequence[Settings] | None = None,
    indifference: float = RESOLUTION,
    weigh_pilots: bool = True,
    trials: int = 300,
    sampler: SamplerName = "tpe",
    storage: str | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Recommendation:
    """Recommend group size, learning rate and refresh interval.

    Parameters
    ----------
    posterior : Posterior
    target : Target, optional
        What the full run trains; by default the largest piloted model, on its task.
    steps, completions, gpu_hours : optional
        Budget of the full run, one of them; by default three times the longest pilot's steps.
    level : float
        P(stable) wanted, in (0, 1).
    objective : Objective, optional
        By default the mean reward at the end of the budget.
    cost : CostModel, optional
        By default learned from the pilots' step times.
    group_sizes, learning_rates : sequence, optional
        Restrict the choices.
    devices : int
        Completions of a step must divide among them.
    choose_from : sequence of Settings, optional
        The very configurations to choose from, completed, in place of a lattice.
    indifference : float
        Share of the reward range below which rewards count as equal, and the cheaper
        configuration wins; 0 compares rewards alone.
    weigh_pilots : bool
        Also weigh which pilot would be worth running next.
    trials : int
        Optuna trials over the posterior; no run is launched.
    sampler : {"tpe", "gp"}
    storage : str, optional
        File or database URL in which the Optuna study is kept.
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
    goal = objective or Objective()
    budget = Budget(steps=steps, completions=completions, gpu_hours=gpu_hours)
    check_request(level, budget, goal)
    assumptions = list(posterior.meta.notes)
    if target is None:
        target = largest_target(posterior)
        assumptions.append(f"target = {target.model} on {target.task} (the largest piloted model)")
    if budget == Budget():
        budget = Budget(steps=int(SUPPORT * posterior.meta.longest))
        assumptions.append(f"planned steps = {budget.steps} (three times the longest pilot)")
    price = cost or learn_cost(posterior, target)
    assumptions.append(f"price of a step: {price.source}")
    forecaster = Forecaster(posterior, target, seed=seed)
    fixed = base_settings(posterior, target)
    lattice = (
        Lattice(tuple(choose_from))
        if choose_from is not None
        else default_lattice(
            posterior,
            fixed,
            group_sizes=group_sizes,
            learning_rates=learning_rates,
            devices=devices,
        )
    )
    sizes = [run.parameters for run in posterior.meta.runs]
    outside = outside_evidence(posterior.meta.priors.name, fixed, target.parameters, sizes)
    if outside is not None:
        lattice = within_reach(lattice, posterior)
        if largest_surviving_rate(posterior) is not None:
            assumptions.append(
                "learning rates stop at three times the largest that survived a pilot, since "
                f"{outside}"
            )

    def look(evaluate: Evaluator) -> tuple[Evaluation | None, Evaluation]:
        return search(
            evaluate,
            lattice,
            level,
            trials=trials,
            seed=seed,
            progress=progress,
            sampler=sampler,
            storage=storage,
        )

    budget.steps_of(fixed, price)  # refuses GPU-hours that nothing turns into steps
    at_end = Evaluator(forecaster, Objective(quantile=goal.quantile), budget, price)
    # Recipes and pilots are looked at aside: they are not among what was offered.
    aside = Evaluator(forecaster, at_end.objective, budget, price)
    evaluate = at_end
    if goal.kind != "reward":
        wanted = _goal(goal, at_end, look)
        evaluate = Evaluator(forecaster, goal, budget, price, goal=wanted)
    pilot: NextPilot | None = None
    if is_first_contact(posterior):
        kind, chosen = "next_pilot", best_piloted(aside, posterior)
        evaluate = at_end
        binding = bound(evaluate, lattice, chosen, level)
    else:
        best, nearest = look(evaluate)
        start = float(forecaster.outcome(fixed, [0]).mean())
        if best is None or best.reward <= start:
            kind, chosen = "infeasible", best or nearest
            binding = shortfall(evaluate, chosen, level, start)
        else:
            kind = "recommendation"
            chosen = _cheapest_equal(evaluate, best, level, indifference)
            binding = what_binds(evaluate, lattice, chosen, level, posterior)
    # Where the answer is not stable enough, what is to be learned lies below it.
    rate = chosen.settings.learning_rate
    is_safe = chosen.stability.probability >= level
    gentler = None if is_safe else [s for s in lattice if s.learning_rate < rate] or None
    if weigh_pilots:
        progress("Weighing the next pilot", None, "")
        try:
            pilot = choose_pilot(at_end, lattice, seed=seed, candidates=gentler)
        except CannotTellError as error:
            assumptions.append(str(error))
    if kind == "recommendation" and outside is None and pilot and pilot.gain < WORTH_A_PILOT:
        pilot = None
    last = chosen.cost.steps
    planned = evaluate.planned(chosen.settings)
    times = curve_steps(last)
    curve = forecaster.outcome(planned, times)
    gained = advised_goal(forecaster, planned, last)
    recipes = [
        as_alternative(name, aside, aside(fixed.model_copy(update=values)), gained)
        for name, values in trainer_recipes().items()
    ]
    piloted = best_piloted(aside, posterior)
    informed = informed_share(posterior)
    return Recommendation(
        kind=kind,
        settings=planned,
        target=target,
        objective=goal,
        budget=budget,
        steps=last,
        level=level,
        measure="held-out reward" if forecaster.is_evaluated else "reward",
        reward=interval_of(
            final_reward(forecaster, planned, last), mean=float(curve[:, -1].mean())
        ),
        peak=interval_of(peak(forecaster, planned, last)),
        stability=chosen.stability,
        cost=chosen.cost,
        cost_model=price,
        steps_to_95=steps_to_share(curve.mean(axis=0), times, 0.95),
        binding=binding,
        alternatives=trade_offs(evaluate, chosen, level, gained),
        equal_completions=at_equal_completions(evaluate, chosen, gained, devices),
        recipes=tuple(recipes),
        best_piloted=as_alternative("best pilot", aside, piloted, gained),
        frontier=tuple(
            as_alternative("frontier", at_end, one, gained) for one in undominated(evaluate.tried)
        ),
        informed={name: share for name, share in informed.items() if name in DECIDING},
        outside=outside,
        next_pilot=pilot,
        pilots=len(posterior.meta.runs),
        collapsed=sum(run.collapse_step is not None for run in posterior.meta.runs),
        pilots_cost=float(sum(run.completions for run in posterior.meta.runs)),
        longest_pilot=posterior.meta.longest,
        cautions=tuple(cautions(posterior, forecaster)),
        assumptions=tuple(assumptions),
        devices=devices,
        choices=lattice.axes,
        priors=posterior.meta.priors.name,
        seed=seed,
        provenance=posterior.meta.provenance,
    )


def decision_of(posterior: Posterior, advice: Recommendation) -> tuple[Evaluator, Lattice]:
    """Rebuild what was decided and among what, from a saved answer.

    Returns
    -------
    evaluate : Evaluator
        Of the reward at the end of the budget.
    lattice : Lattice
        Of the same learning rates and group sizes.
    """
    forecaster = Forecaster(posterior, advice.target, seed=advice.seed)
    aim = Objective(quantile=advice.objective.quantile)
    evaluate = Evaluator(forecaster, aim, advice.budget, advice.cost_model)
    fixed, offered = base_settings(posterior, advice.target), advice.choices
    lattice = default_lattice(
        posterior,
        fixed,
        group_sizes=[int(size) for size in offered["group_size"]],
        learning_rates=offered["learning_rate"],
        devices=advice.devices,
    )
    return evaluate, lattice


def check_request(level: float, budget: Budget, objective: Objective) -> None:
    """Refuse a request that no pilots could answer, before anything is fitted.

    Raises
    ------
    InputError
        The level is no probability, or budget or objective contradict themselves.
    """
    if not 0 < level < 1:
        raise InputError(
            f"level {level:g} is no probability strictly between 0 and 1",
            argument="level",
            advice="Give one like 0.9",
        )
    budget.check()
    objective.check()


def _goal(objective: Objective, at_end: Evaluator, look: Look) -> float:
    """Reward to reach, in units of the outcome."""
    forecaster = at_end.forecaster
    ceiling = forecaster.outcome_bounds[1]
    untrained = base_settings(forecaster.posterior, forecaster.target)
    start = float(forecaster.outcome(untrained, [0]).mean())
    if objective.kind == "cheapest":
        wanted = objective.goal or 0.0
        if not start < wanted < ceiling:
            raise InputError(
                f"a reward of {wanted:g} is no goal: the policy starts at {start:.3f} and the "
                f"reward ends at {ceiling:g}",
                argument="to_reward",
                advice="Give a reward between the two",
            )
        return wanted
    best, nearest = look(at_end)
    top = (best or nearest).reward
    return start + (objective.goal or 0.0) * (top - start)


def _cheapest_equal(
    evaluate: Evaluator, best: Evaluation, level: float, indifference: float
) -> Evaluation:
    """Cheapest, then safest, among those whose reward cannot be told from the best."""
    if evaluate.objective.kind != "reward" or indifference <= 0:
        return best
    low, high = evaluate.forecaster.outcome_bounds
    equal = [
        e
        for e in evaluate.tried
        if e.is_feasible(level) and e.value >= best.value - indifference * (high - low)
    ]

    def price(found: Evaluation) -> float:
        # A budget in completions or GPU-hours is spent by all; what is left over is rounding.
        return found.cost.paid if evaluate.budget.steps is not None else 0.0

    return min(equal, key=lambda e: (price(e), -round(e.stability.probability, 3), -e.value))
