"""Whether forecasts gain from runs of other tasks, or of other models, in the same fit.

    python case_studies/language_model/pooling.py [--out pooling.json]

Each set of pilots is fitted twice, as `--fast` does: alone, and with whole ladders beside it, of
the next two of the fourteen tasks of one model, or of other models on a cell's own task. Every run
of the ladder is forecast from both; the difference of the CRPS is that of tasks, or of cells.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from cell_plan import CELLS, Cell  # noqa: E402
from compared import difference  # noqa: E402
from later_tasks import ALL_TASKS  # noqa: E402
from manifest import write_result  # noqa: E402
from run_store import TABLES, unpack  # noqa: E402
from said import KINDS, Kind, OfCell, _ladder, records  # noqa: E402
from trained_runs import Trained, pilots_of, trained  # noqa: E402

from advisor import PilotRun  # noqa: E402
from advisor.forecast import crps  # noqa: E402
from advisor.model import Sampling  # noqa: E402

FULL = KINDS["full"]._replace(pilots={"four of 12": KINDS["full"].pilots["four of 12"]})
OTHERS = 2


def whole(runs: Sequence[Trained], task: str) -> list[PilotRun]:
    """Whole runs of one ladder, as the advisor reads them."""
    if not runs:
        return []
    with tempfile.TemporaryDirectory() as folder:
        read = pilots_of(list(runs), runs[0].steps, task, Path(folder))
    return [run.with_updates(id=f"{run.model}/{task}/{run.id}") for run in read]


def of_other_tasks(task: str) -> list[PilotRun]:
    """Ladders of the next tasks."""
    names, found = list(ALL_TASKS), []
    for place in range(1, OTHERS + 1):
        other = names[(names.index(task) + place) % len(names)]
        ladder = _ladder([run for run in trained(unpack(other)) if FULL.holds(run)], FULL)
        found += whole(list(ladder.values()), other)
    return found


def of_other_models(cell: Cell) -> list[PilotRun]:
    """Ladders of other models on a cell's task, of its steps and refresh interval, or none."""
    found = []
    for other in CELLS:
        if other._replace(model=cell.model) == cell and other.model != cell.model:
            runs = trained(unpack(other.run(0.0, 1).place))
            names = {run.name for run in other.ladder()}
            found += whole([run for run in runs if run.name in names], cell.task)
    return found


def compared(
    name: str, place: str, kind: Kind | OfCell, beside: Sequence[PilotRun]
) -> dict[str, Any]:
    """CRPS of the ladder of one task from its pilots alone, and with other runs in the fit."""
    ways = []
    for others in ([], beside):
        asked = records(place, None, kind, others, sampling=Sampling.first_look())
        ladder = (one for one in asked if one.get("on_ladder"))
        ways.append({(one["set"], one["run"]): one for one in ladder})
    missed = [
        [crps(np.array(way[at]["said"]["advisor"]), way[at]["came"]) for way in ways]
        for at in ways[0]
        if at in ways[1]
    ]
    told = {"task": name, "beside": len(beside), "forecasts": len(missed)}
    told["crps"] = np.mean(missed, axis=0).round(5).tolist() if missed else None
    print(told, file=sys.stderr)
    return told


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means over tasks, and the difference with its standard error."""
    pairs = {row["task"]: row["crps"] for row in rows if row["crps"]}
    alone, beside = ({task: pair[way] for task, pair in pairs.items()} for way in (0, 1))
    told = difference(beside, alone)
    told = {"alone": told.pop("other"), "beside": told.pop("advisor"), **told}
    return told | {"forecasts": sum(row["forecasts"] for row in rows), "rows": list(rows)}


def main() -> None:
    """Fit, forecast, score."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=HERE / "pooling.json")
    given = parser.parse_args()
    tasks = [compared(task, task, FULL, of_other_tasks(task)) for task in ALL_TASKS]
    cells = []
    for cell in CELLS:
        place, others = cell.run(0.0, 1).place, of_other_models(cell)
        if others and all((unpack(place) / run.name).is_dir() for run in cell.ladder()):
            cells.append(compared(cell.name, place, OfCell(cell), others))
    document = {"other tasks": summary(tasks), "other models": summary(cells)}
    write_result(given.out, document, Path(__file__), sorted(TABLES.glob("**/*.jsonl.gz")))


if __name__ == "__main__":
    main()
