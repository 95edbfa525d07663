"""The closed loop: pilots on a small model, advice, and the full run trained on a larger one.

python case_studies/closed_loop/run.py [--tasks sort mod reverse running] [--seeds 3] [--quick]

Every training run is kept in .cache and not repeated: an interrupted command goes on where it was.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import platform
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tiny_transformer"))

import numpy as np  # noqa: E402
import optuna  # noqa: E402
import torch  # noqa: E402
from config import GrpoConfig  # noqa: E402
from pretrain import pretrain  # noqa: E402
from records import Run  # noqa: E402
from table import train_row  # noqa: E402
from tasks import TASKS  # noqa: E402

import advisor  # noqa: E402
from advisor.advice import recommend  # noqa: E402
from advisor.advice.cost import CostModel  # noqa: E402
from advisor.diagnosis import diagnose  # noqa: E402
from advisor.errors import AdvisorError  # noqa: E402
from advisor.posterior import Posterior, Sampling, Target, fit  # noqa: E402
from advisor.runs import read_runs  # noqa: E402
from advisor.runs.pilot_run import Hyperparameters, PilotRun  # noqa: E402

CACHE = HERE / ".cache"
SMALL, LARGE = "s", "m"
STEPS, CUT, PILOTS, PROMPTS = 200, 40, 8, 16
LOOKED_AT = 10

Place = tuple[float, int, int]
"""Learning rate, group size, mini-batches per refresh."""

GRID: list[Place] = list(itertools.product((3e-5, 1e-4, 3e-4, 1e-3), (8, 16), (1, 4, 16)))
"""The 24 configurations of the large model among which every method chooses."""

PILOT_GRID: list[Place] = list(
    itertools.product((3e-5, 1e-4, 3e-4, 1e-3, 3e-3), (4, 8, 16, 32), (1, 2, 4, 8, 16))
)
RECIPES: dict[str, Place] = {"TRL defaults": (3e-5, 8, 1), "verl scripts": (3e-5, 8, 4)}
"""Learning rates of 1e-6 are below anything that moves these models: the smallest on offer."""


class Trained(NamedTuple):
    """One run: its row as the tables have it, and what it cost."""

    row: dict[str, Any]

    @property
    def final(self) -> float:
        """Held-out accuracy at the end."""
        return float(self.row["final_eval"])

    @property
    def seconds(self) -> float:
        """Of training, on one core."""
        return float(self.row["seconds"])

    @property
    def seen(self) -> float:
        """Mean train reward of the last steps."""
        return float(np.mean(self.row["reward"][-LOOKED_AT:]))


def trained(task: str, size: str, place: Place, seed: int, steps: int) -> Trained:
    """Train a run, or take it from the cache."""
    rate, group, refresh = place
    path = CACHE / f"{task}_{size}_{rate:g}_{group}_{refresh}_{seed}_{steps}.json"
    if path.exists():
        return Trained(json.loads(path.read_text(encoding="utf-8")))
    config = GrpoConfig(rate, group, PROMPTS, refresh, 1, steps=steps, seed=seed)
    started = time.process_time()
    row = train_row(Run(task, size, config), pretrain(TASKS[task], size))
    row["seconds"] = round(time.process_time() - started, 2)
    CACHE.mkdir(exist_ok=True)
    path.write_text(json.dumps(row), encoding="utf-8")
    return Trained(row)


def as_runs(rows: Iterable[Trained]) -> list[PilotRun]:
    """Read rows as anybody's logs are read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pilots.jsonl"
        path.write_text("".join(json.dumps(one.row) + "\n" for one in rows), encoding="utf-8")
        return read_runs([path])


def settings(place: Place) -> Hyperparameters:
    """A configuration of the large model, completed."""
    rate, group, refresh = place
    given = Hyperparameters(
        learning_rate=rate,
        group_size=group,
        prompts_per_step=PROMPTS,
        minibatches_per_refresh=refresh,
        epochs_per_refresh=1,
        planned_steps=STEPS,
    )
    return given.completed()[0]


