"""Runs of the language model trained in `case_studies/language_model`, as whole runs of others are.

A task counts as a repository.
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from functools import cache
from pathlib import Path

from advisor.runs import PilotRun

STUDY = "case_studies/language_model"
LEAST_STEPS = 40


def whole_runs(place: str, least_steps: int) -> list[PilotRun]:
    """Runs of a table, read from TRL's own files."""
    sys.path.append(str(Path(__file__).parents[2] / STUDY))
    from run_store import unpack
    from trained_runs import pilots_of, trained

    by_length, runs = defaultdict(list), []
    for run in trained(unpack(place)):
        if run.steps >= least_steps:
            by_length[run.steps].append(run)
    for steps, members in by_length.items():
        with tempfile.TemporaryDirectory() as folder:
            runs += pilots_of(members, steps, place, Path(folder))
    return [run.with_updates(id=f"{place}/{run.id}", task=f"{STUDY}/{place}") for run in runs]


@cache
def runs_of_tasks() -> dict[str, list[PilotRun]]:
    """Whole runs by task."""
    sys.path.append(str(Path(__file__).parents[2] / STUDY))
    from later_tasks import ALL_TASKS

    return {f"{STUDY}/{task}": whole_runs(task, LEAST_STEPS) for task in ALL_TASKS}


@cache
def runs_of_cells() -> dict[str, list[PilotRun]]:
    """Whole runs of tables in which the best rate moves, by model and task."""
    sys.path.append(str(Path(__file__).parents[2] / STUDY))
    from run_store import TABLES

    tables = sorted(TABLES.glob("*/*.jsonl.gz"))
    places = [f"{one.parent.name}/{one.name.removesuffix('.jsonl.gz')}" for one in tables]
    return {f"{STUDY}/{place}": whole_runs(place, 0) for place in places}


def full_finetuning_of_tasks() -> dict[str, list[PilotRun]]:
    """The same without LoRA, whose learning rates are others: cohorts that are fitted together."""
    return {
        name: [run for run in runs if run.hyperparameters.adapter != "lora"]
        for name, runs in runs_of_tasks().items()
    }
