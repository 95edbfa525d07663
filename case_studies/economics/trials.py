"""Searches that stop their trials early, on the purses of `run.py`."""

from __future__ import annotations

from collections.abc import Sequence

import optuna
from run import LEAST_STEPS, SHARE, Pilots, Purse, all_runs, nearest, score

LONGEST = 3
"""Times the length of equal pilots to which Hyperband may take one."""


def axes_of(purse: Purse) -> dict[str, list[float]]:
    """What a search may draw: the values of a table's runs."""
    runs = [run.hyperparameters for run in purse.world.runs]
    return {
        name: sorted({getattr(run, name) for run in runs})
        for name in ("learning_rate", "group_size", "refresh_interval")
    }


def enqueue(
    study: optuna.Study, purse: Purse, axes: dict[str, list[float]], known: Sequence[int]
) -> None:
    """Let a search try runs that are known to be good before those that it draws."""
    for index in known:
        own = purse.world.runs[index].hyperparameters
        study.enqueue_trial({name: v.index(getattr(own, name)) for name, v in axes.items()})


def hyperband(purse: Purse, count: int, seed: int, known: Sequence[int] = ()) -> tuple[int, Pilots]:
    """Brackets of pilots that are cut short, TPE drawing them; the best by its last rewards.

    Runs that are ``known`` to be good are tried first.

    Returns
    -------
    index : int
        The run to launch.
    pilots : Pilots
        Steps that were paid.
    """
    world, untried, axes = purse.world, all_runs(purse), axes_of(purse)
    most = min(LONGEST * purse.shared(count), int(SHARE * purse.total))
    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=max(1, count // 2)),
        pruner=optuna.pruners.HyperbandPruner(LEAST_STEPS, most, reduction_factor=3),
    )
    enqueue(study, purse, axes, known)
    done: dict[int, int] = {}
    best = (-1.0, untried[0])
    while untried and sum(done.values()) + LEAST_STEPS <= SHARE * purse.total:
        trial = study.ask()
        drawn = {name: v[trial.suggest_int(name, 0, len(v) - 1)] for name, v in axes.items()}
        index = nearest(world, untried, *drawn.values())
        untried.remove(index)
        step, found, paid = 0, 0.0, sum(done.values())
        while step < most and paid + step < int(SHARE * purse.total):
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
