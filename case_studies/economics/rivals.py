"""What searches come to that begin with the same knowledge as the advisor.

    python case_studies/economics/rivals.py records.jsonl.gz TABLE.jsonl[.gz]... [--out rivals.json]

with the records that ``run.py --records`` wrote on the same tables: their constants are where the
searches begin, and their advice is what these are compared with, world by world. A search tries the
constant and its two neighbours first, then what it draws. Nothing is fitted.
"""

from __future__ import annotations

import argparse
import gzip
import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from run import (
    ADVISOR,
    BOOTSTRAPS,
    CONSTANT,
    NONE,
    OWN_PLAN,
    Pilots,
    Purse,
    all_runs,
    best_pilot,
    halved,
    ladder,
    manifest,
    nearest,
    read_all,
)
from trials import hyperband

HERE = Path(__file__).resolve().parent

from methods import search_seed, tried_by_tpe  # noqa: E402

COUNTS = (3, 5, 8)
DRAWS = 3
"""Seeds of a search in each world."""

ALL = "all"
FROM = {1: "constant of 1 worlds", 2: "constant of 2 worlds", ALL: CONSTANT}
"""What is known, and the name of its constant in the records."""

ADVISED: dict[object, tuple[str, ...]] = {
    1: (f"{ADVISOR}, 1 worlds known", f"{OWN_PLAN}, 1 worlds known"),
    2: (f"{ADVISOR}, 2 worlds known", f"{OWN_PLAN}, 2 worlds known"),
    ALL: (ADVISOR, OWN_PLAN),
}
ADVISED_PILOTS = 5

DRAWN = (1, 2, 3, 5, 10)
"""Worlds whose best constant is asked for, ``CONSTANTS`` times in each world."""

CONSTANTS = 40

Regrets = dict[str, list[tuple[float, bool]]]
"""By world: regret of each draw, and whether the run died."""


def searched(purse: Purse, base: int, count: int, seed: int) -> dict[str, tuple[int, Pilots]]:
    """Run that each search launches, and what it paid."""
    steps, near = purse.shared(count), ladder(purse, base, 3).runs

    def best(pilots: Pilots) -> tuple[int, Pilots]:
        return best_pilot(purse.world, all_runs(purse), pilots.runs, steps), pilots

    rungs = ladder(purse, base, count)
    rng = np.random.default_rng(seed)
    return {
        "best of the ladder": best(rungs),
        "TPE": best(Pilots.of(tried_by_tpe(purse.world, near, count, steps, seed), steps)),
        "successive halving of the ladder": halved(purse, count, rng, rungs.runs),
        "Hyperband": hyperband(purse, count, seed, near),
    }


def constants(purses: Sequence[Purse]) -> dict[str, Regrets]:
    """Regret of the best constant of so many worlds of other tasks, launched without a pilot."""
    recipes = [
        sorted(
            {
                (s.learning_rate, s.group_size, s.refresh_interval)
                for s in (run.hyperparameters for run in purse.world.runs)
            }
        )
        for purse in purses
    ]
    places = {one: at for at, one in enumerate(sorted({r for own in recipes for r in own}))}
    run_of = np.array(
        [[nearest(p.world, all_runs(p), *recipe) for recipe in places] for p in purses]
    )
    rewards = [[p.reward(index, p.total) for index in all_runs(p)] for p in purses]
    worth = np.array([np.array(own)[at] for own, at in zip(rewards, run_of, strict=True)])
    found: dict[str, Regrets] = {}
    for number, purse in enumerate(purses):
        task, rng = purse.world.target.task, np.random.default_rng([number, 7])
        others = [at for at, p in enumerate(purses) if p.world.target.task != task]
        for known in DRAWN:
            for _ in range(CONSTANTS):
                chosen = rng.choice(others, known, replace=False)
                offered = sorted({places[r] for at in chosen for r in recipes[at]})
                best = offered[int(np.argmax(worth[np.ix_(chosen, offered)].mean(axis=0)))]
                index = int(run_of[number, best])
                reward, fell = purse.outcome(index, NONE)
                row = found.setdefault(f"constant, known from {known}", {})
                row.setdefault(purse.world.name, []).append((purse.best() - reward, fell))
    return found


