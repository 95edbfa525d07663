"""From a posterior to a recommendation: prepare, search and choose, explain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from advisor.advice.answer_fields import Alternative, Evidence, NextPilot, Terms
from advisor.advice.candidates import AXES, Lattice, default_lattice, place_of, within_reach
from advisor.advice.cost import CostModel, learn_cost
from advisor.advice.evaluate import (
    Evaluation,
    Evaluator,
    base_settings,
    curve_steps,
    steps_to_share,
)
from advisor.advice.pilot_choice import further_pilots, is_first_contact, weighed_pilot
from advisor.advice.promotion import promotion
from advisor.advice.reasons import Binding, Leader, binding, leader_of, leading
from advisor.advice.recommendation import Recommendation
from advisor.advice.request import Budget, Objective, Request, Search, asked
from advisor.advice.search import search as search_best
from advisor.advice.support import beyond_pilots, cautions, memory_of, reach_of, silent_groups
from advisor.advice.trade_offs import (
    NOTICED,
    as_alternative,
    best_piloted,
    bound,
    limiting_factor,
    p_better,
    prior_checks,
    settings_run,
    shortfall,
    trade_offs,
)
from advisor.advice.wording import INFORMED, difference, percent
from advisor.common import Kind, Note, Progress, kinds, note, progress_of, stated
from advisor.errors import CannotTellError, InputError
from advisor.forecast import (
    SUPPORT,
    Forecaster,
    Target,
    checkpoints_of,
    final_reward,
    interval_of,
    peak,
    pilots_of,
)
from advisor.model import Posterior, informed_share, outside_evidence
from advisor.runs import Settings, Trainer

GAINED = 0.95  # Share of the advised gain whose time is stated


@dataclass(frozen=True)
class Question:
    """What is decided, under which posterior, and among what."""

    request: Request
    search: Search
    forecaster: Forecaster
    budget: Budget
    cost: CostModel
    fixed: Settings
    lattice: Lattice
    outside: str | None
    notes: tuple[Note, ...]
    progress: Progress

    def evaluator(self, aim: Objective | None = None, goal: float | None = None) -> Evaluator:
        """Judge of configurations by an objective; by default the reward at the end."""
        aim = aim or Objective(quantile=self.request.objective.quantile)
        return Evaluator(self.forecaster, aim, self.budget, self.cost, goal)

    def best(self, evaluate: Evaluator) -> tuple[Evaluation | None, Evaluation]:
        """Best feasible configuration, and the nearest to feasible."""
        return search_best(
            evaluate, self.lattice, self.request.level, self.search, progress=self.progress
        )

    def start(self) -> float:
        """Reward before the run."""
        return float(self.forecaster.outcome(self.fixed, [0]).mean())


@dataclass(frozen=True)
class Decision:
    """What was chosen, by which objective, and what limits it."""

    kind: Literal["recommendation", "next_pilot", "infeasible"]
    chosen: Evaluation
    evaluate: Evaluator
    at_end: Evaluator  # by the reward at the end, whatever the objective
    limit: Binding


def advise(
    posterior: Posterior,
    request: Request | None = None,
    *,
    search: Search | None = None,
    progress: bool | Progress | None = None,
    **fields: Any,
) -> Recommendation:
    """Recommend group size, learning rate and refresh interval.

    Parameters
    ----------
    posterior : Posterior
    request : Request, optional
        By default the highest reward after three times the longest pilot's steps, at P(stable) 0.9.
    search : Search, optional
    progress : bool or callable, optional
        True prints to standard error; a callable takes stage, share done and detail.
    **fields
        Fields of `Request` and `Search`, in place of those given there:
        ``advise(posterior, steps=500, level=0.95)``.

    Returns
    -------
    recommendation : Recommendation
        Its ``kind`` says whether the pilots hold an answer.
    """
    question = prepare(posterior, *asked(request, search, fields), progress_of(progress))
    decision = choose(question)
    pilot, notes = _pilot(question, decision)
    is_safe = decision.chosen.stable >= question.request.level
    is_first = decision.kind == "next_pilot" and is_safe
    if is_first and pilot is not None and not pilot.is_worth_its_price:
        decision = _without(pilot, decision) if is_first_contact(posterior) else searched(question)
    return explain(question, decision, pilot, notes)


def prepare(posterior: Posterior, request: Request, search: Search, progress: Progress) -> Question:
    """Complete a request from the pilots, and say what was assumed."""
    if (stated := request.known_optimum()) is not None:
        priors = posterior.meta.priors.model_copy(update={"known_optimum": stated})
        posterior = replace(posterior, meta=posterior.meta.model_copy(update={"priors": priors}))
    meta = posterior.meta
    request = request.in_steps([run.settings.refresh_interval for run in meta.runs])
    notes = list(meta.notes)
    target = request.target_in(posterior)
    named = request.model, request.task, request.parameters, request.start_reward
    if named == (None, None, None, None):
        notes.append(note(Kind.TARGET, model=target.model, task=target.task))
    budget = request.budget
    if budget == Budget():
        budget = Budget(steps=int(SUPPORT * meta.longest))
        notes.append(note(Kind.PLANNED_STEPS, steps=budget.steps))
    cost = learn_cost(
        posterior, target, gpus=request.gpus, seconds_per_step=request.seconds_per_step
    )
    notes.append(note(Kind.PRICE, source=cost.source))
    if (known := meta.priors.known_optimum) is not None:
        notes.append(note(Kind.KNOWN_OPTIMUM, known=str(known)))
    fixed = base_settings(posterior, target)
    notes += _where_pilots_differ(posterior, target)
    if request.choose_from is not None:
        lattice = Lattice(request.choose_from)
    else:
        lattice = default_lattice(
            posterior,
            fixed,
            target=target,
            group_sizes=request.group_sizes,
            learning_rates=request.learning_rates,
            devices=request.devices,
        )
    sizes = [run.parameters for run in meta.runs]
    outside = outside_evidence(meta.priors, fixed, target.parameters, sizes)
    if outside is not None:
        lattice = within_reach(lattice, meta)
        if meta.largest_surviving_rate is not None:
            notes.append(note(Kind.RATES_CAPPED, outside=outside))
    budget.steps_of(fixed, cost)  # refuses GPU-hours that nothing turns into steps
    if request.constraint is not None:
        offered = [(one, budget.steps_of(one, cost)) for one in lattice]
        lattice = Lattice(_allowed(posterior, target, offered, request.constraint))
    return Question(
        request=request,
        search=search,
        forecaster=Forecaster(posterior, target, seed=search.seed),
        budget=budget,
        cost=cost,
        fixed=fixed,
        lattice=lattice,
        outside=outside,
        notes=tuple(notes),
        progress=progress,
    )


def _allowed(
    posterior: Posterior,
    target: Target,
    offered: Sequence[tuple[Settings, int]],
    constraint: Callable[[Any], Any],
) -> list[Settings]:
    """Configurations that a user's constraint allows by what is predicted of them."""
    found: list[Settings] = []
    for last in sorted({steps for _, steps in offered if steps}):
        own = [one for one, steps in offered if steps == last]
        predicted = posterior.predict(own, [last], target=target, draws=1000)
        is_allowed = np.asarray(constraint(predicted), dtype=bool)
        if is_allowed.shape != (len(own),):
            raise InputError(
                f"the constraint gives shape {is_allowed.shape} for {len(own)} configurations",
                argument="constraint",
                advice="Return one bool for each, over the dimension configuration",
            )
        found += [one for one, is_one in zip(own, is_allowed, strict=True) if is_one]
    if not found:
        raise InputError(
            f"none of the {len(offered)} configurations meets the constraint",
            argument="constraint",
            advice="Ask for less, or offer others",
        )
    return found


