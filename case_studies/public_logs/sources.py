"""Runs of a study: public logs with an index and labels by eye, or the demo's pilots."""

from __future__ import annotations

import importlib.util
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np

from advisor.backtesting.cases import bounds_of
from advisor.runs.diagnosis import diagnose
from advisor.runs.logs import read_runs
from advisor.runs.pilot_run import LEAST_REWARDS, PilotRun
from advisor.runs.readiness import needs

STUDIES = Path(__file__).resolve().parents[1]
DEMO = STUDIES / "tiny_transformer" / "pilots"


@dataclass(frozen=True)
class Labelled:
    """A run with the settings that its log or the index tells, and what an eye saw in it."""

    id: str
    repository: str
    model: str
    group_size: int | None
    label: str
    run: PilotRun


def neighbour(study: str, name: str) -> ModuleType:
    """Module of another study; by file, since several studies have a ``run``."""
    folder = STUDIES / study
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    spec = importlib.util.spec_from_file_location(f"{study}_{name}", folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def public(folder: Path) -> list[Labelled]:
    """Public runs; what their logs do not tell is taken from the index where it is stated there."""
    settings_of = neighbour("backtest", "real_logs").settings
    rows = []
    for row in neighbour("diagnose", "run").labelled(folder):
        told, run = settings_of(row), row["run"]
        known = run.hyperparameters.model_dump(exclude_none=True)
        names = ("group_size", "prompts_per_step", "adapter")
        more = {name: told[name] for name in names if name in told and name not in known}
        if run.parameters is None and "parameters" in told:
            run = run.with_updates(parameters=told["parameters"])
        run = run.with_updates(
            id=row["id"],
            task=told.get("task", row["repo"]),
            model=told.get("model", row["model"]),
            hyperparameters=run.hyperparameters.model_copy(update=more),
        )
        size = row["group_size"]
        rows.append(
            Labelled(
                row["id"],
                row["repo"],
                row["model"].split(" (")[0],
                int(size) if size.isdigit() else None,
                row["verdict"],
                run,
            )
        )
    return rows


def demo() -> list[Labelled]:
    """Pilots of the demo, by learning rate as if each rate were a repository."""
    rows = []
    for run in read_runs(DEMO):
        fallen = diagnose(run).collapse_step is not None
        label = "collapse" if fallen else "healthy"
        rate = f"{run.hyperparameters.learning_rate:g}"
        group = run.hyperparameters.group_size
        rows.append(Labelled(run.id, rate, run.model or "", group, label, run))
    return rows


def askable(rows: list[Labelled]) -> tuple[list[Labelled], dict[str, int]]:
    """Runs whose probability can be asked, rewards scaled by task; and why the others cannot."""
    kept, why = [], defaultdict[str, int](int)
    for row in rows:
        lacking = needs(row.run)
        if row.run.is_eval_only:
            why["only evaluations, no train reward"] += 1
        elif lacking:
            why[f"lacks {', '.join(lacking)}"] += 1
        elif np.isfinite(row.run.reward).sum() < LEAST_REWARDS:
            why["too few rewards"] += 1
        else:
            kept.append(row)
    by_task = defaultdict[str | None, list[Labelled]](list)
    for row in kept:
        by_task[row.run.task].append(row)
    return [_scaled(row, own) for own in by_task.values() for row in own], dict(why)


def _scaled(row: Labelled, own: list[Labelled]) -> Labelled:
    low, high = bounds_of([other.run for other in own])
    series = {name: np.asarray(values, dtype=float) for name, values in row.run.series.items()}
    series["reward"] = (row.run.reward - low) / (high - low)
    series.pop("reward_std_within_group", None)
    run = row.run.with_updates(
        copy_of=None,
        series=series,
        parts={},
        eval_step=np.array([]),
        eval_reward=np.array([]),
        reward_floor=0.0,
        reward_ceiling=1.0,
    )
    return Labelled(row.id, row.repository, row.model, row.group_size, row.label, run)
