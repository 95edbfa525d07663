"""What the advisor is compared with: each names one run of a table, from as many pilot steps."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
import optuna
from tables import World

from advisor.forecast import EXPONENTIAL, curve_fit

LOOKED_AT = 10
"""Last steps of a pilot whose mean reward judges it."""

RECIPES = {"recipe: TRL": (1e-6, 8, 1), "recipe: verl": (1e-6, 5, 4)}
"""Learning rate, group size and refresh interval of common defaults; the nearest run is taken."""

ETA = 2
"""Successive halving keeps one run in two."""


def distance(world: World, index: int, rate: float, group: float, interval: float) -> float:
    """Distance of a run's settings from others, in decades of rate and doublings of the rest."""
    settings = world.runs[index].hyperparameters
    return (
        3 * abs(math.log10(settings.learning_rate / rate))
        + abs(math.log2(settings.group_size / group))
        + 0.5 * abs(math.log2(settings.refresh_interval / interval))
    )


def nearest(world: World, candidates: list[int], rate: float, group: float, k: float) -> int:
    """Run with the nearest settings."""
    return min(candidates, key=lambda index: distance(world, index, rate, group, k))


def score(world: World, index: int, steps: int) -> float:
    """Mean train reward of a run's last steps up to ``steps``."""
    return float(np.mean(world.rows[index]["reward"][max(0, steps - LOOKED_AT) : steps]))


def best_pilot(world: World, candidates: list[int], pilots: list[int], cut: int) -> int:
    """Pilot with the highest reward when it was cut."""
    offered = [index for index in pilots if index in candidates] or candidates
    return max(offered, key=lambda index: score(world, index, cut))


def best_extrapolated(world: World, candidates: list[int], pilots: list[int], cut: int) -> int:
    """Pilot whose own exponential, fitted to it alone, ends highest: no pooling over pilots."""
    offered = [index for index in pilots if index in candidates] or candidates

    def end(index: int) -> float:
        seen, last = world.pilot(index, cut), np.array([float(world.steps)])
        draws, _ = curve_fit(seen, last, EXPONENTIAL, (0.0, 1.0), np.random.default_rng(index))
        return float(np.mean(draws))

    return max(offered, key=end)


def constant(world: World, others: list[World], candidates: list[int]) -> int | None:
    """Best constant recipe of the other tables: highest mean outcome of the nearest runs."""
    if not others:
        return None
    recipes = {
        (s.learning_rate, s.group_size, s.refresh_interval)
        for other in others
        for s in (run.hyperparameters for run in other.runs)
    }
    outcomes = {other.name: other.outcomes() for other in others}

    def worth(recipe: tuple[float, int, int]) -> float:
        return float(
            np.mean(
                [
                    outcomes[other.name][nearest(other, other.candidates(), *recipe)]
                    for other in others
                ]
            )
        )

    return nearest(world, candidates, *max(sorted(recipes), key=worth))


def search_seed(table: int, draw: int) -> int:
    """Seed of a search: another one in every table, or all tables share one draw of chance."""
    return 1000 * table + draw


def searched(world: World, candidates: list[int], pilots: int, cut: int, seed: int) -> int:
    """Optuna chooses each pilot by the rewards of those before; the best pilot is taken."""
    rates = sorted({world.runs[i].hyperparameters.learning_rate for i in candidates})
    groups = sorted({world.runs[i].hyperparameters.group_size for i in candidates})
    intervals = sorted({world.runs[i].hyperparameters.refresh_interval for i in candidates})
    untried = list(candidates)
    best = (-np.inf, candidates[0])
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=pilots // 2)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for _ in range(min(pilots, len(candidates))):
            trial = study.ask()
            index = nearest(
                world,
                untried,
                rates[trial.suggest_int("rate", 0, len(rates) - 1)],
                groups[trial.suggest_int("group", 0, len(groups) - 1)],
                intervals[trial.suggest_int("interval", 0, len(intervals) - 1)],
            )
            untried.remove(index)
            found = score(world, index, cut)
            study.tell(trial, found)
            best = max(best, (found, index))
    return best[1]


def tried_by_tpe(world: World, first: Sequence[int], pilots: int, cut: int, seed: int) -> list[int]:
    """Runs that TPE tries after some that are tried first."""
    axes = {
        name: sorted({getattr(run.hyperparameters, name) for run in world.runs})
        for name in ("learning_rate", "group_size", "refresh_interval")
    }
    untried, tried = list(range(len(world.runs))), []
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=len(first))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for index in first:
        own = world.runs[index].hyperparameters
        study.enqueue_trial({name: v.index(getattr(own, name)) for name, v in axes.items()})
    for _ in range(min(pilots, len(untried))):
        trial = study.ask()
        drawn = [v[trial.suggest_int(name, 0, len(v) - 1)] for name, v in axes.items()]
        index = nearest(world, untried, *drawn)
        untried.remove(index)
        tried.append(index)
        study.tell(trial, score(world, index, cut))
    return tried


def halved(world: World, candidates: list[int], pilots: int, cut: int, seed: int) -> int:
    """Successive halving: many short pilots, the better half goes on, for the same total steps."""
    total = pilots * cut
    rungs = max(1, round(math.log2(pilots)) + 1)
    first = min(len(candidates), ETA ** (rungs + 1) // 2)
    # The first rung costs first x length; every later one doubles the length of half as many.
    length = total / (first * (1 + (rungs - 1) / 2))
    alive = np.random.default_rng(seed).permutation(candidates)[:first].tolist()
    for _ in range(rungs):
        steps = max(2, min(round(length), world.steps))
        alive.sort(key=lambda index: -score(world, index, steps))
        if len(alive) == 1:
            break
        alive = alive[: math.ceil(len(alive) / ETA)]
        length *= ETA
    return alive[0]
