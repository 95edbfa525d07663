"""What advice is worth when pilots and the full run are paid out of one purse.

    python case_studies/economics/run.py TABLE.jsonl[.gz]... --records FILE

Every method gets the same optimizer steps for all that it trains, as many as a run of the table
has. What pilots take, the full run is shorter by; regret is against the best run of the table had
all of the purse gone into it. Tables hold runs that were really trained: a pilot is the beginning
of one, a full run its first part. `rivals.py` scores the records beside searches.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from engine_flags import add_engine_flags, on_engine, results
from tables import World, read_worlds

import advisor
from advisor.advice import plan
from advisor.advice.pilot_choice import FEWEST_RUNS
from advisor.advice.pilot_plan import VARIED
from advisor.common import Item, digest_of
from advisor.errors import AdvisorError, InputError
from advisor.forecast import Forecaster, Target, fit, stability
from advisor.model import Posterior, Priors, Sampling
from advisor.runs import PilotRun, Settings

COUNTS = (3, 5, 8)
PROJECTS = (1, 2)
"""From how few other worlds a constant may be known; else it is from all of them."""

WHEN_KNOWN = 5
"""Pilots of advice; searches get fewer and more as well."""

ADVISOR, CONSTANT = "advisor", "best constant of other worlds"
OWN_PLAN = "advisor, its own plan"
RECIPES = {"recipe: TRL": (1e-6, 8, 1), "recipe: verl": (1e-6, 5, 4)}
"""Learning rate, group size and refresh interval of common defaults; the nearest run is taken."""

SHARE = 0.2
"""Of the purse that pilots may cost."""

LEAST_STEPS = 3
"""Steps that a pilot must have."""

AVERAGED = 10
LEVEL = 0.9
LADDER = 10**0.5
"""Ratio of neighbouring learning rates of pilots, unless the plan says another."""


class Purse(NamedTuple):
    """A world, and the optimizer steps that there are to spend in it."""

    world: World

    @property
    def recipes(self) -> set[Any]:
        """Learning rate, group size and refresh interval of every run."""
        settings = [run.hyperparameters for run in self.world.runs]
        return {(s.learning_rate, s.group_size, s.refresh_interval) for s in settings}

    @property
    def total(self) -> int:
        """Steps of a run of the table."""
        return self.world.steps

    def reward(self, index: int, steps: int) -> float:
        """Mean train reward of the last steps of a full run."""
        return score(self.world, index, steps)

    def outcome(self, index: int, pilots: Pilots) -> tuple[float, bool]:
        """What a launched run comes to with what pilots leave, and whether it had collapsed.

        A pilot goes on as the run: its own steps are not lost.
        """
        steps = self.total - pilots.cost + pilots.steps_of.get(index, 0)
        return self.reward(index, steps), self.world.has_collapsed(index, steps)

    def best(self) -> float:
        """Outcome of who knows everything and pays for no pilot."""
        return max(self.reward(index, self.total) for index in range(len(self.world.runs)))

    def shared(self, count: int) -> int:
        """Steps of each of so many pilots."""
        return max(LEAST_STEPS, int(SHARE * self.total / count))


class Pilots(NamedTuple):
    """Runs that are tried, and how many steps of each."""

    steps_of: Mapping[int, int]

    @classmethod
    def of(cls, runs: Sequence[int], steps: int) -> Pilots:
        """Pilots of one length."""
        return cls(dict.fromkeys(runs, steps))

    @property
    def runs(self) -> list[int]:
        """Which runs."""
        return list(self.steps_of)

    @property
    def steps(self) -> int:
        """Steps of the longest."""
        return max(self.steps_of.values(), default=0)

    @property
    def cost(self) -> int:
        """Steps of all."""
        return sum(self.steps_of.values())


NONE = Pilots({})


def launched(purse: Purse, others: Sequence[Purse]) -> int:
    """Run that would be launched without any pilot: the best constant recipe of other worlds."""
    worth = {}
    for recipe in sorted({one for other in others for one in other.recipes}):
        ends = [
            other.reward(nearest(other.world, all_runs(other), *recipe), other.total)
            for other in others
        ]
        worth[recipe] = float(np.mean(ends))
    return nearest(purse.world, all_runs(purse), *max(worth, key=lambda r: worth[r]))


def ladder(purse: Purse, base: int, count: int) -> Pilots:
    """So many pilots round the rate that would be launched, at its group size and refresh."""
    return _taken(purse, _rungs(purse, base, count), purse.shared(count))


def varied(purse: Purse, base: int, count: int) -> Pilots:
    """The same rates; beside the middle one, group size and refresh interval vary in turn."""
    turns, asked = cycle(VARIED), []
    for place, (rate, group, interval) in enumerate(_rungs(purse, base, count)):
        of_group, of_interval = (1.0, 1.0) if place == count // 2 else next(turns)
        asked.append((rate, group * of_group, interval * of_interval))
    return _taken(purse, asked, purse.shared(count))


def _rungs(purse: Purse, base: int, count: int) -> list[tuple[float, float, float]]:
    own = purse.world.runs[base].hyperparameters
    return [
        (
            own.learning_rate * LADDER ** (at - (count - 1) / 2),
            own.group_size,
            own.refresh_interval,
        )
        for at in range(count)
    ]


def planned(purse: Purse, base: int, projects: int) -> Pilots:
    """Pilots that `advisor plan` names, or none where it says: run."""
    settings, target = purse.world.settings(base), purse.world.target
    target = Target("task", target.model, target.parameters)
    try:
        found = plan(settings, purse.total, target, share=SHARE, vary_all=True, projects=projects)
    except InputError:  # the purse has no room for two pilots
        return NONE
    if found.kind == "run":
        return NONE
    asked = [
        (own.learning_rate, own.group_size, own.refresh_interval)
        for own in (one.settings for one in found.pilots)
    ]
    return _taken(purse, asked, found.pilots[0].steps)


def _taken(purse: Purse, settings: Sequence[tuple[float, float, float]], steps: int) -> Pilots:
    """Untried runs nearest to such rates, group sizes and refresh intervals."""
    untried, runs = all_runs(purse), []
    for asked in settings:
        found = nearest(purse.world, untried, *asked)
        untried.remove(found)
        runs.append(found)
    return Pilots.of(runs, steps)


def all_runs(purse: Purse) -> list[int]:
    return list(range(len(purse.world.runs)))


def nearest(world: World, candidates: list[int], rate: float, group: float, k: float) -> int:
    """Run with the nearest settings, in decades of rate and doublings of the rest."""

    def distance(index: int) -> float:
        settings = world.runs[index].hyperparameters
        return (
            3 * abs(math.log10(settings.learning_rate / rate))
            + abs(math.log2(settings.group_size / group))
            + 0.5 * abs(math.log2(settings.refresh_interval / k))
        )

    return min(candidates, key=distance)


def score(world: World, index: int, steps: int) -> float:
    """Mean train reward of a run's last steps up to ``steps``."""
    return float(np.mean(world.rows[index]["reward"][max(0, steps - AVERAGED) : steps]))


