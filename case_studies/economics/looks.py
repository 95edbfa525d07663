"""Two looks at pilots against one at the same price, and pilots on a smaller model.

    python case_studies/economics/looks.py records.jsonl.gz TABLE.jsonl[.gz]... [--keep kept]

The purses of `run.py`, with the constants of its records. One look: five pilots of one length. Two
looks: pilots of about half that length; then the answer is asked, and either the two that it values
most go on to three times their length, or the run that it names starts or goes on with all that is
left of the price. A pilot on a smaller model costs as much less as that is smaller.
"""

from __future__ import annotations

import argparse
import gzip
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from run import (
    LEAST_STEPS,
    SHARE,
    Item,
    Pilots,
    Purse,
    add_engine_flags,
    advised,
    digest_of,
    fitted,
    manifest,
    on_engine,
    read_all,
    results,
    run_digest,
    same_in,
    varied,
)

HERE = Path(__file__).resolve().parent

import numpy as np  # noqa: E402
from rivals import ADVISED, ALL, FROM, SMALLER, Regrets, difference, summary  # noqa: E402

from advisor.advice.evaluate import utilities  # noqa: E402
from advisor.forecast.forecaster import Forecaster  # noqa: E402

PILOTS = 5
GO_ON, TIMES = 2, 3
"""So many of the pilots go on after the first look, to so many times their length."""

ONE, HALF, NAMED = "one look", "two looks: two go on", "two looks: the named run goes on"
CHEAP, CHEAP_SHARE, CHEAP_PILOTS = "one look, 8 % of the purse", 0.08, 3
SMALL = "one look, on a smaller model"
IN_RECORDS = "one look, as recorded"