def _where_pilots_differ(posterior: Posterior, target: Target) -> list[Note]:
    """Remark on settings that are the first pilot's, though others had another value."""
    own = [run.settings for run in pilots_of(posterior, target)]
    free = {*AXES, *Settings.CARRIED, "planned_steps", "kl_coefficient", "adapter"}
    values = {n: {getattr(s, n): n for s in own} for n in Settings.model_fields if n not in free}
    shown = [f"{name} = {next(iter(found))}" for name, found in values.items() if len(found) > 1]
    return [note(Kind.FIRST_PILOTS, settings=", ".join(shown))] if shown else []


def choose(question: Question) -> Decision:
    """Search the configurations, or hold to the best piloted where pilots tell too little."""
    posterior = question.forecaster.posterior
    has_lived = posterior.meta.largest_surviving_rate is not None
    has_shown = has_lived and not _show_too_little(posterior)
    if not is_first_contact(posterior) and (has_shown or not question.request.weigh_pilots):
        return searched(question)
    at_end = question.evaluator()
    chosen = best_piloted(at_end, posterior)
    limit = bound(at_end, question.lattice, chosen, question.request.level)
    return Decision("next_pilot", chosen, at_end, at_end, limit)


def _show_too_little(posterior: Posterior) -> bool:
    """Whether no pilot moved by more than its noise, or none rose."""
    return not kinds(posterior.meta.notes).isdisjoint({Kind.NONE_MOVED, Kind.NONE_ROSE})


