"""Runs whose settings change on their way: what is said of their end, and what came.

    python case_studies/tiny_transformer/on_the_way.py

Of runs that begin at three settings, rate, group size or refresh interval change at step 60 of 180.
What ``advisor what-if --at-step`` says of them from the twelve pilots, which changed nothing,
stands beside the forecast of the run unchanged and where it stood. The changes were named before
any was trained.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
import torch  # noqa: E402
from config import GrpoConfig  # noqa: E402
from grpo import train  # noqa: E402
from manifest import write_result  # noqa: E402
from pretrain import pretrain  # noqa: E402
from tasks import TASKS  # noqa: E402

import advisor  # noqa: E402
from advisor.advice import learn_cost, what_if_rows  # noqa: E402
from advisor.forecast import Forecaster, Target  # noqa: E402

STEPS, AT = 180, 60
SEEDS = (7, 8)
SLOW = {"learning_rate": 1e-4, "group_size": 16, "minibatches_per_refresh": 1}
MIDDLE = {"learning_rate": 3e-4, "group_size": 8, "minibatches_per_refresh": 2}
FAST = {"learning_rate": 1e-3, "group_size": 8, "minibatches_per_refresh": 1}
CHANGES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (MIDDLE, {"learning_rate": 1e-4}),
    (MIDDLE, {"learning_rate": 1e-3}),
    (MIDDLE, {"group_size": 32}),
    (MIDDLE, {"minibatches_per_refresh": 8}),
    (FAST, {"learning_rate": 3e-4}),
    (FAST, {"group_size": 32}),
    (FAST, {"learning_rate": 3e-3}),
    (SLOW, {"learning_rate": 6e-4}),
    (SLOW, {"group_size": 4}),
    (SLOW, {"learning_rate": 3e-3}),
    (FAST, {"minibatches_per_refresh": 8}),
    (SLOW, {"minibatches_per_refresh": 8, "learning_rate": 3e-4}),
]
LAST = 160
"""Held-out rewards from this step on are a run's end."""


def trained(size: str, seed: int) -> list[list[tuple[int, float]]]:
    """Held-out rewards of every change, by step."""
    base, found = pretrain(TASKS["sort"], size), []
    for settings, change in CHANGES:
        first = GrpoConfig(**settings, steps=STEPS, seed=seed)
        rows = train(base, TASKS["sort"], first, (AT, dataclasses.replace(first, **change)))
        found.append([(row["step"], row["eval_reward"]) for row in rows if "eval_reward" in row])
        print(size, seed, settings, change, found[-1][-1], file=sys.stderr, flush=True)
    return found


def said(forecaster: Forecaster, settings: dict[str, Any], change: dict[str, Any]) -> Any:
    """Rows of what-if: changed on the way, and not at all."""
    posterior = forecaster.posterior
    cost = learn_cost(posterior, forecaster.target, gpus=1, seconds_per_step=None)
    whole = {**settings, "epochs_per_refresh": 1, "planned_steps": STEPS}
    base = posterior.meta.runs[0].settings.model_copy(update=whole)
    changed = what_if_rows(forecaster, cost, base, {**change, "steps": STEPS}, AT)
    return changed + what_if_rows(forecaster, cost, base, {"steps": STEPS})


def main() -> None:
    """Fit, train, compare."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    posterior = advisor.fit(advisor.read_runs(HERE / "pilots"))
    runs = []
    for size in ("s", "m"):
        own = next(run for run in posterior.meta.runs if run.model == f"tiny-{size}")
        forecaster = Forecaster(posterior, Target(own.task, own.model, own.parameters))
        for seed in SEEDS:
            for (settings, change), rows in zip(CHANGES, trained(size, seed), strict=True):
                changed, unchanged = said(forecaster, settings, change)
                runs.append(
                    {
                        "size": size,
                        "seed": seed,
                        "settings": settings,
                        "change": change,
                        "came": float(np.mean([value for step, value in rows if step >= LAST])),
                        "stood": float(np.mean([value for step, value in rows if step == AT])),
                        "said": changed["reward"],
                        "low": changed["reward_low"],
                        "high": changed["reward_high"],
                        "p_stable": changed["p_stable"],
                        "unchanged": unchanged["reward"],
                    }
                )
    came = np.array([run["came"] for run in runs])
    document = {
        "runs": len(runs),
        "error": {
            name: round(float(np.abs([run[name] for run in runs] - came).mean()), 4)
            for name in ("said", "unchanged", "stood")
        },
        "held": sum(run["low"] <= run["came"] <= run["high"] for run in runs),
        "of": [
            {name: round(v, 4) if isinstance(v, float) else v for name, v in run.items()}
            for run in runs
        ],
    }
    write_result(HERE / "on_the_way.json", document, Path(__file__), [])
    print(json.dumps({name: document[name] for name in ("runs", "error", "held")}))


if __name__ == "__main__":
    main()
