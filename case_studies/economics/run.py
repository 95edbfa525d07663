"""What advice is worth when pilots and the full run are paid out of one purse.

    python case_studies/economics/run.py TABLE.jsonl[.gz]... [--out economics.json] [--records FILE]

Every method gets the same optimizer steps for all that it trains, as many as a run of the table
has. What pilots take, the full run is shorter by; regret is against the best run of the table had
all of the purse gone into it. Tables hold runs that were really trained: a pilot is the beginning
of one, a full run its first part.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "replay"), str(HERE.parent)]

import numpy as np  # noqa: E402
from advise import fit_runs  # noqa: E402
from engine_flags import add_engine_flags, on_engine, results  # noqa: E402
from manifest import manifest  # noqa: E402
from methods import RECIPES, best_pilot, nearest, score, tried_by_tpe  # noqa: E402
from tables import World, read_worlds  # noqa: E402

import advisor  # noqa: E402
from advisor.advice import plan  # noqa: E402
from advisor.advice.pilot_choice import FEWEST_RUNS  # noqa: E402
from advisor.advice.pilot_plan import VARIED  # noqa: E402
from advisor.common import Item, digest_of  # noqa: E402
from advisor.errors import InputError  # noqa: E402
from advisor.forecast import Forecaster, Target, stability  # noqa: E402
from advisor.model import Posterior  # noqa: E402
from advisor.runs import Settings  # noqa: E402

COUNTS = (1, 2, 3, 5, 8)
PROJECTS = (1, 2)
"""From how few other worlds a constant may be known; else it is from all of them."""

WHEN_KNOWN = 5
"""Pilots where it is known from few."""

ADVISOR, CONSTANT = "advisor", "best constant of other worlds"
OWN_PLAN = "advisor, its own plan"
BEST_OF_LADDER, TPE = "best of the ladder", "TPE from the constant"
COMPARED: dict[tuple[str, int], tuple[tuple[str, int], ...]] = {
    (ADVISOR, count): ((CONSTANT, 0), (BEST_OF_LADDER, count), (TPE, count)) for count in (3, 5, 8)
} | {
    (f"{ADVISOR}, {projects} worlds known", WHEN_KNOWN): (
        (f"constant of {projects} worlds", 0),
        (f"{BEST_OF_LADDER}, {projects} worlds known", WHEN_KNOWN),
    )
    for projects in PROJECTS
}
"""Methods and their numbers of pilots whose regrets are compared world by world."""

BOOTSTRAPS = 2000

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
    def total(self) -> int:
        """Steps of a run of the table."""
        return self.world.steps

    def reward(self, index: int, steps: int) -> float:
        """Mean train reward of the last steps of a full run."""
        return float(np.mean(self.world.rows[index]["reward"][:steps][-AVERAGED:]))

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
    recipes = {
        (s.learning_rate, s.group_size, s.refresh_interval)
        for other in others
        for s in (run.hyperparameters for run in other.world.runs)
    }
    worth = {}
    for recipe in sorted(recipes):
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


def planned(purse: Purse, base: int, projects: int, *, vary_all: bool = True) -> Pilots:
    """Pilots that `advisor plan` names, or none where it says: run."""
    settings, target = purse.world.settings(base), purse.world.target
    target = Target("task", target.model, target.parameters)
    try:
        asked_of = {"share": SHARE, "vary_all": vary_all, "projects": projects}
        found = plan(settings, purse.total, target, **asked_of)
    except InputError:  # the purse has no room for two pilots
        return NONE
    if found.kind == "run":
        return NONE
    asked = [
        (own.learning_rate, own.group_size, own.refresh_interval)
        for own in (one.settings for one in found.pilots)
    ]
    return _taken(purse, asked, found.pilots[0].steps)


def at_random(purse: Purse, count: int, rng: np.random.Generator) -> Pilots:
    """So many runs of the table, drawn without replacement."""
    runs = rng.choice(len(purse.world.runs), count, replace=False).tolist()
    return Pilots.of(runs, purse.shared(count))


def _taken(purse: Purse, settings: Sequence[tuple[float, float, float]], steps: int) -> Pilots:
    """Untried runs nearest to such rates, group sizes and refresh intervals."""
    untried, runs = all_runs(purse), []
    for asked in settings:
        found = nearest(purse.world, untried, *asked)
        untried.remove(found)
        runs.append(found)
    return Pilots.of(runs, steps)


def same_in(world: World, purse: Purse, index: int) -> int:
    """Run of a world that is nearest in its settings to one of a purse."""
    own = purse.world.runs[index].hyperparameters
    every = list(range(len(world.runs)))
    return nearest(world, every, own.learning_rate, own.group_size, own.refresh_interval)


def all_runs(purse: Purse) -> list[int]:
    return list(range(len(purse.world.runs)))


class Advice(NamedTuple):
    """Run that is named, its P(stable), and by the model's word that of every run not piloted."""

    run: int
    p_stable: float | None
    said: dict[int, float]


