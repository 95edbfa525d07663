"""Which pilots to run: what they are expected to teach, less what the run loses by their price.

The utility of a run is the reward that it ends with, or the floor where it is lost. What a pilot
would show is simulated from each draw, and the expected gain of the decision follows by regression.
Whatever pilots cost, the full run is shorter by. `next_pilot` asks for one pilot after a
recommendation; `advisor.advice.pilot_plan` and `advisor.advice.piloting` weigh several together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from advisor.advice.answer_fields import NextPilot
from advisor.advice.candidates import RATE_REACH, Lattice, default_lattice, place_of
from advisor.advice.cost import fresh_completions
from advisor.advice.evaluate import Evaluation, Evaluator, base_settings, stacked, utilities
from advisor.advice.promotion import goes_on
from advisor.advice.recommendation import Recommendation
from advisor.advice.request import Objective
from advisor.advice.support import SAME
from advisor.advice.wording import say_of_pilots
from advisor.common import DEFAULT_SEED, counted
from advisor.errors import CannotTellError, InputError
from advisor.forecast import (
    Forecaster,
    RunEffect,
    pilots_of,
    rest_stable,
    stabilities_and_draws,
    stability,
)
from advisor.model import Posterior, planned_factors
from advisor.runs import Settings
from advisor.theory import FloatArray, IntArray

FEWEST_RUNS = 3
"""Below three runs, or with one setting only, no law is identified (docs/theory, T37)."""

FEW_PROJECTS = 0.15
"""Share of the reward's range by which three pilots and more raise a run whose settings are known
from one project, of n an nth of that. Less their price it was 0.13, 0.07 and 0.00 of 1, 2 and 19 in
50 worlds (case_studies/economics), 0.07 and -0.02 of 1 and 2 tasks of a language model."""

PILOT_LEVEL = 0.5
"""P(stable) that a suggested pilot must have: it is short, and a failure teaches too."""

LENGTHS = (0.5, 1.0, 2.0)
"""Lengths offered, as shares of the longest pilot; the last where all configurations have run."""

MOST_PILOTS = 40
MOST_CONFIGURATIONS = 80
"""Pilots weighed, and configurations among which the decision is made: the best by utility."""

MOST_EVALUATED = 2000
"""Configurations that are evaluated to find those, where no search has: some ten seconds."""

ANOTHER_RUN = 3  # Sets the effects of a pilot itself apart from those of the run that is decided on
ROUNDING = 1e-9  # Of shares that are added up

LOOKS = (1 / 3, 2 / 3, 1.0)
"""Shares of what is to come of a pilot at which its reward is looked at; each time a third of its
rows is averaged."""

IDLE = 0.001
"""Gain, as a share of the reward range, up to which what is done changes nothing worth doing."""

SHUFFLES = 2
"""Times that results are dealt to the wrong draws, to see what the regression finds in noise."""


def shown(
    forecaster: Forecaster,
    pilot: Settings,
    steps: int,
    stable: FloatArray,
    rng: np.random.Generator,
    *,
    begun: int = 0,
    level: FloatArray | None = None,
) -> FloatArray:
    """What a pilot would show under each draw after its ``begun`` steps, shape (draws, features).

    Whether it collapses (``stable`` is the probability that it does not), else its reward at three
    points (``level``, where that is known) with the wander and the noise of a new seed.
    """
    if level is None:
        level = forecaster.scaled_reward(pilot.planned_over(steps), _looks(begun, steps))
    level = np.clip(level, 0.01, 0.99)
    batches = max(1.0, (steps - begun) / len(LOOKS) / pilot.epochs_per_refresh)
    noise = np.sqrt(level * (1 - level) / batches / pilot.prompts_per_step)
    wander = forecaster.misfit[:, None] * rng.standard_normal((level.shape[0], 1))
    seen = level + wander + noise * rng.standard_normal(level.shape)
    collapses = rng.random(level.shape[0]) > stable
    seen[collapses] = 0.0
    middle = seen[~collapses].mean(axis=0) if not collapses.all() else 0.0
    centred = np.where(collapses[:, None], 0.0, seen - middle)
    ends = centred[:, :1] * centred[:, -1:]
    return np.column_stack([np.ones(len(level)), collapses, centred, centred**2, ends])


def _looks(begun: int, steps: int) -> IntArray:
    """Steps at which a pilot is looked at."""
    return np.maximum(1, np.round(begun + np.array(LOOKS) * (steps - begun))).astype(np.int64)


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


@dataclass(frozen=True, eq=False)
class Action:
    """Something that can be done before the full run."""

    name: str
    kind: Literal["start", "continue", "extend"]
    settings: Settings
    begun: int
    steps: int
    price: float
    stable: float
    look: FloatArray = field(repr=False)
    model: str = ""

    @classmethod
    def of(
        cls,
        forecaster: Forecaster,
        name: str,
        kind: Literal["start", "continue", "extend"],
        settings: Settings,
        steps: tuple[int, int],
        price: float,
        rng: np.random.Generator | None = None,
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
            stable = stabilities_and_draws(forecaster, planned, last)[1]
        rng = rng or np.random.default_rng([forecaster.seed, *name.encode(), last])
        look = shown(forecaster, settings, last, stable, rng, begun=begun)
        lives, model = float(stable.mean()), forecaster.target.model
        return cls(name, kind, settings, begun, last, price, lives, look, model)


@dataclass
class Worth:
    """Worth of actions under one forecaster of the full run."""

    forecaster: Forecaster
    offered: Sequence[Settings]
    whole: Settings
    steps: int
    spent: float
    room: float
    begun: Sequence[tuple[Settings, int]] = ()  # living pilots that may go on, and their steps
    few: float = 0.0  # gain of the first pilots together, as settings known from few projects have
    done: int = 0  # pilots that have ended
    _utilities: dict[int, FloatArray] = field(default_factory=dict, repr=False)
    _gains: dict[frozenset[Action], float] = field(default_factory=dict, repr=False)

    def left(self, actions: Sequence[Action] = ()) -> int:
        """Steps that the same money leaves for the full run."""
        price = self.spent + sum(action.price for action in actions)
        return max(1, round((1 - price) * self.steps))

    def affords(self, actions: Sequence[Action]) -> bool:
        """Whether there is room for the price of some actions."""
        return sum(action.price for action in actions) <= self.room + ROUNDING

    def decided(self, actions: Sequence[Action] = ()) -> float:
        """Reward of the best decision as it stands, on what the actions leave; in the range."""
        return float(self._utility(actions).mean(axis=1).max())

    def gain(self, actions: Sequence[Action], rng: np.random.Generator | None = None) -> float:
        """Expected rise of that reward by what the actions show, as a share of the range."""
        key = frozenset(actions)
        if key not in self._gains:
            looks = [action.look for action in actions]
            rng = rng or np.random.default_rng([self.forecaster.seed, 2])
            utility = self._utility(actions)
            gain = information_gain(utility, np.hstack(looks), rng) if looks else 0.0
            enough = self.done < FEWEST_RUNS <= self.done + len(actions)
            self._gains[key] = gain + (self.few if enough else 0.0)
        return self._gains[key]

    def __call__(self, actions: Sequence[Action]) -> float:
        """Expected reward of the full run after some actions, as a share of the range."""
        return self.decided(actions) + self.gain(actions)

    def _utility(self, actions: Sequence[Action]) -> FloatArray:
        """Utility of every run that may be launched, and of the pilots that go on as the run."""
        left, model = self.left(actions), self.forecaster.target.model
        if left not in self._utilities:
            fresh = [(one, 0) for one in self.offered]
            self._utilities[left] = self._of([*fresh, *self.begun], left)
        kept = [one for one in actions if goes_on(one.settings) and one.model == model]
        begun = [(one.settings, one.steps) for one in kept]
        if not begun:
            return self._utilities[left]
        return np.vstack([self._utilities[left], self._of(begun, left)])

    def _of(self, runs: Sequence[tuple[Settings, int]], left: int) -> FloatArray:
        """Utility of runs that have done so many steps already, as a share of the range."""
        # A step costs more or less than one of the full run as it was planned.
        batch = fresh_completions(self.whole)
        settings = [one for one, _ in runs]
        steps = [at + max(1, round(left / (fresh_completions(one) / batch))) for one, at in runs]
        above = utilities(self.forecaster, settings, steps) - self.forecaster.outcome_bounds[0]
        return np.asarray(above / self.forecaster.outcome_range)


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
    return worth.gain(both) - worth.gain(without), worth.decided(without) - worth.decided(both)


def is_first_contact(posterior: Posterior) -> bool:
    """Whether the pilots are too few or too alike for a recommendation."""
    runs = posterior.meta.runs
    settings = {place_of(run.settings) for run in runs}
    return len(runs) < FEWEST_RUNS or len(settings) < 2


def further_pilots(posterior: Posterior, pilot: NextPilot | None) -> tuple[Settings, ...]:
    """What else lacks of three pilots: rates as far on the other side of those that ran."""
    runs = posterior.meta.runs
    if pilot is None or len(runs) + 1 >= FEWEST_RUNS:
        return ()
    (middle,) = {run.settings.learning_rate for run in runs}
    ratio = pilot.settings.learning_rate / middle
    rate = middle / (ratio if abs(math.log(ratio)) > math.log(SAME) else RATE_REACH)
    return (pilot.settings.model_copy(update={"learning_rate": float(f"{rate:.2g}")}),)


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
    """
    if steps is not None and not 2 <= steps <= recommendation.steps:
        advice = f"Give at least 2 and no more than the run, {recommendation.steps}"
        raise InputError(f"a pilot of {counted(steps, 'step')}", argument="steps", advice=advice)
    # What was decided and among what: the reward at the end, the same choices.
    target, terms = recommendation.target, recommendation.terms
    evaluate = Evaluator(
        Forecaster(posterior, target, seed=terms.seed),
        Objective(quantile=terms.objective.quantile),
        terms.budget,
        terms.cost_model,
    )
    lattice = default_lattice(
        posterior,
        base_settings(posterior, target),
        group_sizes=terms.choices["group_size"],
        learning_rates=terms.choices["learning_rate"],
        prompts_per_step=terms.choices["prompts_per_step"],
        devices=terms.devices,
    )
    return weighed_pilot(
        evaluate,
        lattice,
        recommendation.settings,
        steps=steps,
        seed=terms.seed if seed is None else seed,
        level=terms.level,
        is_first=recommendation.kind == "next_pilot",
    )