def searched(question: Question) -> Decision:
    """Search the configurations and choose one."""
    level, objective = question.request.level, question.request.objective
    evaluate = at_end = question.evaluator()
    if objective.kind != "reward":
        evaluate = question.evaluator(objective, _goal(question, at_end))
    best, nearest = question.best(evaluate)
    start = question.start()
    if best is None or best.reward <= start:
        chosen = best or nearest
        limit = shortfall(evaluate, chosen, level, start)
        return Decision("infeasible", chosen, evaluate, at_end, limit)
    forecaster, indifference = question.forecaster, question.request.indifference
    runs = pilots_of(forecaster.posterior, forecaster.target)
    alive = settings_run([run for run in runs if run.collapse_step is None])
    piloted = {place_of(one) for one in alive}
    chosen = _cheapest_equal(evaluate, best, level, indifference, piloted)
    limit = limiting_factor(evaluate, question.lattice, chosen, level)
    return Decision("recommendation", chosen, evaluate, at_end, limit)


def explain(
    question: Question, decision: Decision, pilot: NextPilot | None, notes: list[Note]
) -> Recommendation:
    """Put a decision next to its alternatives, its evidence and its cautions."""
    forecaster, chosen = question.forecaster, decision.chosen
    posterior, meta, request = forecaster.posterior, forecaster.posterior.meta, question.request
    last, planned = chosen.cost.steps, chosen.planned
    curve = forecaster.outcome(planned, times := curve_steps(last))
    mean = curve.mean(axis=0)
    gained = float(mean[0] + GAINED * (mean[-1] - mean[0]))
    piloted, *recipes = _rivals(question, decision, gained)
    silent, beyond = silent_groups(forecaster), beyond_pilots(chosen.settings, forecaster)
    others = trade_offs(decision.evaluate, chosen, request.level, gained)
    leader = leader_of(forecaster, chosen.settings, last)
    remarks = [
        *_against_the_forecast(question, decision, leader, others),
        *cautions(forecaster, last, silent, beyond),
        *memory_of(forecaster, planned),
        *question.notes,
        *notes,
        *_against_the_known(question, decision),
    ]
    return Recommendation(
        kind=decision.kind,
        settings=planned,
        target=forecaster.target,
        steps=last,
        measure="held-out reward" if forecaster.is_evaluated else "reward",
        reward=interval_of(
            final_reward(forecaster, planned, last), mean=float(curve[:, -1].mean())
        ),
        peak=interval_of(peak(forecaster, planned, last)),
        stability=chosen.stability,
        cost=chosen.cost,
        steps_to_95=steps_to_share(mean, times, GAINED),
        checkpoints=tuple(checkpoints_of(times, curve, forecaster.outcome_range)),
        limit=decision.limit,
        alternatives=others,
        recipes=tuple(recipes),
        best_piloted=piloted,
        leader=leader,
        beyond_pilots=beyond,
        next_pilot=pilot,
        further_pilots=further_pilots(posterior, pilot),
        promotion=promotion(posterior, forecaster.target, planned, last, question.cost)
        if decision.kind == "recommendation"
        else None,
        notes=tuple(sorted(remarks, key=attrgetter("weight"))),
        trainer=_trainer(posterior, forecaster.target),
        provenance=meta.provenance,
        terms=Terms(
            objective=request.objective,
            budget=question.budget,
            level=request.level,
            devices=request.devices,
            choices=question.lattice.axes,
            cost_model=question.cost,
            priors=meta.priors.name,
            seed=question.search.seed,
        ),
        evidence=_evidence(question, decision, silent),
    )