def fitted(purse: Purse, pilots: Pilots, seed: int) -> Posterior | None:
    """Posterior of pilots; None where they are too few for advice or do not fit."""
    runs = [purse.world.pilot(index, steps) for index, steps in pilots.steps_of.items()]
    # Of fewer the advisor names no configuration, only the next pilot.
    posterior = fit_runs(runs, None, seed) if len(runs) >= FEWEST_RUNS else "too few"
    return None if isinstance(posterior, str) else posterior


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


def _searched_from(purse: Purse, base: int, count: int, repeat: int) -> Pilots:
    """The constant and its two neighbours first, then what TPE draws."""
    steps, first = purse.shared(count), ladder(purse, base, 3).runs
    tried = tried_by_tpe(purse.world, first, count, steps, repeat)
    return Pilots.of(tried, steps)


def halved(
    purse: Purse, count: int, rng: np.random.Generator, known: Sequence[int] = ()
) -> tuple[int, Pilots]:
    """Successive halving from twice as many runs: the better half goes on for twice as long.

    Runs that are ``known`` to be good come first, the rest is drawn.
    """
    first = min(2 * count, len(purse.world.runs))
    drawn = [index for index in rng.permutation(all_runs(purse)).tolist() if index not in known]
    alive = [*known, *drawn][:first]
    rungs = max(1, int(np.ceil(np.log2(first))))
    done = dict.fromkeys(alive, 0)
    for _ in range(rungs):
        steps = int(SHARE * purse.total / rungs / len(alive))
        if steps:
            for index in alive:
                done[index] += steps
            alive.sort(key=lambda index: -score(purse.world, index, done[index]))
        alive = alive[: max(1, len(alive) // 2)]
    return alive[0], Pilots(done)


class Ledger(NamedTuple):
    """What methods come to in one world, for one draw of chance."""

    purse: Purse
    repeat: int
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
                "repeat": self.repeat,
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

    def look(self, method: str, pilots: Pilots) -> None:
        """Launch the best pilot as it stands."""
        purse = self.purse
        best = best_pilot(purse.world, all_runs(purse), pilots.runs, pilots.steps)
        self.record(method, best, pilots)

    def ask(self, method: str, pilots: Pilots, known: int, projects: int) -> None:
        """Launch what the advisor names."""
        posterior = fitted(self.purse, pilots, self.repeat)
        found = advised(self.purse, pilots, known, projects, posterior)
        self.record(method, found.run, pilots, found.p_stable, found.said)


def study(task: tuple[list[Purse], int, int]) -> list[dict[str, Any]]:
    """Every method in one world, for one draw of chance."""
    purses, number, repeat = task
    warnings.simplefilter("ignore")
    purse, ledger = purses[number], Ledger(purses[number], repeat, [])
    # A world on the same task, of another size or start, would give the constant away.
    others = [p for p in purses if p.world.target.task != purse.world.target.task]
    rng = np.random.default_rng([number, repeat])
    base = launched(purse, others)
    worlds = len({one.world.target.task for one in others})
    ledger.record(CONSTANT, base, NONE)
    for name, recipe in RECIPES.items():
        ledger.record(name, nearest(purse.world, all_runs(purse), *recipe), NONE)
    ledger.ask(OWN_PLAN, planned(purse, base, worlds), base, worlds)
    for count in COUNTS:
        pilots = ladder(purse, base, count)
        ledger.look(BEST_OF_LADDER, pilots)
        if count > 2:
            ledger.ask(ADVISOR, varied(purse, base, count), base, worlds)
            ledger.ask("advisor on a ladder of rates", pilots, base, worlds)
            ledger.look(TPE, _searched_from(purse, base, count, repeat))
        ledger.look("best of random pilots", at_random(purse, count, rng))
        if count > 1:
            ledger.record("successive halving", *halved(purse, count, rng))
    for projects in PROJECTS:
        drawn = rng.choice(len(others), projects, replace=False)
        few = launched(purse, [others[place] for place in drawn])
        ledger.record(f"constant of {projects} worlds", few, NONE)
        pilots = ladder(purse, few, WHEN_KNOWN)
        ledger.look(f"{BEST_OF_LADDER}, {projects} worlds known", pilots)
        pilots = varied(purse, few, WHEN_KNOWN)
        ledger.ask(f"{ADVISOR}, {projects} worlds known", pilots, few, projects)
        own = planned(purse, few, projects)
        ledger.ask(f"{OWN_PLAN}, {projects} worlds known", own, few, projects)
    return ledger.records


def main() -> None:
    """Read, replay, sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--repeats", type=int, default=1)
    add_engine_flags(parser)
    parser.add_argument("--records", type=Path, help="write them here, as JSON lines")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    purses = [Purse(world) for world in read_all(given.tables)]
    data = digest_of([[run.digest for run in purse.world.runs] for purse in purses])
    items = [
        Item(
            f"{purses[number].world.name}, repeat {repeat}",
            (purses, number, repeat),
            (data, digest_of(number, repeat)),
        )
        for repeat in range(given.repeats)
        for number in range(len(purses))
    ]
    found = results(study, items, "Spending purses", on_engine(given))
    done = [record for records in found for record in records]
    if given.records is not None:
        given.records.write_text("".join(json.dumps(one) + "\n" for one in done), encoding="utf-8")
    told = summary(done)
    told["manifest"] = manifest(Path(__file__), seeds=given.repeats, checks={}, inputs=given.tables)
    text = json.dumps(told, indent=1)
    if given.out is not None:
        given.out.write_text(text + "\n", encoding="utf-8")
    print(text)


def read_all(paths: Sequence[Path]) -> list[World]:
    """Worlds whose runs share their prompts per step: what a lattice offers."""
    worlds = read_worlds(list(paths))
    return [
        world
        for world in worlds
        if len({run.hyperparameters.prompts_per_step for run in world.runs}) == 1
    ]


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Regret by method and number of pilots; a world counts once, whatever its repeats."""
    worlds = sorted({one["world"] for one in records})
    told: dict[str, Any] = {"worlds": len(worlds), "methods": {}}
    for method in dict.fromkeys(one["method"] for one in records):
        own = [one for one in records if one["method"] == method]
        counts = [None] if method.startswith(OWN_PLAN) else sorted({one["pilots"] for one in own})
        for count in counts:
            part = [one for one in own if count is None or one["pilots"] == count]
            by_world = [
                float(np.mean([one["regret"] for one in part if one["world"] == world]))
                for world in worlds
                if any(one["world"] == world for one in part)
            ]
            key = method if count is None else f"{method}, {count} pilots"
            told["methods"][key] = {
                "regret_mean": round(float(np.mean(by_world)), 4),
                "regret_p90": round(float(np.quantile(by_world, 0.9)), 4),
                "spent": round(float(np.mean([one["spent"] for one in part])), 3),
                "collapsed": sum(one["collapsed"] for one in part),
                "distinct_runs": len({(one["world"], one["run"]) for one in part}),
                "pieces": len(part),
                "worlds": len(by_world),
            }
    told["guard"] = guard(records)
    told["differences"] = differences(records)
    return told


def differences(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean difference of regret in the same worlds, with a 95 % interval that resamples tasks."""
    regrets: dict[tuple[str, int], dict[str, float]] = {}
    for one in records:
        regrets.setdefault((one["method"], one["pilots"]), {})[one["world"]] = one["regret"]
    task_of = {one["world"]: one["task"] for one in records if "task" in one}
    found: dict[str, Any] = {}
    for own, others in COMPARED.items():
        for other in (one for one in others if own in regrets and one in regrets):
            by_task: dict[str, list[float]] = {}
            for world in regrets[own].keys() & regrets[other].keys():
                gap = regrets[own][world] - regrets[other][world]
                by_task.setdefault(task_of[world], []).append(gap)
            parts = [np.array(by_task[task]) for task in sorted(by_task)]
            rng = np.random.default_rng(0)
            drawn = rng.integers(0, len(parts), (BOOTSTRAPS, len(parts)))
            means = [np.concatenate([parts[at] for at in row]).mean() for row in drawn]
            low, high = np.quantile(means, [0.025, 0.975])
            name = f"{own[0]}, {own[1]} pilots - {other[0]}, {other[1]} pilots"
            found[name] = {
                "mean": round(float(np.concatenate(parts).mean()), 4),
                "low": round(float(low), 4),
                "high": round(float(high), 4),
                "tasks": len(parts),
            }
    return found


def guard(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Share of advised deaths where at least ``LEVEL`` was said, by distinct runs and worlds."""
    own = [
        one
        for one in records
        if one["method"].startswith("advisor") and (one["p_stable"] or 0.0) >= LEVEL
    ]
    distinct = {(one["world"], one["run"]): one["collapsed"] for one in own}
    return {
        "pieces": len(own),
        "distinct_runs": len(distinct),
        "worlds": len({world for world, _ in distinct}),
        "pieces_that_died": sum(one["collapsed"] for one in own),
        "distinct_runs_that_died": sum(distinct.values()),
    }


if __name__ == "__main__":
    main()