def weighed_pilot(
    evaluate: Evaluator,
    lattice: Lattice,
    settings: Settings,
    *,
    seed: int,
    level: float,
    is_first: bool,
    steps: int | None = None,
) -> NextPilot:
    """Choose a pilot where a run of some settings is chosen, and weigh its price against that."""
    highest = _highest_rate(evaluate, lattice, settings, level)
    pilot = choose_pilot(
        evaluate,
        lattice,
        steps=steps,
        seed=seed,
        candidates=None if highest is None else lattice.up_to(highest),
        otherwise=settings if is_first else None,
    )
    # What the run loses when it is shorter by the pilot's price.
    forecaster, run = evaluate.forecaster, evaluate(settings)
    share = min(1.0, pilot.cost.paid / run.cost.paid) if run.cost.paid > 0 else 1.0
    left = max(1, round((1 - share) * run.cost.steps))
    shorter = utilities(forecaster, [run.settings], [left])[0]
    loss = max(0.0, float(run.utility.mean() - shorter.mean())) / forecaster.outcome_range
    return pilot.model_copy(update={"loss": loss})


def _highest_rate(
    evaluate: Evaluator, lattice: Lattice, settings: Settings, level: float
) -> float | None:
    """Learning rate up to which pilots are named beside a run of some settings; None for all."""
    rates = lattice.axes["learning_rate"]
    gentler = [one for one in rates if one < settings.learning_rate]
    if evaluate(settings).stable < level:
        # What is to be learned lies below what is not stable enough.
        return gentler[-1] if gentler else None
    if evaluate.forecaster.is_small:
        return None
    # A language model is known to die of such rates: a short pilot that lives tells nothing else.
    beside = [settings.model_copy(update={"learning_rate": one}) for one in rates]
    stable = [one.settings for one in evaluate.compared(beside) if one.stable >= level]
    return max((one.learning_rate for one in stable), default=None)


