"""A team's history: what is learned of a population that is known, and what it costs."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from cohort_fits import read_history
from cohorts import RUNS, STRANGERS, TEAM, Population, chance_of, levels_of, made_cohort
from held_out import forecasts
from joblib.externals.loky import get_reusable_executor
from learned_priors import PastStudy, learn_from_studies

from advisor.common import EngineSettings, progress_of
from advisor.model import Priors, load_priors

BASE = "small_models"
MANY = 1000
"""Cohorts of the population step that is timed."""


def history(
    cohorts: int, strangers: int, held_out: int, keep: Path, on: EngineSettings
) -> dict[str, Any]:
    """Learn from a team and from strangers; score both presets on the last cohorts of the team."""
    base = load_priors(BASE)
    where: EngineSettings = {**on, "keep": keep}
    told: dict[str, Any] = {"runs_of_a_cohort": RUNS, "base": BASE}
    presets, unseen = {BASE: base}, list[PastStudy]()
    for name, population, count in (("team", TEAM, cohorts), ("strangers", STRANGERS, strangers)):
        made = [(f"{name} {number}", made_cohort(number, population)) for number in range(count)]
        with measured(keep / f"cost of {name}.json") as cost:
            found = read_history(made, base, progress=progress_of(True), on=where)
        known = found.told
        if name == "team":
            known, unseen = known[:-held_out], known[-held_out:]
        presets[name] = learn_from_studies(known, base=base, name=name)
        told[name] = {
            "cohorts": count,
            "fitted": len(found.told),
            "learned_from": len(known),
            "left_out": list(found.left_out),
            "fitting": cost,
            "learned": recovered(presets[name], base, population, known),
        }
        if name == "team":
            told["misses"] = misses(found.studies, population)
            told["population_step"] = population_step(known, base)
    told["seconds_per_cohort"] = costs(keep, {"team": cohorts, "strangers": strangers})
    told["held_out"] = scores(presets, unseen)
    told["forecasts"] = forecasts(presets, range(cohorts - held_out, cohorts), where)
    return told


@contextmanager
def measured(kept: Path) -> Iterator[dict[str, float]]:
    """Seconds of a clock and of a processor, and the largest process, here and in workers of here.

    With what the calls before spent that this one goes on from.
    """
    told: dict[str, float] = {}
    before, wall = _usage(), time.perf_counter()
    try:
        yield told
    finally:
        _count(told, before, time.perf_counter() - wall, kept)


def _count(
    told: dict[str, float], before: Sequence[resource.struct_rusage], wall: float, kept: Path
) -> None:
    told["wall_seconds"] = round(wall, 1)
    get_reusable_executor().shutdown(wait=True)  # the kernel tells of processes that have ended
    spent = _usage()
    cpu = sum(one.ru_utime + one.ru_stime for one in spent)
    cpu -= sum(one.ru_utime + one.ru_stime for one in before)
    told["cpu_seconds"] = round(cpu, 1)
    told["peak_mb_of_a_process"] = round(max(one.ru_maxrss for one in spent) / 1024)
    if kept.exists():
        earlier = json.loads(kept.read_text("utf-8"))
        for what, value in earlier.items():
            both = (told[what], value)
            told[what] = max(both) if what.startswith("peak") else round(sum(both), 1)
    kept.write_text(json.dumps(told), encoding="utf-8")


def _usage() -> tuple[resource.struct_rusage, ...]:
    return tuple(map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def recovered(
    preset: Priors, base: Priors, population: Population, known: Sequence[PastStudy]
) -> dict[str, Any]:
    """What was learned beside what it was made from, by entry.

    Cohorts are made at their own reference; presets speak of where their law of the speed stands.
    """
    return {
        entry: {
            "made_from": _as_the_preset_speaks(entry, mean, spread, base, known),
            "learned": [getattr(preset, entry).mean, getattr(preset, entry).sd],
            "base": [getattr(base, entry).mean, getattr(base, entry).sd],
        }
        for entry, (mean, spread) in population._asdict().items()
    }


def misses(studies: Sequence[PastStudy | None], population: Population) -> dict[str, Any]:
    """By how much cohorts by themselves miss what they were made from, by entry.

    ``in_own_errors`` is 1 where their errors are what they say.
    """
    truths = [
        levels_of(chance_of(number, population), population) for number in range(len(studies))
    ]
    told = {}
    for entry in Population._fields:
        found = np.array(
            [
                (value - truth[entry], error)
                for study, truth in zip(studies, truths, strict=True)
                if study is not None
                for value, error in zip(*study.said[entry], strict=True)
                if value is not None and error is not None
            ]
        )
        apart, errors = found.T
        told[entry] = {
            "cohorts": len(found),
            "mean": round(float(apart.mean()), 3),
            "sd": round(float(apart.std()), 3),
            "in_own_errors": round(float((apart / errors).std()), 2),
        }
    return told


def _as_the_preset_speaks(
    entry: str, mean: float, spread: float, base: Priors, known: Sequence[PastStudy]
) -> list[float]:
    """Mean and spread over tasks, moved from each cohort's reference to where the law stands."""
    own = getattr(base, entry).mean
    shifts = np.array([getattr(base.at(one.reference), entry).mean - own for one in known])
    return [round(float(mean - shifts.mean()), 3), round(float(np.hypot(spread, shifts.std())), 3)]


