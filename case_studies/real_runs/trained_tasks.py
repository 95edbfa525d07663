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


@cache
def runs_of_tasks() -> dict[str, list[PilotRun]]:
    """Whole runs by task, read from TRL's own files."""
    sys.path.append(str(Path(__file__).parents[2] / STUDY))
    from later_tasks import ALL_TASKS
    from run_store import unpack
    from trained_runs import pilots_of, trained

    found = {}
    for task in ALL_TASKS:
        by_length = defaultdict(list)
        for run in trained(unpack(task)):
            if run.steps >= LEAST_STEPS:
                by_length[run.steps].append(run)
        runs = []
        for steps, members in by_length.items():
            with tempfile.TemporaryDirectory() as folder:
                runs += pilots_of(members, steps, task, Path(folder))
        found[f"{STUDY}/{task}"] = [
            run.with_updates(id=f"{task}/{run.id}", task=f"{STUDY}/{task}") for run in runs
        ]
    return found


def full_finetuning_of_tasks() -> dict[str, list[PilotRun]]:
    """The same without LoRA, whose learning rates are others: cohorts that are fitted together."""
    return {
        name: [run for run in runs if run.hyperparameters.adapter != "lora"]
        for name, runs in runs_of_tasks().items()
    }