def choose_pilot(
    evaluate: Evaluator,
    lattice: Lattice,
    *,
    steps: int | None = None,
    seed: int = DEFAULT_SEED,
    candidates: Lattice | None = None,
    otherwise: Settings | None = None,
) -> NextPilot:
    """Choose the pilot whose result improves the decision most for its price."""
    forecaster = evaluate.forecaster
    most = evaluate.budget.steps or np.inf
    longest = steps or min(forecaster.posterior.meta.longest, most)
    lengths = [steps] if steps else sorted({max(2, round(min(longest * s, most))) for s in LENGTHS})
    ran = _ran(forecaster)
    asked = _new(evaluate, candidates or lattice, lengths, ran)
    if not asked:
        raise CannotTellError(
            "No configuration offered is new: each has run for as long as a pilot may. Offer other "
            "learning rates (`learning_rates`)."
        )
    asked = [pilot for pilot in asked if pilot[1] <= longest] or asked
    # A pilot has a seed of its own, and so have its results.
    rng = np.random.default_rng([seed, 1])
    pilots = forecaster.with_run_effect(RunEffect.fresh((seed, ANOTHER_RUN)))
    price, scale = evaluate.cost.of_step, forecaster.outcome_range
    known: Iterable[Evaluation] = evaluate.tried
    if len(evaluate.tried) < MOST_CONFIGURATIONS:
        few = len(lattice) <= MOST_EVALUATED
        known = map(evaluate, lattice if few else lattice.spread(MOST_EVALUATED, price))
    decided = sorted(known, key=lambda e: -e.value)[:MOST_CONFIGURATIONS]
    utility = np.array([one.utility for one in decided])
    found: list[tuple[float, float, Settings, int]] = []  # gain, price, pilot, steps
    planned = [pilot.planned_over(length) for pilot, length in asked]
    level = np.empty((len(asked), pilots.size, len(LOOKS)))
    stable = np.empty((len(asked), pilots.size))
    each = [length for _, length in asked]
    for places, plan, last in stacked(planned, each, pilots.size * len(LOOKS)):
        level[places] = pilots.scaled_reward(plan, _looks(0, last))
        stable[places] = stabilities_and_draws(pilots, plan, last)[1]
    paid = [evaluate.cost(pilot, length).paid for pilot, length in asked]
    for (pilot, length), cost, lives, seen in zip(asked, paid, stable, level, strict=True):
        if lives.mean() >= PILOT_LEVEL:
            look = shown(pilots, pilot, length, lives, rng, level=seen)
            gain = information_gain(utility, look, rng) / scale
            found.append((gain, cost, pilot, length))
    if not found:
        raise CannotTellError(
            "No configuration offered is likely to survive even a short pilot. Offer learning "
            f"rates {RATE_REACH:g} to {RATE_REACH**2:g} times lower (`learning_rates`)."
        )
    most = max(gain for gain, *_ in found)
    # The cheapest of all tells next to nothing: it must bring half of the largest gain.
    telling = [one for one in found if one[0] >= 0.5 * most]
    gain, _, pilot, length = max(telling, key=lambda one: one[0] / one[1])
    over = ""
    if otherwise is not None:
        kept = evaluate(otherwise).utility.mean()
        gain += max(0.0, float(utility.mean(axis=1).max() - kept)) / scale
        over = " over what was piloted"
    return NextPilot(
        settings=pilot,
        steps=length,
        stability=stability(forecaster, pilot.planned_over(length), length),
        gain=gain,
        cost=evaluate.cost(pilot, length),
        reason=_reason(forecaster.posterior, pilot, gain, over, ran.get(place_of(pilot), 0)),
    )


