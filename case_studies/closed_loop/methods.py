"""Ways to name a configuration of the large model: the advisor, its peers, and the oracle."""

from __future__ import annotations

import math
import random
import time
import warnings
from typing import Any

import numpy as np
import optuna
from training import (
    CUT,
    GRID,
    LARGE,
    PILOT_GRID,
    PILOTS,
    SMALL,
    STEPS,
    Place,
    Trained,
    as_runs,
    fitted,
    settings,
    trained,
)

from advisor.advice import advise
from advisor.diagnosis import diagnose

OURS = "advisor, small pilots"

RECIPES: dict[str, Place] = {"TRL defaults": (3e-5, 8, 1), "verl scripts": (3e-5, 8, 4)}
"""Learning rates of 1e-6 are below anything that moves these models: the smallest on offer."""


def advised(rows: list[Trained], task: str, parameters: float, seed: int) -> dict[str, Any]:
    """What the advisor says of the large model after these pilots."""
    started = time.perf_counter()
    posterior = fitted(as_runs(rows), seed)
    if posterior is None:
        return {"place": None, "seconds": time.perf_counter() - started}
    runs = posterior.meta.runs
    found = advise(
        posterior,
        task=runs[0].task,
        model=f"tiny-{LARGE}",
        parameters=parameters,
        steps=STEPS,
        choose_from=[settings(place) for place in GRID],
        indifference=0.0,
        weigh_pilots=False,
        trials=len(GRID),
        seed=0,
    )
    own = found.settings
    return {
        "place": (own.learning_rate, own.group_size, own.minibatches_per_refresh),
        "kind": found.kind,
        "p_stable": found.stability.probability,
        "reward": found.reward.mean,
        "lower": found.reward.low,
        "upper": found.reward.high,
        "seconds": time.perf_counter() - started,
    }


def nearest(place: Place) -> Place:
    """Configuration of the grid with the nearest settings."""

    def distance(other: Place) -> float:
        return 3 * abs(math.log10(other[0] / place[0])) + sum(
            abs(math.log2(a / b)) for a, b in zip(other[1:], place[1:], strict=True)
        )

    return min(GRID, key=distance)


def searched(task: str, budget: float, sampler: str, seed: int) -> tuple[Place, float]:
    """Optuna on short runs of the large model, for as many seconds as the pilots took."""
    made = {"tpe": optuna.samplers.TPESampler, "gp": optuna.samplers.GPSampler}[sampler]
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    best, spent, untried = (-math.inf, GRID[0]), 0.0, list(GRID)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(
            direction="maximize", sampler=made(seed=seed, n_startup_trials=3)
        )
        while untried:
            trial = study.ask()
            wanted = tuple(
                trial.suggest_categorical(name, sorted({place[axis] for place in GRID}))
                for axis, name in enumerate(("rate", "group", "refresh"))
            )
            place = wanted if wanted in untried else random.Random(seed).choice(untried)
            run = trained(task, LARGE, place, seed, CUT)
            if spent and spent + run.seconds > budget:
                break
            untried.remove(place)
            spent += run.seconds
            study.tell(trial, run.seen)
            best = max(best, (run.seen, place))
    return best[1], spent


def halved(task: str, budget: float, seed: int) -> tuple[Place, float]:
    """Successive halving on the large model: three rungs of 10, 20 and 40 steps."""
    order = random.Random(seed).sample(GRID, len(GRID))
    spent, rung = 0.0, []
    for place in order:
        run = trained(task, LARGE, place, seed, 10)
        if rung and spent + run.seconds > budget / 2:
            break
        spent += run.seconds
        rung.append((run.seen, place))
    for steps in (20, 40):
        rung = sorted(rung, reverse=True)[: max(1, len(rung) // 2)]
        again = []
        for _, place in rung:
            run = trained(task, LARGE, place, seed, steps)
            spent += run.seconds
            again.append((run.seen, place))
        rung = again
    return max(rung)[1], spent


def oracle(task: str, quick: bool) -> dict[str, Any]:
    """Grid of one seed, its best three with more seeds."""
    grid = GRID[::8] if quick else GRID
    first = {place: trained(task, LARGE, place, 0, STEPS) for place in grid}
    top = sorted(grid, key=lambda place: -first[place].final)[:3]
    again = {
        place: [
            trained(task, LARGE, place, seed, STEPS).final
            for seed in ((1,) if quick else (1, 2, 3))
        ]
        for place in top
    }
    best = max(top, key=lambda place: float(np.mean(again[place])))
    return {
        "task": task,
        "best": best,
        "reward": float(np.mean(again[best])),
        "grid": [[*place, round(first[place].final, 4)] for place in grid],
        "seconds": sum(run.seconds for run in first.values()),
        "full_run_seconds": float(np.median([run.seconds for run in first.values()])),
    }


def drawn(task: str, seed: int) -> tuple[list[Place], list[Place]]:
    """Pilots of a loop at random: of the small model, and of the large one."""
    rng = random.Random(f"{task} {seed}")
    return rng.sample(PILOT_GRID, PILOTS), rng.sample(GRID, PILOTS)


def loop(task: str, seed: int) -> dict[str, Any]:
    """One task and seed: every method names a configuration, and it is trained."""
    places, own_places = drawn(task, seed)
    small = [trained(task, SMALL, place, 100 + seed, CUT) for place in places]
    own = [trained(task, LARGE, place, 100 + seed, CUT) for place in own_places]
    parameters = float(own[0].row["params"])
    budget = sum(run.seconds for run in small)
    said = {
        OURS: advised(small, task, parameters, seed),
        "advisor, pilots of the same size": advised(own, task, parameters, seed),
    }
    named: dict[str, tuple[Place | None, float]] = {
        OURS: (said[OURS]["place"], budget),
        "advisor, pilots of the same size": (
            said["advisor, pilots of the same size"]["place"],
            sum(run.seconds for run in own),
        ),
        "best small pilot": (
            nearest(places[int(np.argmax([run.seen for run in small]))]),
            budget,
        ),
        "Optuna TPE": searched(task, budget, "tpe", 100 + seed),
        "Optuna GP": searched(task, budget, "gp", 100 + seed),
        "successive halving": halved(task, budget, 100 + seed),
        **{name: (place, 0.0) for name, place in RECIPES.items()},
    }
    rows = []
    for name, (place, spent) in named.items():
        if place is None:
            rows.append({"method": name, "place": None})
            continue
        run = trained(task, LARGE, place, seed, STEPS)
        verdict = diagnose(as_runs([run])[0])
        rows.append(
            {
                "method": name,
                "place": place,
                "final": run.final,
                "collapsed": verdict.collapse_step is not None,
                "search_seconds": round(spent, 1),
                "run_seconds": run.seconds,
                **{k: v for k, v in said.get(name, {}).items() if k != "place"},
            }
        )
    return {"task": task, "seed": seed, "rows": rows}
