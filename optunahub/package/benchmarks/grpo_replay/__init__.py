"""Finished runs as a problem for samplers and pruners: a trial replays one, and trains nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.study import StudyDirection

from advisor import InputError

try:
    from optunahub.benchmarks import BaseProblem
except ImportError:  # the package file also serves where OptunaHub is not installed
    BaseProblem = object

__all__ = ["Problem"]

TABLES = {"mod_m": ("mod", "m"), "sort_m": ("sort", "m"), "sort_s": ("sort", "s")}
"""Task and size of each table. In the two of sorting many runs live at step 40 and die later."""

FINAL_SHARE = 0.1
"""Share of a run, at its end, whose mean reward is the value of a trial."""

RUNS = Path(__file__).with_name("runs.jsonl")
"""What a trial needs of the runs in ``case_studies/tiny_transformer/tables``."""


class Problem(BaseProblem):
    """Real GRPO runs of tiny transformers, 200 optimizer steps each, as an objective to maximise.

    A trial reports the mean train reward of every step and may be pruned; its value is the mean of
    the last tenth. Not every combination was trained: a trial replays the run at the nearest
    learning rate that was, and among those the nearest in group size and mini-batches per refresh.
    A fatal rate thus never answers for one that runs survive. The runs are our own
    (``case_studies/tiny_transformer/tables``).

    Parameters
    ----------
    table : {"mod_m", "sort_m", "sort_s"}
        Modular addition (40 runs) or sorting (20 each), on the larger or the smaller model.

    Attributes
    ----------
    tables : tuple of str
        Tables that there are.
    rows : tuple of dict
        The runs, as their file has them.

    Raises
    ------
    InputError
        There is no such table.
    """

    tables = tuple(TABLES)

    def __init__(self, table: str = "mod_m") -> None:
        if table not in TABLES:
            raise InputError(
                f"there is no table '{table}'",
                argument="table",
                advice=f"Choose one of {', '.join(TABLES)}",
            )
        rows = (json.loads(line) for line in RUNS.read_text().splitlines())
        self.rows: tuple[dict[str, Any], ...] = tuple(
            row for row in rows if (row["task"], row["size"]) == TABLES[table]
        )

    @property
    def search_space(self) -> dict[str, BaseDistribution]:
        """Learning rate, group size and mini-batches per refresh, as far as the table reaches."""
        rates = [row["lr"] for row in self.rows]
        return {
            "learning_rate": FloatDistribution(min(rates), max(rates), log=True),
            "group_size": CategoricalDistribution(sorted({row["G"] for row in self.rows})),
            "minibatches_per_refresh": CategoricalDistribution(
                sorted({row["K"] for row in self.rows})
            ),
        }

    @property
    def directions(self) -> list[StudyDirection]:
        """Of the one value."""
        return [StudyDirection.MAXIMIZE]

    @property
    def run(self) -> dict[str, Any]:
        """What all runs share, as the sampler `grpo_advisor` takes it."""
        row = self.rows[0]
        return {
            "prompts_per_step": row["prompts"],
            "momentum": row["beta1"],
            "parameters": float(row["params"]),
            "model": f"tiny-{row['size']}",
            "task": row["task"],
        }

    @property
    def steps(self) -> int:
        """Optimizer steps of a run."""
        return len(self.rows[0]["reward"])

    @property
    def best_value(self) -> float:
        """Value of the best run."""
        return max(map(_value, self.rows))

    def replayed(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Run that stands for parameters of the search space."""

        def distance(row: dict[str, Any]) -> tuple[float, float]:
            rate = abs(math.log(row["lr"] / params["learning_rate"]))
            group = math.log(row["G"] / params["group_size"])
            return rate, math.hypot(group, math.log(row["K"] / params["minibatches_per_refresh"]))

        return min(self.rows, key=distance)

    def rewards(self, params: Mapping[str, Any]) -> list[float]:
        """Mean train reward after each optimizer step, from the first on."""
        return list(self.replayed(params)["reward"])

    def evaluate(self, params: Mapping[str, Any]) -> float:
        """Mean reward of the last tenth of the run."""
        return _value(self.replayed(params))

    def __call__(self, trial: optuna.Trial) -> float:
        """Objective of a study: suggest, report every step, stop where the pruner says so."""
        params: dict[str, Any] = {}
        for name, one in self.search_space.items():
            if isinstance(one, FloatDistribution):
                params[name] = trial.suggest_float(name, one.low, one.high, log=one.log)
            elif isinstance(one, CategoricalDistribution):
                params[name] = trial.suggest_categorical(name, one.choices)
        for step, reward in enumerate(self.rewards(params), start=1):
            trial.report(reward, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return self.evaluate(params)


def _value(row: Mapping[str, Any]) -> float:
    reward = row["reward"]
    return float(np.mean(reward[-max(1, round(FINAL_SHARE * len(reward))) :]))
