"""Score kept forecasts by group of tasks, with and without runs that died, beside fair rivals.

Nothing is forecast again. The presets were tuned in sight of the first six tasks, so the tasks made
later are scored apart. Rivals: the learning rate that ships with the preset, and the share of
runs that lived at the same rate on the other tasks. A difference has its standard error over tasks.
"""

from __future__ import annotations

import gzip
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from cell_plan import CELLS
from later_tasks import LATER_TASKS
from run_store import HERE, unpack
from said import ends_of, named, scores
from said import regrets as said_regrets
from trained_runs import trained

PRIORS = HERE.parents[1] / "priors"
KEPT = {
    "full": ("said_again", "full_finetuning"),
    "adapters": ("said_lora", "lora"),
    "large batches": ("said_large_first", "full_finetuning"),
    "long runs": ("said_long", "full_finetuning"),
    "full, first scores": ("said_later_first", "full_finetuning"),
    "adapters, first scores": ("said_later_lora_first", "lora"),
}
"""Kind of run: where its forecasts are kept, and the preset that ships for it."""

RIVALS = ("last rows", "own exponential")
Forecast = Mapping[str, Any]


def kept(name: str) -> list[Forecast]:
    """Forecasts of a result, one for each run and set of pilots."""
    with gzip.open(HERE / f"{name}.predictions.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [one for one in map(json.loads, lines) if "said" in one]


def groups(found: Sequence[Forecast]) -> dict[str, list[Forecast]]:
    """Forecasts of all tasks, of those in sight of which presets were tuned, and of later ones."""
    parts = {
        "all tasks": list(found),
        "first tasks": [one for one in found if one["task"] not in LATER_TASKS],
        "later tasks": [one for one in found if one["task"] in LATER_TASKS],
    }
    return {name: part for name, part in parts.items() if part}


def with_and_without_deaths(part: Sequence[Forecast]) -> dict[str, Any]:
    """Scores of piloted settings over the runs that lived, and over all; of all, also rivals'."""
    piloted = [one for one in part if one["piloted"]]
    lived = [one for one in piloted if one["died"] is None]
    rivals = {method: scores(piloted, method) for method in RIVALS}
    return {"lived": scores(lived, "advisor"), "all": scores(piloted, "advisor"), **rivals}


def difference(mine: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """Mean of mine less the other over tasks, its standard error, and both means."""
    less = np.array([mine[task] - other[task] for task in mine])
    return {
        "advisor": round(float(np.mean(list(mine.values()))), 4),
        "other": round(float(np.mean(list(other.values()))), 4),
        "difference": round(float(less.mean()), 4) + 0.0,  # no minus before zero
        "standard_error": round(float(less.std(ddof=1) / less.size**0.5), 4),
        "tasks": int(less.size),
    }


def by_task(rows: Sequence[Forecast], value: Callable[[Any], float]) -> dict[str, float]:
    """Mean of a value over the rows of each task."""
    tasks = dict.fromkeys(row["task"] for row in rows)
    return {task: float(np.mean([value(r) for r in rows if r["task"] == task])) for task in tasks}


def regrets(part: Sequence[Forecast], known_rate: float) -> dict[str, Any]:
    """Regret of the rate that is named, less that of the best pilot and of the known rate."""
    rows = list(named(part))
    mine = by_task(rows, lambda row: row["regret"])
    known = {}
    for task in mine:
        ends = ends_of(one for one in part if one["task"] == task and one["on_ladder"])
        nearest = min(ends, key=lambda rate: abs(np.log(rate / known_rate)))
        known[task] = max(ends.values()) - ends[nearest]
    return {
        "best pilot": difference(mine, by_task(rows, lambda row: row["regret of best pilot"])),
        "known rate that ships": difference(mine, known),
    }


def at_best_checkpoint(found: Sequence[Forecast]) -> list[Forecast]:
    """The same forecasts beside the best checkpoint of each run, in place of its end."""
    places = {cell.name: cell.run(0.0, 1).place for cell in CELLS}
    best = {
        (task, run.name): run.best
        for task in dict.fromkeys(one["task"] for one in found)
        for run in trained(unpack(places.get(task, task)))
    }
    return [{**one, "came": best[one["task"], one["run"]]} for one in found]


def without_task(table: Any, task: str) -> Any:
    """Finished runs elsewhere but those of a task; a cell of another model on it tells no less."""
    tasks = np.array([name.partition(": ")[2] for name in table.repository])
    kept = ~np.isin(tasks, (task, f"cells/{task}"))
    return type(table)(*(column[kept] for column in table))


def brier(part: Sequence[Forecast]) -> dict[str, Any]:
    """Brier score of P(stable), less that of shares that lived on the other tasks."""
    ladder = [one for one in part if one["on_ladder"]]
    tasks, rates = (np.array([one[key] for one in ladder]) for key in ("task", "rate"))
    lived = np.array([not one["unstable"] for one in ladder], float)
    stated = np.array([one["p_stable"] for one in ladder])

    def of(probability: Any) -> dict[str, float]:
        return {task: float(((probability - lived)[tasks == task] ** 2).mean()) for task in tasks}

    plain = [lived[tasks != task].mean() for task in tasks]
    at_rate = [
        lived[(tasks != task) & (rates == rate)].mean()
        for task, rate in zip(tasks, rates, strict=True)
    ]
    return {
        "share that lived": difference(of(stated), of(np.array(plain))),
        "share that lived at the rate": difference(of(stated), of(np.array(at_rate))),
    }


def loop_differences() -> dict[str, Any]:
    """Regret of runs trained as advised, less that of each rival, over the tasks of the loop."""
    loop = json.loads((HERE / "loop.json").read_text(encoding="utf-8"))["summary"]
    mine = loop["advisor"]["by_task"]
    rivals = {name: of for name, of in loop.items() if isinstance(of, dict) and name != "advisor"}
    return {name: difference(mine, of["by_task"]) for name, of in rivals.items()}


def result() -> dict[str, Any]:
    """Scores of all that is kept."""
    document: dict[str, Any] = {"loop": loop_differences()}
    for kind, (name, preset) in KEPT.items():
        found = kept(name)
        text = (PRIORS / f"{preset}.toml").read_text(encoding="utf-8")
        known_rate = tomllib.loads(text)["known_optimum"]["learning_rate"]
        own: dict[str, Any] = {"known rate": known_rate, "piloted": {}, "regret": {}}
        own["regret at the best checkpoint"] = {}
        for group, part in groups(found).items():
            own["piloted"][group] = with_and_without_deaths(part)
            if any(one["on_ladder"] for one in part):
                own["regret"][group] = regrets(part, known_rate)
                best = at_best_checkpoint(part)
                own["regret at the best checkpoint"][group] = regrets(best, known_rate)
        # The first scores of later tasks did not keep P(stable).
        if any(one["on_ladder"] for one in found) and all("p_stable" in one for one in found):
            own["p_stable"] = brier(found)
        document[kind] = own
    cells = at_best_checkpoint(kept("cells_first"))
    document["cells"] = {"regret at the best checkpoint": said_regrets(cells, list(named(cells)))}
    return document