def _ran(forecaster: Forecaster) -> dict[tuple[float, ...], float]:
    """How many steps of each configuration the pilots of a model and task have shown."""
    runs = pilots_of(forecaster.posterior, forecaster.target) if forecaster.is_piloted else []
    return {place_of(run.settings): run.steps for run in sorted(runs, key=lambda run: run.steps)}


def _new(
    evaluate: Evaluator,
    offered: Lattice,
    lengths: Sequence[int],
    ran: Mapping[tuple[float, ...], float],
) -> list[tuple[Settings, int]]:
    """Pilots of whole batches that have not run, or not for so long."""
    every = offered.spread(MOST_PILOTS, evaluate.cost.of_step)
    intervals, places = [one.refresh_interval for one in every], [*map(place_of, every)]
    return [
        (one, length)
        for one, interval, place in zip(every, intervals, places, strict=True)
        for last in lengths
        for length in [interval * max(1, last // interval)]
        if length > ran.get(place, 0)
    ]


def _reason(posterior: Posterior, pilot: Settings, gain: float, over: str, had: float) -> str:
    """Why a pilot is named: its rate beside those that ran, what is new, and what it gains."""
    runs, surviving = posterior.meta.runs, posterior.meta.largest_surviving_rate
    lived = [one for one in runs if one.collapse_step is None and one.highest_rate == surviving]
    new = [
        f"{word} {value}"
        for word, name in (("group size", "group_size"), ("K", "refresh_interval"))
        for value in [getattr(pilot, name)]
        if value not in {getattr(run.settings, name) for run in runs}
    ]
    least = min([run.highest_rate for run in runs])
    steps = max((one.steps for one in lived), default=0)
    rates = pilot.learning_rate, least, surviving, steps
    return say_of_pilots("why", gain < IDLE, *rates, new, gain, over, had)