def population_step(studies: list[PastStudy], base: Priors) -> dict[str, Any]:
    """Time and memory of learning from ``MANY`` studies: those that there are, under new names."""
    many = [renamed(studies[number % len(studies)], number) for number in range(MANY)]
    started = time.perf_counter()
    learn_from_studies(many, base=base, name="many")
    return {
        "cohorts": MANY,
        "seconds": round(time.perf_counter() - started, 2),
        "peak_mb_of_the_process": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def renamed(study: PastStudy, number: int) -> PastStudy:
    """The same study as if of other data and runs."""
    runs = tuple(run.model_copy(update={"fingerprint": f"{number}-{run.id}"}) for run in study.runs)
    tasks = {task: f"{task} of {number}" for task in study.tasks}
    return study.model_copy(
        update={
            "data": f"{number}",
            "runs": runs,
            "tasks": tuple(tasks.values()),
            "groups": tuple((tasks[task], model) for task, model in study.groups),
        }
    )


def costs(keep: Path, counts: dict[str, int]) -> dict[str, float]:
    """Wall seconds of a cohort, from the kept lines: of one that was done again the last."""
    lines = [json.loads(line) for line in (keep / "items.jsonl").read_text("utf-8").splitlines()]
    done = {line["name"]: line["seconds"] for line in lines if line["kind"] is None}
    names = [f"{team} {number}" for team, count in counts.items() for number in range(count)]
    seconds = np.array([done[name] for name in names if name in done])
    return {
        "n": int(seconds.size),
        "mean_of_first_hundred": round(float(seconds[:100].mean()), 2),
        "mean_of_last_hundred": round(float(seconds[-100:].mean()), 2),
        "mean": round(float(seconds.mean()), 2),
        "median": round(float(np.median(seconds)), 2),
        "largest": round(float(seconds.max()), 2),
        "hours_of_1000_cohorts_one_after_the_other": round(float(seconds.mean()) / 3.6, 2),
    }


def scores(presets: dict[str, Priors], held_out: Sequence[PastStudy]) -> dict[str, Any]:
    """How well presets expected what held-out cohorts of the team said, in nats per estimate.

    The log density of every estimate with its error under the entry of a preset, over the entries
    in which the populations differ.
    """
    told: dict[str, Any] = {"cohorts": len(held_out)}
    found: dict[str, list[float]] = {name: [] for name in presets}
    for name, preset in presets.items():
        for study in held_out:
            for entry in Population._fields:
                (value,), (error,) = study.said[entry]
                if value is None or error is None:
                    continue
                prior = getattr(preset.at(study.reference), entry)
                spread = float(np.hypot(prior.sd, error))
                miss = (value - prior.mean) / spread
                found[name].append(-0.5 * (miss**2 + np.log(2 * np.pi * spread**2)))
    told["estimates"] = len(found["team"])
    for name in presets:
        told[name] = round(float(np.mean(found[name])), 3)
    for name in ("strangers", BASE):
        gain = np.array(found["team"]) - np.array(found[name])
        told[f"team_over_{name}"] = {
            "mean": round(float(gain.mean()), 3),
            "standard_error": round(float(gain.std(ddof=1) / np.sqrt(gain.size)), 3),
        }
    return told
