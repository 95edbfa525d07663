"""Searches on the purses of `run.py`: each begins with runs that are known to be good."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import optuna
from run import LEAST_STEPS, SHARE, Pilots, Purse, all_runs, nearest, score

LONGEST = 3
"""Times the length of equal pilots to which Hyperband may take one."""


def search_seed(table: int, draw: int) -> int:
    """Seed of a search: another one in every table, or all tables share one draw of chance."""
    return 1000 * table + draw


def _axes(purse: Purse) -> dict[str, list[float]]:
    """What a search may draw: the values of a table's runs."""
    runs = [run.hyperparameters for run in purse.world.runs]
    return {
        name: sorted({getattr(run, name) for run in runs})
        for name in ("learning_rate", "group_size", "refresh_interval")
    }


def _study(
    purse: Purse, known: Sequence[int], startup: int, seed: int, pruner: optuna.pruners.BasePruner
) -> optuna.Study:
    """A search by TPE that tries runs that are known before those that it draws."""
    study = optuna.create_study(
        # Hyperband draws a trial's bracket from the name.
        study_name=f"{purse.world.name} {seed}",
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=startup),
        pruner=pruner,
    )
    for index in known:
        own = purse.world.runs[index].hyperparameters
        axes = _axes(purse).items()
        study.enqueue_trial({name: v.index(getattr(own, name)) for name, v in axes})
    return study


def _drawn(purse: Purse, trial: optuna.Trial, untried: list[int]) -> int:
    """The untried run nearest to what a trial draws; it is then tried."""
    axes = _axes(purse).items()
    index = nearest(
        purse.world, untried, *(v[trial.suggest_int(name, 0, len(v) - 1)] for name, v in axes)
    )
    untried.remove(index)
    return index


def tried_by_tpe(purse: Purse, known: Sequence[int], count: int, seed: int) -> Pilots:
    """So many equal pilots, TPE drawing those after the known ones."""
    steps, untried, tried = purse.shared(count), all_runs(purse), []
    study = _study(purse, known, len(known), seed, optuna.pruners.NopPruner())
    for _ in range(min(count, len(untried))):
        trial = study.ask()
        tried.append(_drawn(purse, trial, untried))
        study.tell(trial, score(purse.world, tried[-1], steps))
    return Pilots.of(tried, steps)


def hyperband(purse: Purse, known: Sequence[int], count: int, seed: int) -> tuple[int, Pilots]:
    """Brackets of pilots that are cut short, TPE drawing them; the best by its last rewards.

    Returns
    -------
    index : int
        The run to launch.
    pilots : Pilots
        Steps that were paid.
    """
    world, untried, most_steps = purse.world, all_runs(purse), SHARE * purse.total
    most = min(LONGEST * purse.shared(count), int(most_steps))
    pruner = optuna.pruners.HyperbandPruner(LEAST_STEPS, most, reduction_factor=3)
    study = _study(purse, known, max(1, count // 2), seed, pruner)
    done: dict[int, int] = {}
    best = (-1.0, untried[0])
    while untried and sum(done.values()) + LEAST_STEPS <= most_steps:
        trial = study.ask()
        index = _drawn(purse, trial, untried)
        step, found, paid = 0, 0.0, sum(done.values())
        while step < most and paid + step < int(most_steps):
            step += 1
            if step < LEAST_STEPS:
                continue
            found = score(world, index, step)
            trial.report(found, step)
            if trial.should_prune():
                break
        done[index] = step
        study.tell(trial, found)
        best = max(best, (found, index))
    return best[1], Pilots(done)


def halved(
    purse: Purse, known: Sequence[int], count: int, rng: np.random.Generator
) -> tuple[int, Pilots]:
    """Successive halving from twice as many runs: the better half goes on for twice as long."""
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
