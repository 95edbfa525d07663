"""What searches come to that begin with the same knowledge as the advisor.

    python case_studies/economics/rivals.py records.jsonl.gz TABLE.jsonl[.gz]... [--out rivals.json]

with the records that ``run.py --records`` wrote on the same tables: their constants are where the
searches begin, and their advice is what these are compared with, world by world. A search tries the
constant and its two neighbours first, then what it draws. Nothing is fitted.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from run import (
    ADVISOR,
    CONSTANT,
    COUNTS,
    NONE,
    OWN_PLAN,
    RECIPES,
    WHEN_KNOWN,
    Pilots,
    Purse,
    all_runs,
    ladder,
    nearest,
    read_all,
    score,
)
from searches import halved, hyperband, search_seed, tried_by_tpe
from tables import lines_of

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from manifest import write_result  # noqa: E402

BOOTSTRAPS = 2000
DRAWS = 3
"""Seeds of a search in each world."""

ALL = "all"
FROM = {1: "constant of 1 worlds", 2: "constant of 2 worlds", ALL: CONSTANT}
"""What is known, and the name of its constant in the records."""

DRAWN = (1, 2, 3, 5, 10)
"""Worlds whose best constant is asked for, ``CONSTANTS`` times in each world."""

CONSTANTS = 40

Regrets = dict[str, list[tuple[float, bool]]]
"""By world: regret of each draw, and whether the run died."""


def searched(purse: Purse, base: int, count: int, seed: int) -> dict[str, tuple[int, Pilots]]:
    """Run that each search launches, and what it paid."""
    near, rungs = ladder(purse, base, 3).runs, ladder(purse, base, count)

    def best(pilots: Pilots) -> tuple[int, Pilots]:
        return max(pilots.runs, key=lambda i: score(purse.world, i, pilots.steps)), pilots

    rng = np.random.default_rng(seed)
    return {
        "best of the ladder": best(rungs),
        "TPE": best(tried_by_tpe(purse, near, count, seed)),
        "successive halving of the ladder": halved(purse, rungs.runs, count, rng),
        "Hyperband": hyperband(purse, near, count, seed),
    }


def constants(purses: Sequence[Purse]) -> dict[str, Regrets]:
    """Regret of the best constant of so many worlds of other tasks, launched without a pilot."""
    recipes = [sorted(purse.recipes) for purse in purses]
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


def recorded(records: Sequence[dict[str, Any]]) -> dict[str, Regrets]:
    """Regrets of the advice, of the constants and of recipes, by what was known."""
    called = {name: name for name in RECIPES}
    for known, constant in FROM.items():
        of = "" if known == ALL else f", {known} worlds known"
        called[constant] = f"constant of the records, known from {known}"
        called[f"{OWN_PLAN}{of}"] = f"{OWN_PLAN}, known from {known}"
        called[f"{ADVISOR}{of}"] = f"{ADVISOR}, {WHEN_KNOWN} pilots, known from {known}"
    found: dict[str, Regrets] = {}
    for one in records:
        if one["method"] in called and (one["method"] != ADVISOR or one["pilots"] == WHEN_KNOWN):
            row = found.setdefault(called[one["method"]], {}).setdefault(one["world"], [])
            row.append((one["regret"], one["collapsed"]))
    return found


def study(
    purses: Sequence[Purse], records: Sequence[dict[str, Any]], say: Callable[[str], None]
) -> dict[str, Regrets]:
    """Regrets of all methods."""
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    regrets = constants(purses) | recorded(records)
    bases = {(one["method"], one["world"]): one["run"] for one in records}
    for number, purse in enumerate(purses):
        for known, name in FROM.items():
            base = bases[name, purse.world.name]
            for count, draw in product(COUNTS, range(DRAWS)):
                found = searched(purse, base, count, search_seed(number, draw))
                for method, (index, pilots) in found.items():
                    key = f"{method}, {count} pilots, known from {known}"
                    reward, fell = purse.outcome(index, pilots)
                    row = regrets.setdefault(key, {}).setdefault(purse.world.name, [])
                    row.append((purse.best() - reward, fell))
        say(f"{number + 1} of {len(purses)}: {purse.world.name}")
    return regrets


def summary(regrets: dict[str, Regrets]) -> dict[str, Any]:
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
    purses = [Purse(world) for world in read_all(given.tables)]
    task_of = {one.world.name: one.world.target.task for one in purses}
    regrets = study(purses, lines_of(given.records), lambda line: print(line, flush=True))
    summed: dict[str, Any] = {"worlds": len(purses), "methods": summary(regrets)}
    summed["differences"] = {
        f"{own} - {other}": difference(regrets[own], regrets[other], task_of)
        for own in regrets
        if own.startswith("advisor")
        for other in regrets
        if not other.startswith("advisor") and other.endswith(own.rpartition(",")[2])
    }
    write_result(given.out, summed, Path(__file__), [given.records, *given.tables])
    for name, row in [*summed["methods"].items(), *summed["differences"].items()]:
        print(name, row)


if __name__ == "__main__":
    main()