def fit_runs(runs: list[PilotRun], priors: Priors | None = None) -> Posterior | None:
    """Posterior of runs; None where they do not fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return fit(runs, priors=priors, sampling=Sampling(seed=1))
        except AdvisorError:
            return None


class Advice(NamedTuple):
    """Run that is named, its P(stable), and by the model's word that of every run not piloted."""

    run: int
    p_stable: float | None
    said: dict[int, float]


def fitted(purse: Purse, pilots: Pilots) -> Posterior | None:
    """Posterior of pilots; None where they are too few for advice or do not fit."""
    runs = [purse.world.pilot(index, steps) for index, steps in pilots.steps_of.items()]
    # Of fewer the advisor names no configuration, only the next pilot.
    return fit_runs(runs) if len(runs) >= FEWEST_RUNS else None


def advised(
    purse: Purse, pilots: Pilots, base: int, projects: int, posterior: Posterior | None
) -> Advice:
    """Run that the advisor names; that which would be launched where it names none."""
    own = purse.world.runs[base].hyperparameters
    world, left = purse.world, purse.total - pilots.cost
    offered: dict[tuple[object, ...], tuple[int, Settings]] = {}
    for index in all_runs(purse):
        settings = world.settings(index)
        offered.setdefault(_place(settings), (index, settings))
    choices = [settings for _, settings in offered.values()]
    if posterior is None:
        return Advice(base, None, {})
    found = advisor.advise(
        posterior,
        task=world.target.task,
        model=world.target.model,
        parameters=world.target.parameters,
        steps=left,
        level=LEVEL,
        choose_from=choices,
        indifference=0.0,
        weigh_pilots=False,
        trials=len(choices),
        known={
            "learning_rate": own.learning_rate,
            "group_size": own.group_size,
            "refresh_interval": own.refresh_interval,
        },
        projects=projects,
        seed=0,
    )
    forecaster = Forecaster(posterior, found.target)
    said = {
        index: stability(forecaster, settings.planned_over(left), left).by_model
        for index, settings in offered.values()
        if index not in pilots.runs
    }
    if found.kind != "recommendation":
        return Advice(base, None, said)
    return Advice(offered[_place(found.settings)][0], found.stability.probability, said)