def fitted(runs: list[PilotRun], seed: int) -> Posterior | None:
    """Posterior of pilots, or None where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return fit(runs, sampling=Sampling(seed=seed + 1))
        except AdvisorError:
            return None


def advised(rows: list[Trained], task: str, parameters: float, seed: int) -> dict[str, Any]:
    """What the advisor says of the large model after these pilots."""
    started = time.perf_counter()
    posterior = fitted(as_runs(rows), seed)
    if posterior is None:
        return {"place": None, "seconds": time.perf_counter() - started}
    runs = posterior.meta.runs
    found = recommend(
        posterior,
        target=Target(runs[0].task, f"tiny-{LARGE}", parameters),
        steps=STEPS,
        choose_from=[settings(place) for place in GRID],
        indifference=0.0,
        weigh_pilots=False,
        cost=CostModel(source="not asked"),
        trials=len(GRID),
    )
    own = found.settings
    return {
        "place": (own.learning_rate, own.group_size, own.minibatches_per_refresh),
        "kind": found.kind,
        "p_stable": found.stability.probability,
        "reward": found.reward.mean,
        "lower": found.reward.lower,
        "upper": found.reward.upper,
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
        place: [trained(task, LARGE, place, seed, STEPS).final for seed in (1, 2, 3)]
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


def loop(task: str, seed: int) -> dict[str, Any]:
    """One task and seed: every method names a configuration, and it is trained."""
    rng = random.Random(f"{task} {seed}")
    places = rng.sample(PILOT_GRID, PILOTS)
    small = [trained(task, SMALL, place, 100 + seed, CUT) for place in places]
    own_places = rng.sample(GRID, PILOTS)
    own = [trained(task, LARGE, place, 100 + seed, CUT) for place in own_places]
    parameters = float(own[0].row["params"])
    budget = sum(run.seconds for run in small)
    said = {
        "advisor, small pilots": advised(small, task, parameters, seed),
        "advisor, pilots of the same size": advised(own, task, parameters, seed),
    }
    named: dict[str, tuple[Place | None, float]] = {
        "advisor, small pilots": (said["advisor, small pilots"]["place"], budget),
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


def summary(oracles: list[dict[str, Any]], loops: list[dict[str, Any]]) -> dict[str, Any]:
    """Regret, collapses and coverage by method."""
    best = {one["task"]: one["reward"] for one in oracles}
    out: dict[str, Any] = {}
    for method in dict.fromkeys(row["method"] for one in loops for row in one["rows"]):
        own = [
            {**row, "regret": best[one["task"]] - row["final"], "task": one["task"]}
            for one in loops
            for row in one["rows"]
            if row["method"] == method and row["place"] is not None
        ]
        inside = [row["lower"] <= row["final"] <= row["upper"] for row in own if "lower" in row]
        out[method] = {
            "n": len(own),
            "regret_mean": round(float(np.mean([row["regret"] for row in own])), 4),
            "regret_worst": round(float(max(row["regret"] for row in own)), 4),
            "collapses": sum(row["collapsed"] for row in own),
            "search_seconds": round(float(np.mean([row["search_seconds"] for row in own])), 1),
            "run_seconds": round(float(np.mean([row["run_seconds"] for row in own])), 1),
            "by_task": {
                task: round(float(np.mean([r["regret"] for r in own if r["task"] == task])), 4)
                for task in best
            },
            **({"inside_80": [sum(inside), len(inside)]} if inside else {}),
        }
    return out


def _job(job: tuple[str, Any, bool]) -> dict[str, Any]:
    torch.set_num_threads(1)
    task, seed, quick = job
    return oracle(task, quick) if seed is None else loop(task, seed)


def jobs_done(jobs: list[tuple[str, Any, bool]]) -> Iterator[dict[str, Any]]:
    """Results as they come, on all cores."""
    started = time.perf_counter()
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as executor:
        for done, found in enumerate(executor.map(_job, jobs), start=1):
            what = found.get("seed", "oracle")
            seconds = time.perf_counter() - started
            print(f"{done}/{len(jobs)} {found['task']} {what} ({seconds:.0f} s)", file=sys.stderr)
            yield found


def main() -> None:
    """Run all, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one task, one seed, three configs")
    parser.add_argument("--out", type=Path, default=HERE / "closed_loop.json")
    asked = parser.parse_args()
    started = time.perf_counter()
    tasks = asked.tasks[:1] if asked.quick else asked.tasks
    for task, size in itertools.product(tasks, (SMALL, LARGE)):
        pretrain(TASKS[task], size)
    seeds = range(1, 2 if asked.quick else asked.seeds + 1)
    jobs = [(task, None, asked.quick) for task in tasks]
    jobs += [(task, seed, asked.quick) for seed in seeds for task in tasks]
    done = list(jobs_done(jobs))
    oracles = [one for one in done if "seed" not in one]
    loops = [one for one in done if "seed" in one]
    found = {
        "summary": summary(oracles, loops),
        "oracles": oracles,
        "loops": loops,
        "manifest": {
            "advisor": advisor.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "steps": STEPS,
            "cut": CUT,
            "pilots": PILOTS,
            "seeds": len(seeds),
            "wall_seconds": round(time.perf_counter() - started),
        },
    }
    asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found["summary"], indent=1))


if __name__ == "__main__":
    main()
