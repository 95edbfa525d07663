"""Seconds, memory and R-hat against the number of runs: one joint fit beside two stages."""

from __future__ import annotations

import multiprocessing as mp
import os
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from cohort_fits import ATTEMPTS, DIVERGENT, ESS, RHAT, CohortFit
from groups import made_groups
from joint import BASE, ENTRIES, peak_mb
from learned_priors import PastStudy, learn_from_studies, past_study

from advisor.backtesting import grouped
from advisor.common import Item, digest_of, mapped, progress_of, silent
from advisor.model import SPECTRUM, Priors, Sampling, cohort_of, load_priors, sampled
from advisor.runs import PilotRun

LAYOUT = {
    8: (2, 4),
    16: (4, 4),
    32: (4, 8),
    64: (8, 8),
    128: (16, 8),
    256: (16, 16),
    1000: (20, 50),
}
"""Runs -> groups, and runs of each."""

LIMIT_SECONDS = 300.0
"""After which a joint fit is stopped, counted as if it had two processors to itself."""

PATIENCE = 4.0
"""Wall seconds per processor second that a shared machine is given."""

STOPPED = "stopped_after_cpu_seconds"
WORKERS = 2
GATE = (RHAT, ESS, DIVERGENT)
GOOD_RHAT = 1.01
STRICT = (GOOD_RHAT, ESS, DIVERGENT)
LONGER = (Sampling(draws=4000, tune=1000, seed=3), Sampling(draws=12000, tune=1000, seed=4))
"""For cohorts whose R-hat is to be below `GOOD_RHAT`."""


class Part(NamedTuple):
    """A cohort, and how it is fitted."""

    name: str
    fit: CohortFit
    attempts: tuple[Sampling, ...]
    gate: tuple[float, float, float]

    @property
    def marks(self) -> tuple[str, ...]:
        """Digests of data, priors, gate, and how it is sampled."""
        how = [one.model_dump(mode="json") for one in self.attempts]
        return (*self.fit.marks, digest_of(how, self.gate))


def row(count: int, *, with_joint: bool, strict: bool, keep: Path | None) -> dict[str, Any]:
    """Both ways on so many runs."""
    told: dict[str, Any] = {"runs": count, "groups": LAYOUT[count][0]}
    if with_joint:
        told["joint"] = joint_fit(count)
    told |= two_stages(_runs(count), strict=strict, keep=keep)
    told["load_average"] = [round(value, 1) for value in os.getloadavg()]
    print(told, file=sys.stderr, flush=True)
    return told


def with_rows(
    counts: Sequence[int],
    kept: list[dict[str, Any]],
    *,
    with_joint: bool,
    strict: bool,
    keep: Path | None,
) -> Any:
    """Rows that are kept, and those of these counts made anew, as each is done.

    Beyond the first joint fit that is stopped none is tried.
    """
    rows = {one["runs"]: one for one in kept}
    for count in sorted(counts):
        made = row(count, with_joint=with_joint, strict=strict, keep=keep)
        rows[count] = made if with_joint else {**_joint_of(rows.get(count, {})), **made}
        with_joint &= STOPPED not in rows[count].get("joint", {})
        yield [rows[number] for number in sorted(rows)]


def _joint_of(known: dict[str, Any]) -> dict[str, Any]:
    """What a joint fit took before, which does not turn on what the second stage does."""
    return {name: known[name] for name in ("runs", "groups", "joint") if name in known}


def _runs(count: int) -> list[PilotRun]:
    made = made_groups("laws of their own", 0, *LAYOUT[count])
    return [run for group in made for run in group.runs]


def joint_fit(count: int) -> dict[str, Any]:
    """One attempt in a process of its own, stopped after `LIMIT_SECONDS` of two processors."""
    ours, theirs = mp.get_context("spawn").Pipe(duplex=False)
    child = mp.get_context("spawn").Process(target=_fit_all, args=(theirs, count))
    child.start()
    theirs.close()
    allowed = WORKERS * LIMIT_SECONDS
    until = time.monotonic() + PATIENCE * LIMIT_SECONDS
    while not ours.poll(1.0):
        if _cpu_seconds(child.pid) > allowed or time.monotonic() > until:
            spent = _cpu_seconds(child.pid)
            child.kill()
            child.join()
            return {STOPPED: round(spent)}
    told: dict[str, Any] = ours.recv()
    child.join()
    return told


def _cpu_seconds(pid: int | None) -> float:
    """Processor seconds of a process so far, all its threads together."""
    told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in told[11:13]) / os.sysconf("SC_CLK_TCK")


def _fit_all(pipe: Connection, count: int) -> None:
    runs, base = _runs(count), load_priors(BASE)
    _warm(base)
    wall, cpu = time.perf_counter(), time.process_time()
    found = sampled(cohort_of(runs), base, SPECTRUM, Sampling(), silent).convergence
    pipe.send(
        {
            "wall_seconds": round(time.perf_counter() - wall, 1),
            "cpu_seconds": round(time.process_time() - cpu, 1),
            "peak_mb": peak_mb(),
            "rhat": round(found.rhat, 4),
            "ess": round(found.ess),
            "divergent_share": round(found.divergent_share, 5),
        }
    )