def _evidence(question: Question, decision: Decision, silent: dict[int, float]) -> Evidence:
    """What the pilots contribute."""
    forecaster, request = question.forecaster, question.request
    posterior, runs = forecaster.posterior, forecaster.posterior.meta.runs
    chosen = decision.chosen
    return Evidence(
        pilots=len(runs),
        collapsed=sum(run.collapse_step is not None for run in runs),
        kl_coefficients=tuple(sorted({run.settings.kl_coefficient for run in runs})),
        pilots_cost=float(sum(run.completions for run in runs)),
        longest_pilot=posterior.meta.longest,
        reach=reach_of(forecaster),
        informed={k: share for k, share in informed_share(posterior).items() if k in INFORMED},
        silent_groups=silent,
        prior_checks=prior_checks(decision.evaluate, chosen, request.level, request.indifference),
        outside=question.outside,
    )


def _rivals(question: Question, decision: Decision, goal: float) -> list[Alternative]:
    """The best pilot and common recipes, with P that what was chosen is worth more."""
    at_end = decision.at_end
    recipes = Trainer.all_recipes()  # what trainers' own examples would come to
    own = [question.fixed.model_copy(update=values) for values in recipes.values()]
    forecaster = question.forecaster
    leader = leading(pilots_of(forecaster.posterior, forecaster.target)).settings
    found = at_end.compared([leader, *own])
    at_end.prepare_curves(found)
    is_reward = question.request.objective.kind == "reward"
    return [
        as_alternative(
            name, at_end, one, goal, p_better(decision.chosen, one) if is_reward else None
        )
        for name, one in zip(["best pilot", *recipes], found, strict=True)
    ]


def _against_the_forecast(
    question: Question, decision: Decision, leader: Leader, others: Sequence[Alternative]
) -> list[Note]:
    """That the advised pilot has fallen, or that the known rate decides against a higher end."""
    found, range_ = [], question.forecaster.outcome_range
    if leader.is_followed and leader.fell_from is not None:
        own: dict[str, Any] = {"run": leader.pilot, "peak": leader.peak, "step": leader.fell_from}
        found.append(note(Kind.BELOW_ITS_BEST, **own, reward=leader.reward))
    ceiling = question.forecaster.outcome_bounds[1]
    gained = decision.chosen.reward - leader.reward
    if max(gained, ceiling - leader.reward) < 2 * NOTICED * range_:
        found.append(note(Kind.AT_CEILING, reward=leader.reward, ceiling=ceiling))
    floor, least = ceiling - range_, decision.chosen.reward + NOTICED * range_
    level, worth = question.request.level, decision.chosen.stable * (decision.chosen.reward - floor)
    # With lost runs at the floor it would be worth more still: the known rate decides.
    above = [
        e
        for e in others
        if e.reward > least
        and (e.p_beaten or 0.0) > 0.5
        and (leader.is_followed or place_of(e.settings) != place_of(leader.settings))
        and e.stability.probability >= level
        and e.stability.probability * (e.reward - floor) > worth
    ]
    if above and question.forecaster.posterior.meta.priors.known_optimum is not None:
        best = max(above, key=lambda e: e.reward)
        what = difference(best.settings, decision.chosen.settings)
        chance = percent(best.p_beaten or 0.0)
        found.append(note(Kind.KNOWN_RATE_DECIDES, what=what, reward=best.reward, chance=chance))
    return found