def looked(task: tuple[Purse, Purse | None, int, int]) -> list[dict[str, Any]]:
    """What each design comes to in one world."""
    purse, smaller, base, projects = task
    warnings.simplefilter("ignore")
    room, records = PILOTS * purse.shared(PILOTS), []

    def ask(method: str, pilots: Pilots) -> int:
        found = advised(purse, pilots, base, projects, fitted(purse, pilots, 0))
        add(method, found.run, pilots)
        return found.run

    def add(method: str, run: int, pilots: Pilots) -> None:
        reward, fell = purse.outcome(run, pilots)
        regret, spent = purse.best() - reward, pilots.cost / purse.total
        records.append({"method": method, "run": run, "regret": regret, "collapsed": fell})
        records[-1] |= {"world": purse.world.name, "spent": spent}

    ask(ONE, varied(purse, base, PILOTS))
    length = max(LEAST_STEPS, int(CHEAP_SHARE * purse.total / CHEAP_PILOTS))
    ask(CHEAP, Pilots.of(varied(purse, base, CHEAP_PILOTS).runs, length))
    short = max(LEAST_STEPS, room // (PILOTS + GO_ON * (TIMES - 1)))
    first = Pilots.of(varied(purse, base, PILOTS).runs, short)
    posterior = fitted(purse, first, 0)
    named = advised(purse, first, base, projects, posterior).run
    best = first.runs
    if posterior is not None:
        settings = [purse.world.settings(index) for index in first.runs]
        forecaster = Forecaster(posterior, purse.world.target)
        worth = utilities(forecaster, settings, [purse.total] * PILOTS).mean(axis=1)
        best = [first.runs[place] for place in np.argsort(-worth)]
    ask(HALF, Pilots({**first.steps_of, **dict.fromkeys(best[:GO_ON], TIMES * short)}))
    steps = max(short, first.steps_of.get(named, 0) + room - first.cost)
    ask(NAMED, Pilots({**first.steps_of, named: steps}))
    if smaller is not None:
        add(SMALL, *on_smaller(purse, smaller, base, projects))
    return records


def on_smaller(purse: Purse, smaller: Purse, base: int, projects: int) -> tuple[int, Pilots]:
    """Run that is named by pilots of a smaller model, and the steps that they cost."""
    price = smaller.world.target.parameters / purse.world.target.parameters
    length = int(min(smaller.total, SHARE * purse.total / PILOTS / price))
    runs = varied(smaller, same_in(smaller.world, purse, base), PILOTS).runs
    posterior = fitted(smaller, Pilots.of(runs, length), 0)
    paid = Pilots({-1: int(np.ceil(PILOTS * length * price))})
    return advised(purse, paid, base, projects, posterior).run, paid


def drawn(purses: Sequence[Purse], per_task: int) -> list[int]:
    """So many worlds of each task, drawn, and those whose problem has a smaller model."""
    order = np.random.default_rng(0).permutation(len(purses)).tolist()
    by_task: dict[str, list[int]] = {}
    for number in order:
        by_task.setdefault(purses[number].world.target.task, []).append(number)
    chosen = {number for numbers in by_task.values() for number in numbers[:per_task]}
    return sorted(chosen | {n for n in order if purses[n].world.name in SMALLER})


def main() -> None:
    """Read, replay, sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("records", type=Path)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--per-task", type=int, default=1, help="worlds of each task [default: 1]")
    parser.add_argument("--known", nargs="+", default=["1"], choices=["1", "2", ALL])
    add_engine_flags(parser)
    parser.add_argument("--out", type=Path, default=HERE / "looks.json")
    given = parser.parse_args()
    lines = gzip.decompress(given.records.read_bytes()).decode().splitlines()
    records = [json.loads(line) for line in lines]
    purses = [Purse(world) for world in read_all(given.tables)]
    by_name = {one.world.name: one for one in purses}
    task_of = {name: one.world.target.task for name, one in by_name.items()}
    data = digest_of([[run_digest(run) for run in purse.world.runs] for purse in purses])
    summed: dict[str, Any] = {}
    for known in [int(one) if one != ALL else ALL for one in given.known]:
        items = []
        for number in drawn(purses, given.per_task):
            purse = purses[number]
            smaller = by_name.get(SMALLER.get(purse.world.name, ""))
            base = next(
                one["run"]
                for one in records
                if (one["method"], one["world"]) == (FROM[known], purse.world.name)
            )
            projects = len(set(task_of.values())) - 1 if known == ALL else known
            name = f"{purse.world.name}, known from {known}"
            work = (purse, smaller, base, projects)
            items.append(Item(name, work, (data, digest_of(number, base, projects))))
        found = [
            one for part in results(looked, items, "Looking", on_engine(given)) for one in part
        ]
        summed[f"known from {known}"] = summed_up(found, records, ADVISED[known][0], task_of)
    inputs = [given.records, *given.tables]
    summed["manifest"] = manifest(Path(__file__), seeds=1, checks={}, inputs=inputs)
    given.out.write_text(json.dumps(summed, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({name: one for name, one in summed.items() if name != "manifest"}, indent=1))


def summed_up(
    found: Sequence[dict[str, Any]],
    records: Sequence[dict[str, Any]],
    recorded: str,
    task_of: dict[str, str],
) -> dict[str, Any]:
    """Regrets, differences from one look, and in how many worlds that names the recorded run."""
    regrets: dict[str, Regrets] = {}
    spent: dict[str, list[float]] = {}
    for one in found:
        row = regrets.setdefault(one["method"], {})
        row[one["world"]] = [(one["regret"], one["collapsed"])]
        spent.setdefault(one["method"], []).append(one["spent"])
    before = {
        one["world"]: one
        for one in records
        if one["method"] == recorded and one["pilots"] == PILOTS and one["world"] in regrets[ONE]
    }
    regrets[IN_RECORDS] = {w: [(one["regret"], one["collapsed"])] for w, one in before.items()}
    now = {one["world"]: one["run"] for one in found if one["method"] == ONE}
    return {
        "methods": summary(regrets, spent),
        "less one look": {
            method: difference(own, regrets[ONE], task_of)
            for method, own in regrets.items()
            if method != ONE
        },
        "one look names the recorded run": sum(now[w] == before[w]["run"] for w in now),
    }


if __name__ == "__main__":
    main()
