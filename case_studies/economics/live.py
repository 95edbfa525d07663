"""The loop as a team would live it: plan, pilots that are stopped early, advice, the full run.

    python case_studies/economics/live.py [--world NAME...] [--out live.json]

Problems and sizes are in no table of this project. Nothing is replayed: every pilot, every trial of
the search beside it and every full run is trained when it is asked for. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
import zlib
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import numpy as np  # noqa: E402
import optuna  # noqa: E402
from live_training import Problem, Trained, write_log  # noqa: E402
from manifest import manifest  # noqa: E402

from advisor.advice import Piloting, PilotPlan, pilots, plan  # noqa: E402  # noqa: E402
from advisor.advice.pilot_plan import PlannedPilot  # noqa: E402
from advisor.diagnosis.collapse import find_any_fall  # noqa: E402
from advisor.forecast import Target  # noqa: E402
from advisor.runs import PartialSettings, Settings, read_runs  # noqa: E402

WORLDS = ("lookup6_sm", "count6_s", "steps4_s", "sums6_s", "sort5_s")
"""Planned once for the tables, and never trained."""

LAUNCHED = {"learning_rate": 1e-3, "group_size": 32, "minibatches_per_refresh": 1}
"""What would be launched without a pilot: the best constant of the tables' other tasks is near it,
and an eighth of it is what a wider model is given."""

WIDTH = 16
"""Of the models that the constant is of; its rate is divided by how much wider a model is."""

LOOKS = 2
"""How often a pilot is looked at while it runs."""

MOST_LOOKS = 30
RATES_BESIDE = 10.0
"""The search looks among rates from a tenth to ten times that which would be launched."""

MODEL = "tiny-{}"
"""What the logs call a model of a size."""

GROUPS, REFRESHES = (4, 8, 16, 32), (1, 2, 4, 8, 16)
STEPS = 300
"""Of the full run that the purse pays for."""

SEED = 7

DRAWS = 3
"""Searches of each kind on a problem."""

TPE = "Optuna TPE and pruner, the pilots' core-seconds"
LONGER_TPE = "Optuna TPE and pruner, the fits' core-seconds as well"


class Spent(NamedTuple):
    """What piloting came to.

    Attributes
    ----------
    training, advising : float
        Core-seconds.
    steps : int
        Of all pilots.
    looks, started, stopped : int
        How often the pilots were looked at, how many began, how many were not run to the end.
    """

    training: float
    advising: float
    steps: int
    looks: int
    started: int
    stopped: int


def launched(problem: Problem) -> Settings:
    """What would be launched without a pilot."""
    return PartialSettings(
        **LAUNCHED | {"learning_rate": LAUNCHED["learning_rate"] * WIDTH / problem.shape.width},
        prompts_per_step=float(problem.world.prompts),
        epochs_per_refresh=1,
        momentum=problem.world.momentum,
        optimizer=problem.world.optimizer,
        planned_steps=STEPS,
    ).completed()


def piloted(
    problem: Problem, planned: PilotPlan, folder: Path
) -> tuple[Piloting, Spent, dict[str, Trained]]:
    """Run the pilots of a plan as they are told to, until none is worth its price."""
    trained: dict[str, Trained] = {}
    seen: dict[str, int] = {}
    known = {one.name: one for one in planned.pilots}
    advising, looks = 0.0, 0
    while True:
        for name, steps in seen.items():
            write_log(trained[name], steps, folder / name)
        started = time.process_time()
        word = pilots(planned, read_runs([folder]) if seen else [], seed=SEED)
        advising += time.process_time() - started
        looks += 1
        going = {
            one.name: one.seen
            for one in word.pilots
            if one.word in ("start", "continue", "extend") and one.name in known
        }
        if word.word != "go on" or not going or looks == MOST_LOOKS:
            break
        for name in going:
            wanted = _next(known[name], seen.get(name, 0))
            if name not in trained or trained[name].steps < wanted:
                trained[name] = problem.train(known[name].settings, wanted, SEED)
            seen[name] = wanted
    spent = Spent(
        sum(trained[name].price(steps) for name, steps in seen.items()),
        advising,
        sum(seen.values()),
        looks,
        len(seen),
        sum(steps < known[name].steps for name, steps in seen.items()),
    )
    return word, spent, trained


def _next(pilot: PlannedPilot, seen: int) -> int:
    return seen + max(1, -(-pilot.steps // LOOKS))


class Search:
    """Optuna's TPE with a median pruner, on pilots of the same length."""

    def __init__(self, problem: Problem, base: Settings, steps: int, seed: int) -> None:
        self.problem, self.base, self.steps, self.seed = problem, base, steps, seed
        self.seconds = 0.0
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.study = optuna.create_study(
            direction="maximize",
            sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=3),
            pruner=optuna.pruners.MedianPruner(n_startup_trials=3),
        )

    def spend(self, seconds: float) -> Settings:
        """Go on until so many core-seconds are spent; the settings of the best trial."""
        while self.seconds < seconds:
            self.study.optimize(self._trial, n_trials=1)
        return self._settings(self.study.best_params)

    def _trial(self, trial: optuna.Trial) -> float:
        middle = self.base.learning_rate
        found = {
            "rate": trial.suggest_float(
                "rate", middle / RATES_BESIDE, middle * RATES_BESIDE, log=True
            ),
            "group": trial.suggest_categorical("group", GROUPS),
            "refresh": trial.suggest_categorical("refresh", REFRESHES),
        }
        run = self.problem.train(self._settings(found), self.steps, self.seed + trial.number)
        for part in range(1, LOOKS + 1):
            steps = part * self.steps // LOOKS
            trial.report(run.reward(steps), part)
            if trial.should_prune():
                self.seconds += run.price(steps)
                raise optuna.TrialPruned
        self.seconds += run.seconds
        return run.reward()

    def _settings(self, found: dict[str, Any]) -> Settings:
        return self.base.model_copy(
            update={
                "learning_rate": found["rate"],
                "group_size": found["group"],
                "minibatches_per_refresh": found["refresh"],
            }
        )