def _against_the_known(question: Question, decision: Decision) -> list[Note]:
    """Whether what was chosen, or any pilot, is worth more than the rate that is known anyway."""
    priors, at_end = question.forecaster.posterior.meta.priors, decision.at_end
    known, worthwhile = priors.known_optimum, priors.decision.worthwhile
    is_asked = decision.kind != "infeasible" and question.request.objective.kind == "reward"
    if known is None or known.learning_rate is None or not is_asked:
        return []
    pilots = pilots_of(question.forecaster.posterior, question.forecaster.target)
    usual = question.fixed.model_copy(update={"learning_rate": known.learning_rate})
    it, *others = at_end.compared([usual, *settings_run(pilots)])
    own, *piloted = [p_better(one, it) for one in (decision.chosen, *others)]
    rates = question.lattice.axes["learning_rate"]
    is_offered = 0.8 * min(rates) <= known.learning_rate <= 1.25 * max(rates)
    is_feasible = is_offered and it.is_feasible(question.request.level)
    if max(own, *piloted) >= worthwhile or not is_feasible:
        return [note(Kind.KNOWN_RATE_BEATEN, rate=known.learning_rate, chance=percent(own))]
    chance = percent(max(own, *piloted))
    # That of adapters is derived, unless it is the user's.
    is_own = question.fixed.adapter != "lora" or question.request.known_optimum() is not None
    origin = f"{'of' if is_own else 'derived from full fine-tuning of'} {known.projects} projects"
    own_rate: dict[str, Any] = {"rate": known.learning_rate, "projects": known.projects}
    return [note(Kind.KNOWN_RATE_DOES, **own_rate, origin=origin, chance=chance)]


def _pilot(question: Question, decision: Decision) -> tuple[NextPilot | None, list[Note]]:
    """Pilot worth running next, or why none can be named."""
    if not question.request.weigh_pilots:
        return None, []
    question.progress("Weighing the next pilot", None, "")
    try:
        pilot = weighed_pilot(
            decision.at_end,
            question.lattice,
            decision.chosen.settings,
            seed=question.search.seed,
            level=question.request.level,
            is_first=decision.kind == "next_pilot",
        )
    except CannotTellError as error:
        return None, [stated(str(error), Kind.NO_PILOT)]
    shows_too_little = _show_too_little(question.forecaster.posterior)
    at_edge = decision.limit.kind == "edge_of_rates"
    is_named = pilot.is_worth_its_price or decision.kind != "recommendation"
    return (pilot if is_named or shows_too_little or at_edge else None), []


def _without(pilot: NextPilot, decision: Decision) -> Decision:
    """Run the best that was piloted, where no further pilot is worth its price."""
    shares: dict[str, Any] = {"raises": 100 * pilot.gain, "loss": 100 * (pilot.loss or 0.0)}
    limit = binding("too_few_pilots", freed_by="more pilots", **shares)
    return replace(decision, kind="recommendation", limit=limit)


def _trainer(posterior: Posterior, target: Target) -> str:
    """Trainer of most pilots of the target; TRL where no log tells."""
    named = Counter(run.framework for run in pilots_of(posterior, target) if run.framework)
    return named.most_common(1)[0][0] if named else "TRL"


def _goal(question: Question, at_end: Evaluator) -> float:
    """Reward to reach, in units of the outcome."""
    objective, start = question.request.objective, question.start()
    ceiling = question.forecaster.outcome_bounds[1]
    wanted = objective.goal or 0.0
    if objective.kind == "cheapest":
        if not start < wanted < ceiling:
            raise InputError(
                f"a reward of {wanted:g} is no goal: the policy starts at {start:.3f} and the "
                f"reward ends at {ceiling:g}",
                argument="to_reward",
                advice="Give a reward between the two",
            )
        return wanted
    best, nearest = question.best(at_end)
    return start + wanted * ((best or nearest).reward - start)


def _cheapest_equal(
    evaluate: Evaluator,
    best: Evaluation,
    level: float,
    indifference: float,
    piloted: Collection[tuple[float, ...]] = (),
) -> Evaluation:
    """Cheapest, then piloted, where worths cannot be told from the best; they count P(stable)."""
    if evaluate.objective.kind != "reward" or indifference <= 0:
        return best
    least = best.value - indifference * evaluate.forecaster.outcome_range
    equal = [e for e in evaluate.tried if e.is_feasible(level) and e.value >= least]

    def price(found: Evaluation) -> float:
        # A budget in completions or GPU-hours is spent by all; what is left over is rounding.
        return found.cost.paid if evaluate.budget.steps is not None else 0.0

    def order(found: Evaluation) -> tuple[float, bool, float]:
        return price(found), place_of(found.settings) not in piloted, -found.value

    return min(equal, key=order)
