"""Where runs of a language model that have begun will end, as `advisor watch` says of one alone.

    python case_studies/language_model/begun.py

Every finished run of the tables is asked after a tenth, a fifth, a third and a half of its steps,
unless it has fallen by then, under the shipped analogues without the runs of its task (their
weights and reaches were learned with them). Beside it: its last rows, and its own exponential,
carried on; and the scores of runs that lived to the end.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "real_runs")]

import numpy as np  # noqa: E402
from said import METHODS, carried_on, keep, quantiles, scores  # noqa: E402
from trained_tasks import runs_of_tasks  # noqa: E402

from advisor.diagnosis import Collapse  # noqa: E402
from advisor.forecast.analogues import final_rows, mark_of, shipped_corpus  # noqa: E402
from advisor.forecast.run_in_progress import end_of_begun_run  # noqa: E402
from advisor.model import load_priors  # noqa: E402
from advisor.runs import PilotRun  # noqa: E402

SHARES = (0.1, 0.2, 0.35, 0.5)
PRIORS = load_priors("full_finetuning")

LEAST_STEPS = 60
"""Shorter ones are trials of a search, which stop where its pilots do."""


def asked(task: str, runs: Sequence[PilotRun]) -> Iterable[dict[str, Any]]:
    """What is forecast of each run of a task after each share of its steps."""
    corpus = shipped_corpus().without([mark_of(run) for run in runs])
    for run in runs:
        end = int(run.step[-1])
        if end < LEAST_STEPS:
            continue
        rows, lived = final_rows(run), not Collapse.of(run, 0.0).unstable
        for share in SHARES:
            seen = run.first_part(share)
            if seen.step.size < PilotRun.LEAST_REWARDS or Collapse.of(seen, 0.0).unstable:
                continue
            ended = end_of_begun_run(
                seen, run.step[rows], corpus=corpus, bounds=(0.0, 1.0), priors=PRIORS
            )
            yield {
                "task": task,
                "run": run.id,
                "adapter": run.hyperparameters.adapter == "lora",
                "seen": share,
                "lived": lived,
                "came": round(float(run.reward[rows].mean()), 5),
                "said": {"advisor": quantiles(np.clip(ended.draws, 0, 1))} | carried_on(seen, end),
            }


def summary(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Scores of each method after each share, tasks alike, of all runs and of those that lived."""
    told: dict[str, Any] = {"tasks": len({one["task"] for one in found})}
    for name, is_lora in (("full", False), ("adapters", True)):
        of_kind = [one for one in found if one["adapter"] == is_lora]
        lived = [one for one in of_kind if one["lived"]]
        told[name] = _by_share(of_kind) | {"those that lived": _by_share(lived)}
    return told


def _by_share(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        f"{share:g}": {method: scores(part, method) for method in METHODS}
        for share in SHARES
        if (part := [one for one in found if one["seen"] == share])
    }


def main() -> None:
    """Forecast, score, keep."""
    warnings.simplefilter("ignore")
    found = []
    for name, runs in runs_of_tasks().items():
        task = Path(name).name
        found += asked(task, runs)
        print(f"{task}: {len(found)} forecasts so far", file=sys.stderr)
    keep(HERE / "begun.json", found, summary(found), Path(__file__))


if __name__ == "__main__":
    main()
