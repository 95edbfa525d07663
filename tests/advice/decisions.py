"""Decisions under made-up posteriors, taken apart for the tests of the advice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from simulated_runs import made_up_posterior, with_meta

from advisor.advice import (
    Budget,
    CostModel,
    Evaluation,
    Evaluator,
    Lattice,
    Objective,
    Search,
    default_lattice,
    run_ends,
)
from advisor.advice.search import search
from advisor.common import DEFAULT_SEED
from advisor.forecast import Forecaster, Target, named_target, pilots_of
from advisor.model import Posterior
from advisor.runs import Settings

LEVEL = 0.9
STEPS = 180
"""Three times the longest of the made-up pilots."""

HOT = {"hazard.level": 2.0}
"""At the reference a run is lost at nearly the largest rate there is, one step in ten."""

DEADLY = {"hazard.level": 20.0}
"""Nothing on offer outlives even half a pilot."""

UNTIMED = CostModel(source="no pilot logged its step times")


def quiet(stage: str, share: float | None, detail: str) -> None:
    """Report no progress."""


def decision(
    posterior: Posterior,
    *,
    target: Target | None = None,
    objective: Objective | None = None,
    budget: Budget | None = None,
    cost: CostModel = UNTIMED,
    goal: float | None = None,
    draws: int = 4000,
    seed: int = DEFAULT_SEED,
    **choices: Any,
) -> tuple[Evaluator, Lattice]:
    """Fresh evaluator, and lattice around the pilots."""
    target = target or named_target(posterior)
    evaluate = Evaluator(
        Forecaster(posterior, target, draws=draws, seed=seed),
        objective or Objective(),
        budget or Budget(steps=STEPS),
        cost,
        goal,
    )
    fixed = pilots_of(posterior, target)[0].settings
    return evaluate, default_lattice(posterior, fixed, target=target, **choices)


def again(evaluate: Evaluator) -> Evaluator:
    """The same question, with nothing tried."""
    return Evaluator(
        evaluate.forecaster, evaluate.objective, evaluate.budget, evaluate.cost, evaluate.goal
    )


def searched(
    evaluate: Evaluator, lattice: Lattice, seed: int = 0, trials: int = 300, **options: Any
) -> Any:
    level, progress = options.pop("level", LEVEL), options.pop("progress", quiet)
    how = Search(trials=trials, seed=seed, **options)
    return search(evaluate, lattice, level, how, progress=progress)


def exhaustive(evaluate: Evaluator, lattice: Lattice, level: float) -> Evaluation | None:
    """Best feasible configuration by trying all of them, or None: the oracle of the search."""
    feasible = [found for found in map(evaluate, lattice) if found.is_feasible(level)]
    return max(feasible, key=lambda found: found.value, default=None)


def with_runs(posterior: Posterior, updates: Sequence[dict[str, Any]]) -> Posterior:
    """Posterior whose summaries of the pilots say something else."""
    pairs = zip(posterior.meta.runs, updates, strict=True)
    return with_meta(posterior, runs=tuple(run.model_copy(update=update) for run, update in pairs))


def timed(seconds: float | Sequence[float] = 40.0, tokens: float = 300.0) -> Posterior:
    """The usual posterior, of pilots that logged step times and lengths."""
    posterior = made_up_posterior()
    each = [seconds] * 5 if isinstance(seconds, float) else seconds
    return with_runs(
        posterior, [{"seconds_per_step": time, "completion_tokens": tokens} for time in each]
    )


def changed(settings: Settings, **updates: Any) -> Settings:
    return Settings.model_validate({**settings.model_dump(), **updates})


def utilities(forecaster: Forecaster, runs: Sequence[Settings], steps: int) -> Any:
    """Utility of runs of so many steps, by draw."""
    return np.stack([run_ends(forecaster, one.planned_over(steps), steps)[1] for one in runs])
