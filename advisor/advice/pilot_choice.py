"""Which pilot to run next: the one whose result is worth most for what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from advisor.advice.answer_fields import NextPilot
from advisor.advice.candidates import (
    AXES,
    RATE_REACH,
    Lattice,
    default_lattice,
    largest_surviving_rate,
)
from advisor.advice.evaluate import Evaluation, Evaluator
from advisor.advice.pilot_worth import IDLE, information_gain, shown, utilities
from advisor.advice.recommendation import Recommendation
from advisor.advice.request import Objective
from advisor.advice.scenario import base_settings
from advisor.common import DEFAULT_SEED, counted
from advisor.errors import CannotTellError, InputError
from advisor.forecast import Forecaster, RunEffect, stability, stability_draws
from advisor.model import Posterior
from advisor.runs import Settings

FEWEST_RUNS = 3
FEWEST_SETTINGS = 2
"""Below three runs, or with one setting only, no law is identified (docs/theory, T37)."""

PILOT_LEVEL = 0.5
"""P(stable) that a suggested pilot must have: it is short, and a failure teaches too."""

TELLING = 0.5
"""Share of the largest gain that a pilot must bring: the cheapest of all tells next to nothing."""

LENGTHS = (0.5, 1.0)
"""Lengths offered, as shares of the longest pilot."""

MOST_PILOTS = 40
MOST_CONFIGURATIONS = 80
"""Pilots weighed, and configurations among which the decision is made: the best by utility."""

MOST_EVALUATED = 2000
"""Configurations that are evaluated to find those, where no search has: some ten seconds."""

ANOTHER_RUN = 3
"""Sets the effects of a pilot itself apart from those of the run that is decided on."""

ITS_RESULT = 1
"""Sets the random numbers of a pilot's result apart from those of a forecast with the same seed."""


def is_first_contact(posterior: Posterior) -> bool:
    """Whether the pilots are too few or too alike for a recommendation."""
    runs = posterior.meta.runs
    settings = {tuple(getattr(run.settings, name) for name in AXES) for run in runs}
    return len(runs) < FEWEST_RUNS or len(settings) < FEWEST_SETTINGS


def next_pilot(
    posterior: Posterior,
    recommendation: Recommendation,
    *,
    steps: int | None = None,
    seed: int | None = None,
) -> NextPilot:
    """Name the pilot whose result would improve a recommendation most for its price.

    Parameters
    ----------
    posterior : Posterior
    recommendation : Recommendation
        From this posterior.
    steps : int, optional
        Length of the pilot; by default the better of half and all of the longest pilot.
    seed : int, optional
        Of the simulated results; by default that of the recommendation.

    Returns
    -------
    pilot : NextPilot

    Raises
    ------
    InputError
        So long a pilot is none.
    CannotTellError
        No pilot is likely enough to survive.
    """
    if steps is not None and not 2 <= steps <= recommendation.steps:
        raise InputError(
            f"a pilot of {counted(steps, 'step')}",
            argument="steps",
            advice=f"Give at least 2 and no more than the run, {recommendation.steps}",
        )
    evaluate, lattice = decision_of(posterior, recommendation)
    own = recommendation.seed if seed is None else seed
    gentler = None
    if recommendation.stability.least < recommendation.level:
        gentler = gentler_than(recommendation.settings.learning_rate, lattice)
    is_first = recommendation.kind == "next_pilot"
    pilot = choose_pilot(
        evaluate,
        lattice,
        steps=steps,
        seed=own,
        candidates=gentler,
        otherwise=recommendation.settings if is_first else None,
    )
    return weighed(pilot, evaluate, recommendation.settings)


def gentler_than(rate: float, lattice: Lattice) -> Lattice | None:
    """Pilots below a rate that is not stable enough: what is to be learned lies there."""
    gentler = [one for one in lattice.axes["learning_rate"] if one < rate]
    return lattice.up_to(gentler[-1]) if gentler else None


def decision_of(posterior: Posterior, recommendation: Recommendation) -> tuple[Evaluator, Lattice]:
    """Rebuild what was decided and among what: the reward at the end, the same choices."""
    target, offered = recommendation.target, recommendation.choices
    evaluate = Evaluator(
        Forecaster(posterior, target, seed=recommendation.seed),
        Objective(quantile=recommendation.objective.quantile),
        recommendation.budget,
        recommendation.cost_model,
    )
    fixed = base_settings(posterior, target)
    lattice = default_lattice(
        posterior,
        fixed,
        group_sizes=offered["group_size"],
        learning_rates=offered["learning_rate"],
        # Answers of older versions kept the piloted value and did not say so.
        prompts_per_step=offered.get("prompts_per_step", (fixed.prompts_per_step,)),
        devices=recommendation.devices,
    )
    return evaluate, lattice