def _warm(base: Any) -> None:
    """Load machine code before time is taken."""
    few = made_groups("one law", 0, 1, 4)[0].runs
    sampled(cohort_of(few), base, SPECTRUM, Sampling(draws=10, tune=10, chains=2), silent)


def two_stages(runs: Sequence[PilotRun], *, strict: bool, keep: Path | None) -> dict[str, Any]:
    """Each cohort of up to ten runs by itself on two processes, then what they say together.

    Under the gate of `learn`; where it is to be strict, cohorts that miss `GOOD_RHAT` are fitted
    once more. Wall time is told where nothing was kept from an earlier command.
    """
    base = load_priors(BASE)
    parts = [Part(name, CohortFit(tuple(own), base), ATTEMPTS, GATE) for name, own in grouped(runs)]
    warm = [Item(f"warm {n}", None, (str(n),)) for n in range(WORKERS)]
    mapped(warmed, warm, task="Starting", progress=silent, jobs=WORKERS)
    first = _stage(parts, {}, base, keep)
    told = {"two_stage": _costs(first, parts)}
    if not strict:
        return told
    again = [
        part._replace(attempts=LONGER, gate=STRICT)
        for part in parts
        if part.name in first.told and not first.told[part.name]["rhat"] < GOOD_RHAT
    ]
    second = _stage(again, first.told, base, keep)
    apart = {
        entry: abs(getattr(first.preset, entry).mean - getattr(second.preset, entry).mean)
        / getattr(second.preset, entry).sd
        for entry in ENTRIES
    }
    told["strict"] = {
        "fitted_again": len(again),
        "more_wall_seconds": second.wall_seconds,
        "more_cpu_seconds": _costs(second, again)["cpu_seconds"],
        "largest_rhat": _costs(second, parts)["largest_rhat"],
        "cohorts_below_1_01": _costs(second, parts)["cohorts_below_1_01"],
        "learned_means_apart_in_sd": {entry: round(value, 3) for entry, value in apart.items()},
    }
    return told


class Stage(NamedTuple):
    """What cohorts said by name, what was learned of all, and what that cost."""

    told: dict[str, dict[str, Any]]
    preset: Priors
    left_out: list[str]
    wall_seconds: float | None
    learning_seconds: float


def _stage(
    parts: Sequence[Part],
    before: dict[str, dict[str, Any]],
    base: Priors,
    keep: Path | None,
) -> Stage:
    """Fit cohorts, and learn from them in place of what was known of them before."""
    wall = time.perf_counter()
    items = [Item(part.name, part, part.marks) for part in parts]
    found = mapped(
        one_part, items, task="Fitting", progress=progress_of(True), jobs=WORKERS, keep=keep
    )
    told = before | {one.name: one.result for one in found.outcomes if not one.has_failed}
    cpu = time.process_time()
    studies = [PastStudy.model_validate(one["study"]) for one in told.values()]
    preset = learn_from_studies(studies, base=base)
    learning = time.process_time() - cpu
    left_out = [one.text for one in found.failed]
    taken = None if found.kept else round(time.perf_counter() - wall, 1)
    return Stage(told, preset, left_out, taken, learning)


def _costs(stage: Stage, parts: Sequence[Part]) -> dict[str, Any]:
    """Of these cohorts."""
    told = [stage.told[part.name] for part in parts if part.name in stage.told]
    spent = sum(one["cpu_seconds"] for one in told) + stage.learning_seconds
    return {
        "cohorts": len(parts),
        "left_out": stage.left_out,
        "wall_seconds": stage.wall_seconds,
        "cpu_seconds": round(spent, 1),
        "cpu_seconds_of_the_second_stage": round(stage.learning_seconds, 2),
        "peak_mb_of_a_process": max([peak_mb(), *(one["peak_mb"] for one in told)]),
        "largest_rhat": round(max((one["rhat"] for one in told), default=0.0), 4),
        "cohorts_below_1_01": sum(one["rhat"] < GOOD_RHAT for one in told),
        "second_attempts": sum(one["attempts"] - 1 for one in told),
    }


def warmed(_: None) -> int:
    """Start a worker."""
    _warm(load_priors(BASE))
    return 0


def one_part(part: Part) -> dict[str, Any]:
    """A cohort by itself, as `advisor priors learn` fits it, with what that cost."""
    cpu = time.process_time()
    cohort = cohort_of(part.fit.runs)
    attempts = 0
    for attempt in part.attempts:
        attempts += 1
        posterior = sampled(cohort, part.fit.preset, SPECTRUM, attempt, silent)
        if posterior.convergence.complaint(*part.gate) is None:
            break
    return {
        "study": past_study(posterior).model_dump(mode="json"),
        "cpu_seconds": time.process_time() - cpu,
        "rhat": posterior.convergence.rhat,
        "attempts": attempts,
        "peak_mb": peak_mb(),
    }
