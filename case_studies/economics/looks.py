"""Two looks at pilots against one at the same price, and pilots on a smaller model.

    python case_studies/economics/looks.py records.jsonl.gz TABLE.jsonl[.gz]... [--keep kept]
    python case_studies/economics/looks.py ... --designs plans --first 20 --out plans.json

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
    planned,
    read_all,
    results,
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
RATES, EVERY = "its own plan of learning rates", "its own plan of all settings"

Work = tuple[Purse, Purse | None, int, int]
"""A purse, that of a smaller model, the run that is known to be good, and from how many tasks."""

Record = dict[str, Any]


def entry(purse: Purse, method: str, run: int, pilots: Pilots) -> Record:
    """What a launched run comes to."""
    reward, fell = purse.outcome(run, pilots)
    return {
        "world": purse.world.name,
        "method": method,
        "run": run,
        "regret": purse.best() - reward,
        "collapsed": fell,
        "spent": pilots.cost / purse.total,
    }


def asked(work: Work, method: str, pilots: Pilots) -> Record:
    """What the run comes to that these pilots name."""
    purse, _, base, projects = work
    found = advised(purse, pilots, base, projects, fitted(purse, pilots, 0))
    return entry(purse, method, found.run, pilots)


def cheap(work: Work) -> list[Record]:
    """Three pilots for less than half of the price."""
    purse, _, base, _ = work
    length = max(LEAST_STEPS, int(CHEAP_SHARE * purse.total / CHEAP_PILOTS))
    return [asked(work, CHEAP, Pilots.of(varied(purse, base, CHEAP_PILOTS).runs, length))]


def twice(work: Work) -> list[Record]:
    """Short pilots, then what the first answer points at."""
    purse, _, base, projects = work
    room = PILOTS * purse.shared(PILOTS)
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
    longer = dict.fromkeys(best[:GO_ON], TIMES * short)
    rest = max(short, first.steps_of.get(named, 0) + room - first.cost)
    return [
        asked(work, HALF, Pilots({**first.steps_of, **longer})),
        asked(work, NAMED, Pilots({**first.steps_of, named: rest})),
    ]


def small(work: Work) -> list[Record]:
    """Pilots of a smaller model, where the problem has one."""
    purse, smaller, base, projects = work
    if smaller is None:
        return []
    return [entry(purse, SMALL, *on_smaller(purse, smaller, base, projects))]


def plans(work: Work) -> list[Record]:
    """Pilots that `advisor plan` names: they differ in the learning rate, or in all settings."""
    purse, _, base, projects = work
    return [
        asked(work, name, planned(purse, base, projects, vary_all=vary_all))
        for name, vary_all in ((RATES, False), (EVERY, True))
    ]


DESIGNS = {"cheap": cheap, "twice": twice, "small": small, "plans": plans}


def looked(task: tuple[Work, str]) -> list[Record]:
    """What a design comes to in one world."""
    warnings.simplefilter("ignore")
    work, design = task
    return DESIGNS[design](work)


def on_smaller(purse: Purse, smaller: Purse, base: int, projects: int) -> tuple[int, Pilots]:
    """Run that is named by pilots of a smaller model, and the steps that they cost."""
    price = smaller.world.target.parameters / purse.world.target.parameters
    length = int(min(smaller.total, SHARE * purse.total / PILOTS / price))
    runs = varied(smaller, same_in(smaller.world, purse, base), PILOTS).runs
    posterior = fitted(smaller, Pilots.of(runs, length), 0)
    paid = Pilots({-1: int(np.ceil(PILOTS * length * price))})
    return advised(purse, paid, base, projects, posterior).run, paid


def main() -> None:
    """Read, replay, sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("records", type=Path)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--designs", nargs="+", default=list(DESIGNS), choices=list(DESIGNS))
    parser.add_argument("--first", type=int, help="only so many worlds, one of each task first")
    parser.add_argument("--known", nargs="+", default=["1", ALL], choices=["1", "2", ALL])
    parser.add_argument("--worlds", nargs="+", help="only these [default: all]")
    add_engine_flags(parser)
    parser.add_argument("--out", type=Path, default=HERE / "looks.json")
    given = parser.parse_args()
    lines = gzip.decompress(given.records.read_bytes()).decode().splitlines()
    records = [json.loads(line) for line in lines]
    purses = [Purse(world) for world in read_all(given.tables)]
    task_of = {one.world.name: one.world.target.task for one in purses}
    summed: dict[str, Any] = {}
    if given.out.exists():
        summed = json.loads(given.out.read_text(encoding="utf-8"))
    for known in [int(one) if one != ALL else ALL for one in given.known]:
        for design in given.designs:
            items = work_items(purses, records, known, design)
            if given.worlds:
                items = [one for one in items if one.payload[0][0].world.name in given.worlds]
            items = items[: given.first]
            found = results(looked, items, f"Looking: {design}", on_engine(given))
            done = [one for part in found for one in part]
            summed[f"{design}, known from {known}"] = summed_up(done, records, known, task_of)
    inputs = [given.records, *given.tables]
    summed["manifest"] = manifest(Path(__file__), seeds=1, checks={}, inputs=inputs)
    given.out.write_text(json.dumps(summed, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({name: one for name, one in summed.items() if name != "manifest"}, indent=1))


def work_items(
    purses: Sequence[Purse], records: Sequence[Record], known: object, design: str
) -> list[Item]:
    """What is to be done, first one world of every task, in the order of a draw."""
    by_name = {one.world.name: one for one in purses}
    data = digest_of([[run.digest for run in purse.world.runs] for purse in purses])
    base_of = {one["world"]: one["run"] for one in records if one["method"] == FROM[known]}
    tasks = len({one.world.target.task for one in purses})
    seen: dict[str, int] = {}
    ranked = []
    for number in np.random.default_rng(0).permutation(len(purses)).tolist():
        task = purses[number].world.target.task
        seen[task] = seen.get(task, 0) + 1
        ranked.append((seen[task], number))
    items = []
    for _, number in sorted(ranked, key=lambda one: one[0]):
        purse = purses[number]
        name = purse.world.name
        smaller = by_name.get(SMALLER.get(name, ""))
        projects = tasks - 1 if known == ALL else int(str(known))
        work = (purse, smaller, base_of[name], projects)
        marks = (data, digest_of(design, base_of[name], projects))
        items.append(Item(f"{design}: {name}, known from {known}", (work, design), marks))
    return items


def summed_up(
    found: Sequence[Record], records: Sequence[Record], known: object, task_of: dict[str, str]
) -> dict[str, Any]:
    """Regrets, and how they differ from those of one look in the records."""
    regrets: dict[str, Regrets] = {}
    spent: dict[str, list[float]] = {}
    worlds = {one["world"] for one in found}
    before = [
        one | {"method": ONE}
        for one in records
        if one["method"] == ADVISED[known][0] and one["pilots"] == PILOTS and one["world"] in worlds
    ]
    for one in [*before, *found]:
        row = regrets.setdefault(one["method"], {})
        row[one["world"]] = [(one["regret"], one["collapsed"])]
        spent.setdefault(one["method"], []).append(one["spent"])
    both = RATES in regrets and EVERY in regrets
    return {
        "methods": summary(regrets, spent),
        **({f"{RATES}, less": difference(regrets[RATES], regrets[EVERY], task_of)} if both else {}),
        "less one look": {
            method: difference(own, regrets[ONE], task_of)
            for method, own in regrets.items()
            if method != ONE
        },
    }


if __name__ == "__main__":
    main()