def choose_pilot(
    evaluate: Evaluator,
    lattice: Lattice,
    *,
    steps: int | None = None,
    seed: int = DEFAULT_SEED,
    candidates: Iterable[Settings] | None = None,
    otherwise: Settings | None = None,
) -> NextPilot:
    """Choose the pilot whose result improves the decision most for its price."""
    forecaster = evaluate.forecaster
    longest = forecaster.posterior.meta.longest
    lengths = [steps] if steps else sorted({max(2, round(longest * s)) for s in LENGTHS})
    offered = lattice if candidates is None else candidates
    offered = offered if isinstance(offered, Lattice) else Lattice(offered)
    # A pilot has a seed of its own, and so have its results.
    rng = np.random.default_rng([seed, ITS_RESULT])
    pilots = forecaster.with_run_effect(RunEffect.fresh((seed, ANOTHER_RUN)))
    floor = forecaster.outcome_bounds[0]
    known: Iterable[Evaluation] = evaluate.tried
    if len(evaluate.tried) < MOST_CONFIGURATIONS:
        known = map(evaluate, _few(lattice, MOST_EVALUATED, evaluate))
    decided = sorted(known, key=lambda e: -(e.reward - floor) * e.stability.probability)
    decided = decided[:MOST_CONFIGURATIONS]
    utility = utilities(forecaster, [e.settings for e in decided], [e.cost.steps for e in decided])
    low, high = forecaster.outcome_bounds
    found: list[tuple[float, float, Settings, int]] = []  # gain, price, pilot, steps
    for pilot in offered.spread(MOST_PILOTS, _price_of_step(evaluate)):
        for length in lengths:
            stable = stability_draws(pilots, pilot, length)
            if stable.mean() < PILOT_LEVEL:
                continue
            seen = shown(pilots, pilot, length, stable, rng)
            gain = information_gain(utility, seen, rng) / (high - low)
            price = evaluate.cost(pilot, length).paid
            found.append((gain, price, pilot, length))
    if not found:
        raise CannotTellError(
            "No configuration offered is likely to survive even a short pilot. Offer learning "
            f"rates {RATE_REACH:g} to {RATE_REACH**2:g} times lower (`learning_rates`)."
        )
    most = max(gain for gain, *_ in found)
    telling = [one for one in found if one[0] >= TELLING * most]
    gain, _, pilot, length = max(telling, key=lambda one: one[0] / one[1])
    if otherwise is not None:
        kept = utilities(forecaster, [otherwise], [evaluate(otherwise).cost.steps]).mean()
        gain += max(0.0, float(utility.mean(axis=1).max() - kept)) / (high - low)
    over = "" if otherwise is None else " over running what was piloted"
    cost = evaluate.cost(pilot, length)
    return NextPilot(
        settings=pilot,
        steps=length,
        stability=stability(forecaster, pilot, length),
        gain=gain,
        cost=cost,
        reason=_reason(forecaster.posterior, pilot, gain, over),
    )


def weighed(pilot: NextPilot, evaluate: Evaluator, settings: Settings) -> NextPilot:
    """A pilot with what a run of these settings loses when it is shorter by the pilot's price."""
    forecaster, run = evaluate.forecaster, evaluate(settings)
    low, high = forecaster.outcome_bounds
    share = min(1.0, pilot.cost.paid / run.cost.paid) if run.cost.paid > 0 else 1.0
    left = max(1, round((1 - share) * run.cost.steps))
    whole, shorter = utilities(forecaster, [run.settings] * 2, [run.cost.steps, left]).mean(axis=1)
    return pilot.model_copy(update={"loss": max(0.0, float(whole - shorter)) / (high - low)})


def is_worth_its_price(pilot: NextPilot) -> bool:
    """Whether its result gains more than a run loses by being shorter by its price."""
    return pilot.loss is None or pilot.gain > pilot.loss


def _few(lattice: Lattice, most: int, evaluate: Evaluator) -> Iterable[Settings]:
    """A lattice, thinned evenly where it is larger."""
    return lattice if len(lattice) <= most else lattice.spread(most, _price_of_step(evaluate))


def _price_of_step(evaluate: Evaluator) -> Callable[[Settings], float]:
    return lambda settings: evaluate.cost(settings, 1).paid


def _reason(posterior: Posterior, pilot: Settings, gain: float, over: str) -> str:
    if gain < IDLE:
        return (
            "no pilot is expected to change the decision by a thousandth of the reward's range; "
            "of those that tell anything this one is the cheapest."
        )
    surviving = largest_surviving_rate(posterior)
    rate = pilot.learning_rate
    rates = [run.settings.learning_rate for run in posterior.meta.runs]
    if surviving is None:
        place = "this lies below" if rate < 0.95 * min(rates) else "this is no higher"
        where = f"every pilot collapsed, the gentlest at learning rate {min(rates):.3g}; {place}"
    elif rate > 1.05 * surviving:
        where = (
            f"learning rate {surviving:.3g} survived; this is {rate / surviving:.2g} times as much "
            "and shows what the model tolerates"
        )
    elif rate < 0.95 * min(rates):
        where = "a lower learning rate than any so far tells its exponent, and what safety costs"
    else:
        where = "it lies between the pilots so far, where the decision turns"
    return (
        f"{where}. Its result is expected to raise the final reward by {100 * gain:.1f} % of its "
        f"range{over}."
    )