def live(name: str) -> dict[str, Any]:
    """Every method on one problem."""
    warnings.simplefilter("ignore")
    problem = Problem(name)
    base, steps = launched(problem), STEPS
    target = Target(
        problem.world.problem, MODEL.format(problem.world.size), float(problem.parameters)
    )
    started = time.process_time()
    planned = plan(base, steps, target, vary_all=True, seed=SEED)
    planning = time.process_time() - started
    with tempfile.TemporaryDirectory() as folder:
        word, spent, trained = piloted(problem, planned, Path(folder))
    left = word.left
    advice = word.advice
    chosen = base if advice is None else advice.settings
    best_pilot = max(trained, key=lambda one: trained[one].reward(), default=None)
    runs: dict[str, list[tuple[Settings, int]]] = {
        "advisor": [(chosen, left)],
        "best pilot of its plan": [
            (base if best_pilot is None else _of(planned, best_pilot), left)
        ],
        TPE: [],
        LONGER_TPE: [],
        "no pilots": [(base, steps)],
    }
    for draw in range(DRAWS):
        # Another seed in every problem: one for all would be one draw of chance.
        seed = zlib.crc32(f"{name} {draw}".encode())
        search = Search(problem, base, planned.pilots[0].steps, seed)
        runs[TPE].append((search.spend(spent.training), left))
        more = spent.training + spent.advising + planning
        runs[LONGER_TPE].append((search.spend(more), left))
    ends = {method: [told(problem, *run) for run in own] for method, own in runs.items()}
    return {
        "world": name,
        "parameters": problem.parameters,
        "steps": steps,
        "plan": planned.kind,
        "pilots": [[one.settings.learning_rate, one.steps] for one in planned.pilots],
        "spent": spent._asdict() | {"planning": planning},
        "share_of_the_purse": round(1 - left / steps, 3),
        "word": word.reason,
        "said": None
        if advice is None
        else {
            "kind": advice.kind,
            "reward": [advice.reward.low, advice.reward.mean, advice.reward.high],
            "p_stable": advice.stability.probability,
        },
        "methods": ends,
    }


def _of(planned: PilotPlan, name: str) -> Settings:
    return next(one.settings for one in planned.pilots if one.name == name)


def told(problem: Problem, settings: Settings, steps: int) -> dict[str, Any]:
    """A full run, with a seed that no pilot had."""
    run = problem.train(settings, steps, SEED + 1000)
    reward = np.array([np.nan if r is None else r for r in run.row["reward"]])
    fall = find_any_fall(np.arange(1.0, steps + 1), reward, 0.0)
    return {
        "learning_rate": settings.learning_rate,
        "group_size": settings.group_size,
        "refresh_interval": settings.refresh_interval,
        "steps": steps,
        "reward": run.reward(),
        "held_out": run.row["final_eval"],
        "collapsed": bool(fall.unstable),
        "seconds": round(run.seconds, 1),
    }


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over problems; regret is against the best full run of all methods on the problem."""

    def regrets(one: dict[str, Any], method: str) -> list[float]:
        best = max(run["reward"] for own in one["methods"].values() for run in own)
        return [float(best - run["reward"]) for run in one["methods"][method]]

    def rewards(one: dict[str, Any], method: str) -> list[float]:
        return [run["reward"] for run in one["methods"][method]]

    return {
        method: {
            "reward": round(float(np.mean([np.mean(rewards(one, method)) for one in found])), 4),
            "regret": round(float(np.mean([np.mean(regrets(one, method)) for one in found])), 4),
            "collapsed": sum(run["collapsed"] for one in found for run in one["methods"][method]),
            "runs": sum(len(one["methods"][method]) for one in found),
        }
        for method in found[0]["methods"]
    }


def main() -> None:
    """Train, advise, train, sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--world", nargs="+", default=list(WORLDS))
    parser.add_argument("--out", type=Path, default=HERE / "live.json")
    given = parser.parse_args()
    found = []
    for name in given.world:
        found.append(live(name))
        print(json.dumps(found[-1]), flush=True)
        document = {"summary": summary(found), "problems": found}
        document["manifest"] = manifest(Path(__file__), seeds=SEED, checks={})
        given.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