def study(
    purses: Sequence[Purse], records: Sequence[dict[str, Any]], say: Callable[[str], None]
) -> tuple[dict[str, Regrets], dict[str, list[float]]]:
    """Regrets of all methods, and what they spent."""
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    regrets, spent = constants(purses), {}
    for one in records:
        for known, names in ADVISED.items():
            own_plan = one["method"] == names[1]
            if own_plan or (one["method"] == names[0] and one["pilots"] == ADVISED_PILOTS):
                which = OWN_PLAN if own_plan else f"{ADVISOR}, {ADVISED_PILOTS} pilots"
                row = regrets.setdefault(f"{which}, known from {known}", {})
                row.setdefault(one["world"], []).append((one["regret"], one["collapsed"]))
            if one["method"] == FROM[known] and one["pilots"] == 0:
                row = regrets.setdefault(f"constant of the records, known from {known}", {})
                row.setdefault(one["world"], []).append((one["regret"], one["collapsed"]))
    for number, purse in enumerate(purses):
        for known, name in FROM.items():
            base = next(
                one["run"]
                for one in records
                if one["method"] == name and one["world"] == purse.world.name
            )
            for count in COUNTS:
                for draw in range(DRAWS):
                    found = searched(purse, base, count, search_seed(number, draw))
                    for method, (index, pilots) in found.items():
                        key = f"{method}, {count} pilots, known from {known}"
                        reward, fell = purse.outcome(index, pilots)
                        row = regrets.setdefault(key, {})
                        row.setdefault(purse.world.name, []).append((purse.best() - reward, fell))
                        spent.setdefault(key, []).append(pilots.cost / purse.total)
        say(f"{number + 1} of {len(purses)}: {purse.world.name}")
    return regrets, spent


def summary(regrets: dict[str, Regrets], spent: dict[str, list[float]]) -> dict[str, Any]:
    """Mean regret, a world counting once; deaths in a hundred runs."""
    found = {}
    for method, rows in regrets.items():
        by_world = [np.mean([regret for regret, _ in row]) for row in rows.values()]
        deaths = [fell for row in rows.values() for _, fell in row]
        found[method] = {
            "regret_mean": round(float(np.mean(by_world)), 4),
            "regret_p90": round(float(np.quantile(by_world, 0.9)), 4),
            "died": round(float(np.mean(deaths)), 3),
            "worlds": len(by_world),
        }
        if method in spent:
            found[method]["spent"] = round(float(np.mean(spent[method])), 3)
    return found


def difference(own: Regrets, other: Regrets, task_of: dict[str, str]) -> dict[str, Any]:
    """Mean difference in the same worlds, with a 95 % interval that resamples tasks."""
    by_task: dict[str, list[float]] = {}
    for world in own.keys() & other.keys():
        gap = np.mean([r for r, _ in own[world]]) - np.mean([r for r, _ in other[world]])
        by_task.setdefault(task_of[world], []).append(float(gap))
    parts = [np.array(by_task[task]) for task in sorted(by_task)]
    rows = np.random.default_rng(0).integers(0, len(parts), (BOOTSTRAPS, len(parts)))
    means = [np.concatenate([parts[at] for at in row]).mean() for row in rows]
    low, high = np.quantile(means, [0.025, 0.975])
    return {
        "mean": round(float(np.concatenate(parts).mean()), 4),
        "low": round(float(low), 4),
        "high": round(float(high), 4),
        "tasks": len(parts),
        "worlds": int(sum(map(len, parts))),
    }


def main() -> None:
    """Read, search, sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("records", type=Path)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=HERE / "rivals.json")
    given = parser.parse_args()
    lines = gzip.decompress(given.records.read_bytes()).decode().splitlines()
    purses = [Purse(world) for world in read_all(given.tables)]
    task_of = {one.world.name: one.world.target.task for one in purses}
    regrets, spent = study(
        purses, [json.loads(line) for line in lines], lambda line: print(line, flush=True)
    )
    summed: dict[str, Any] = {"worlds": len(purses), "methods": summary(regrets, spent)}
    summed["differences"] = {
        f"{own} - {other}": difference(regrets[own], regrets[other], task_of)
        for own in regrets
        if own.startswith("advisor")
        for other in regrets
        if not other.startswith("advisor") and other.endswith(own.rpartition(",")[2])
    }
    inputs = [given.records, *given.tables]
    summed["manifest"] = manifest(Path(__file__), seeds=DRAWS, checks={}, inputs=inputs)
    given.out.write_text(json.dumps(summed, indent=1) + "\n", encoding="utf-8")
    for name, row in [*summed["methods"].items(), *summed["differences"].items()]:
        print(name, row)


if __name__ == "__main__":
    main()