def _place(settings: Any) -> tuple[object, ...]:
    names = ("learning_rate", "group_size", "minibatches_per_refresh", "epochs_per_refresh")
    return tuple(getattr(settings, name) for name in names)


class Ledger(NamedTuple):
    """What methods come to in one world."""

    purse: Purse
    records: list[dict[str, Any]]

    def record(
        self,
        method: str,
        index: int,
        pilots: Pilots,
        said: float | None = None,
        every: Mapping[int, float] | None = None,
    ) -> None:
        """Add what a launched run came to."""
        reward, fell = self.purse.outcome(index, pilots)
        self.records.append(
            {
                "world": self.purse.world.name,
                "task": self.purse.world.target.task,
                "method": method,
                "pilots": len(pilots.runs),
                "spent": pilots.cost / self.purse.total,
                "run": index,
                "reward": reward,
                "regret": self.purse.best() - reward,
                "collapsed": fell,
                "p_stable": said,
                "said": None if every is None else {str(i): round(p, 4) for i, p in every.items()},
            }
        )

    def ask(self, method: str, pilots: Pilots, known: int, projects: int) -> None:
        """Launch what the advisor names."""
        posterior = fitted(self.purse, pilots)
        found = advised(self.purse, pilots, known, projects, posterior)
        self.record(method, found.run, pilots, found.p_stable, found.said)


def study(task: tuple[list[Purse], int]) -> list[dict[str, Any]]:
    """Every method in one world."""
    purses, number = task
    warnings.simplefilter("ignore")
    purse, ledger = purses[number], Ledger(purses[number], [])
    # A world on the same task, of another size or start, would give the constant away.
    others = [p for p in purses if p.world.target.task != purse.world.target.task]
    rng = np.random.default_rng([number, 0])
    base = launched(purse, others)
    worlds = len({one.world.target.task for one in others})
    ledger.record(CONSTANT, base, NONE)
    for name, recipe in RECIPES.items():
        ledger.record(name, nearest(purse.world, all_runs(purse), *recipe), NONE)
    ledger.ask(OWN_PLAN, planned(purse, base, worlds), base, worlds)
    ledger.ask(ADVISOR, varied(purse, base, WHEN_KNOWN), base, worlds)
    for count in (1, 2, *COUNTS):
        # Random pilots were drawn here once: which worlds are known must not change.
        rng.choice(len(purse.world.runs), count, replace=False)
        if count > 1:
            rng.permutation(len(purse.world.runs))
    for projects in PROJECTS:
        drawn = rng.choice(len(others), projects, replace=False)
        few = launched(purse, [others[place] for place in drawn])
        ledger.record(f"constant of {projects} worlds", few, NONE)
        pilots = varied(purse, few, WHEN_KNOWN)
        ledger.ask(f"{ADVISOR}, {projects} worlds known", pilots, few, projects)
        own = planned(purse, few, projects)
        ledger.ask(f"{OWN_PLAN}, {projects} worlds known", own, few, projects)
    return ledger.records


def main() -> None:
    """Read, ask, keep the records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tables", nargs="+", type=Path)
    add_engine_flags(parser)
    parser.add_argument("--records", type=Path, required=True, help="JSON lines, written here")
    given = parser.parse_args()
    found = records_of(study, "Spending purses", given)
    given.records.write_text("".join(json.dumps(one) + "\n" for one in found), encoding="utf-8")


def records_of(
    study: Callable[[Any], list[dict[str, Any]]], task: str, given: argparse.Namespace
) -> list[dict[str, Any]]:
    """What a study says of every world, one after the other."""
    purses = [Purse(world) for world in read_all(given.tables)]
    data = digest_of([[run.digest for run in purse.world.runs] for purse in purses])
    items = [
        Item(purse.world.name, (purses, number), (data, digest_of(number)))
        for number, purse in enumerate(purses)
    ]
    return [one for part in results(study, items, task, on_engine(given)) for one in part]


def read_all(paths: Sequence[Path]) -> list[World]:
    """Worlds whose runs share their prompts per step: what a lattice offers."""
    worlds = read_worlds(list(paths))
    return [
        world
        for world in worlds
        if len({run.hyperparameters.prompts_per_step for run in world.runs}) == 1
    ]


if __name__ == "__main__":
    main()
