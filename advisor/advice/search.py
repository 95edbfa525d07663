"""Search the lattice with Optuna, over posterior draws: no run is launched."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from advisor._compat import Progress
from advisor.advice.lattice import Lattice
from advisor.advice.stability import Stability, stability
from advisor.posterior import Forecaster
from advisor.runs.pilot_run import Hyperparameters

CONSTRAINT = "P(stable)"
"""Name of the constraint in the Optuna study: level - P(stable), zero or less is feasible."""


@dataclass(frozen=True)
class Evaluation:
    """A configuration under the posterior.

    Attributes
    ----------
    settings : Hyperparameters
    reward : float
        Posterior mean of the reward at the planned step, given a stable run, in reward units.
    stability : Stability
    """

    settings: Hyperparameters
    reward: float
    stability: Stability


class Evaluator:
    """Evaluate configurations at a planned number of steps, once each.

    Parameters
    ----------
    forecaster : Forecaster
    steps : int
        Planned optimizer steps.
    """

    def __init__(self, forecaster: Forecaster, steps: int) -> None:
        self.forecaster = forecaster
        self.steps = steps
        self._seen: dict[Hyperparameters, Evaluation] = {}

    @property
    def tried(self) -> list[Evaluation]:
        """Everything evaluated so far."""
        return list(self._seen.values())

    def __call__(self, settings: Hyperparameters) -> Evaluation:
        """Evaluate one configuration."""
        if settings not in self._seen:
            self._seen[settings] = Evaluation(
                settings,
                float(self.forecaster.outcome(settings, self.steps).mean()),
                stability(self.forecaster, settings, self.steps),
            )
        return self._seen[settings]


def exhaustive(evaluate: Evaluator, lattice: Lattice, level: float) -> Evaluation | None:
    """Best feasible configuration by trying all of them, or None: the oracle of the search."""
    feasible = [e for e in map(evaluate, lattice) if e.stability.probability >= level]
    return max(feasible, key=lambda e: e.reward, default=None)


def search(
    evaluate: Evaluator,
    lattice: Lattice,
    level: float,
    *,
    trials: int,
    seed: int,
    progress: Progress,
) -> tuple[Evaluation | None, Evaluation]:
    """Find the best feasible configuration with Optuna's TPE sampler.

    Parameters
    ----------
    evaluate : Evaluator
    lattice : Lattice
    level : float
        P(stable) wanted.
    trials : int
        Optuna trials.
    seed : int
    progress : callable

    Returns
    -------
    best : Evaluation or None
        Highest expected reward with P(stable) >= level.
    safest : Evaluation
        Highest P(stable) among those tried, for the answer when nothing is feasible.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    tried: list[Evaluation] = []

    def objective(trial: optuna.Trial) -> float:
        settings = lattice.settings(
            lattice.learning_rates[
                trial.suggest_int("learning_rate_index", 0, len(lattice.learning_rates) - 1)
            ],
            trial.suggest_categorical("group_size", lattice.group_sizes),
            trial.suggest_categorical("minibatches_per_refresh", lattice.minibatches),
            trial.suggest_categorical("epochs_per_refresh", lattice.epochs),
        )
        evaluation = evaluate(settings)
        tried.append(evaluation)
        trial.set_constraint(CONSTRAINT, level - evaluation.stability.probability)
        if trial.number % 10 == 0:
            progress("Searching configurations", trial.number / trials, f"trial {trial.number}")
        return evaluation.reward

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study = optuna.create_study(
            direction="maximize",
            sampler=optuna.samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=32),
        )
        study.optimize(objective, n_trials=trials)
    feasible = [e for e in tried if e.stability.probability >= level]
    best = max(feasible, key=lambda e: e.reward, default=None)
    safest = max(tried, key=lambda e: (e.stability.probability, e.reward))
    return best, safest


def time_to_gain(curve: np.ndarray, share: float) -> float:
    """First step at which the mean curve has made ``share`` of its gain, curve[0] being step 0."""
    gain = curve[-1] - curve[0]
    if gain <= 0:
        return float(curve.size - 1)
    return float(np.argmax(curve >= curve[0] + share * gain))
