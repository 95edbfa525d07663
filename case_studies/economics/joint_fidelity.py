"""JF-HPO's scheme (arXiv 2606.03073) on the purses of `run.py`, as far as its summaries tell.

Bayesian search whose trials are short and, where there is one, on a smaller model of the family;
a trial whose reward falls is stopped, and the best third goes on from its checkpoint, so that only
the steps that it adds are paid. TPE draws, after runs that are known to be good. Its own rules for
stopping and its lengths stand in the paper's body, which was not at hand: those here are ours.
"""

from __future__ import annotations

import numpy as np
import optuna
from run import LEAST_STEPS, SHARE, Pilots, Purse, all_runs, nearest, same_in, score
from trials import axes_of, enqueue

ETA = 3
"""Of so many trials of a length the best goes on, to so many times the length."""

FALLEN = 0.5
"""Share of the best that a trial has shown below which it is stopped."""

FIRST_OF = 2
"""The shortest trials are this part of what equal pilots would have."""


class Search:
    """Trials in one world, paid out of the purse of another or of the same."""

    def __init__(self, purse: Purse, proxy: Purse, count: int, seed: int) -> None:
        self.proxy, self.price = proxy, _size(proxy) / _size(purse)
        self.room = SHARE * purse.total
        equal = min(proxy.total, int(self.room / count / self.price))
        self.shortest = max(LEAST_STEPS, equal // FIRST_OF)
        self.done: dict[int, int] = {}
        self.stopped: set[int] = set()
        self.reached: list[dict[int, float]] = [{}]  # by number of promotions: score of each trial
        self.axes = axes_of(proxy)
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=max(1, count // 2))
        self.study = optuna.create_study(direction="maximize", sampler=sampler)

    @property
    def paid(self) -> float:
        """Steps of the full run that all trials have cost."""
        return sum(self.done.values()) * self.price

    def affords(self, steps: int) -> bool:
        """Whether so many more steps of a trial can be paid."""
        return self.paid + steps * self.price <= self.room

    def train(self, index: int, steps: int) -> float:
        """Let a trial go on to so many steps, or until its reward has fallen; its score."""
        best = 0.0
        for step in range(self.done.get(index, 0) + 1, steps + 1):
            self.done[index] = step
            rewards = self.proxy.world.rows[index]["reward"][:step]
            shown = float(np.mean(rewards[-LEAST_STEPS:]))
            best = max(best, shown)
            if step >= LEAST_STEPS and shown < FALLEN * best:
                self.stopped.add(index)
                break
        return score(self.proxy.world, index, self.done[index])

    def promote(self) -> bool:
        """Let a trial that is among the best of its length go on; whether there was one."""
        for rung in reversed(range(len(self.reached))):
            length = min(self.proxy.total, self.shortest * ETA ** (rung + 1))
            higher = self.reached[rung + 1] if rung + 1 < len(self.reached) else {}
            ranked = sorted(self.reached[rung], key=lambda i: -self.reached[rung][i])
            for index in ranked[: len(ranked) // ETA]:
                more = length - self.done[index]
                if index in higher or index in self.stopped or more <= 0 or not self.affords(more):
                    continue
                if rung + 1 == len(self.reached):
                    self.reached.append({})
                self.reached[rung + 1][index] = self.train(index, length)
                return True
        return False

    def start(self) -> bool:
        """Begin the trial that the search draws; whether there is room for one."""
        untried = [index for index in all_runs(self.proxy) if index not in self.done]
        if not untried or not self.affords(self.shortest):
            return False
        trial = self.study.ask()
        drawn = [v[trial.suggest_int(name, 0, len(v) - 1)] for name, v in self.axes.items()]
        index = nearest(self.proxy.world, untried, *drawn)
        found = self.train(index, self.shortest)
        self.reached[0][index] = found
        self.study.tell(trial, found)
        return True

    def best(self) -> int:
        """Living trial that has gone furthest, of several the best."""
        for scores in reversed(self.reached):
            living = [index for index in scores if index not in self.stopped]
            if living:
                return max(living, key=lambda index: scores[index])
        return next(iter(self.done))


def joint_fidelity(
    purse: Purse, proxy: Purse | None, count: int, seed: int, known: list[int]
) -> tuple[int, Pilots]:
    """Run that the search launches, and the steps that were paid.

    A trial on the model itself goes on as the run; of one on a smaller model all steps are lost.
    """
    search = Search(purse, proxy or purse, count, seed)
    world = search.proxy.world
    enqueue(search.study, search.proxy, search.axes, [same_in(world, purse, i) for i in known])
    while search.promote() or search.start():
        pass
    if proxy is None:
        return search.best(), Pilots(search.done)
    launched = same_in(purse.world, search.proxy, search.best())
    return launched, Pilots({-1: int(np.ceil(search.paid))})


def _size(purse: Purse) -> float:
    return purse.world.target.parameters
