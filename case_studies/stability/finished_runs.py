"""Finished runs that P(stable) is asked of: public ones and those trained here, with their signals.

A public run is read as its index says. Its other series are those of the package's own reader,
row by row where the rewards agree.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

STUDIES = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(STUDIES / name) for name in ("real_runs", "language_model", "")]

import numpy as np  # noqa: E402
from run import load  # noqa: E402
from trained_tasks import runs_of_cells, runs_of_tasks  # noqa: E402
from visible import LEAST_SHARE, SAME, compare  # noqa: E402

from advisor.diagnosis.collapse import (  # noqa: E402
    Collapse,
    dead_from_the_start,
    find_final_fall,
    find_passing_fall,
)
from advisor.forecast.analogues import mark_of  # noqa: E402
from advisor.forecast.elsewhere import project_of, signals_of  # noqa: E402
from advisor.runs import PilotRun  # noqa: E402

LEAST_STEPS_OF_CELLS = 30
"""Of a run of a table in which the best rate moves: some models learn fast."""

LOOKS = (0.1, 0.25, 0.5, 0.75)
"""Shares of a run at which it is scored."""

OWN = "case_studies/language_model"

SHARES = (0.1, 0.15, 0.25, 0.35, 0.5, 0.7, 0.85)
"""Shares at which it is learned from."""


@dataclass(frozen=True)
class Finished:
    """One finished run, and how it looked while it lived."""

    run: PilotRun
    repository: str  # or the model and task that it was trained on here
    is_public: bool
    is_lora: bool
    knows_rate: bool
    died: bool
    onset: float | None  # share of its length
    has_recovered: bool
    looks: Mapping[float, Mapping[str, float]]  # share seen -> signals

    @property
    def project(self) -> str:
        """What is left out together: a repository, or all tasks of a model trained here."""
        return project_of(self.repository)

    @property
    def is_cell(self) -> bool:
        """Whether it is of a table in which the best rate moves."""
        return not self.is_public and "cells" in self.repository

    @property
    def mark(self) -> str:
        """Name of the run in the table that ships."""
        return mark_of(self.run)


def finished_runs(folders: Sequence[Path]) -> list[Finished]:
    """All runs: public ones of the folders, those of the first tables, and of the cells."""
    return [*_public(folders), *_trained()]


def _public(folders: Sequence[Path]) -> Iterator[Finished]:
    runs, _ = load(folders)
    own = {one.indexed.id: one.run for folder in folders for one in compare(folder)[0]}
    for run in runs:
        pilot, read = run.pilot, own[run.pilot.id]
        # What the index does not tell, the file may: an adapter, or a rate that only adapters have.
        adapters = {one.hyperparameters.adapter for one in (pilot, read) if one is not None}
        may_be = pilot.may_be_lora or (read is not None and read.may_be_lora)
        is_lora = "lora" in adapters or ("full" not in adapters and may_be)
        whole = with_own_series(pilot, read).with_updates(reward_floor=run.bounds[0])
        yield finished(whole, run.repository, is_public=True, is_lora=is_lora)


def with_own_series(pilot: PilotRun, read: PilotRun | None) -> PilotRun:
    """Add the series and evaluations that the package reads in the same file."""
    if read is None or read.is_eval_only:
        return pilot
    known = np.flatnonzero(np.isfinite(read.reward))
    place, at = np.full(pilot.reward.size, -1), 0
    for row, value in enumerate(pilot.reward):
        there = np.flatnonzero(np.abs(read.reward[known[at:]] - value) <= SAME)
        if there.size:
            place[row] = known[at + there[0]]
            at += int(there[0]) + 1
    found = place >= 0
    if found.mean() < LEAST_SHARE:
        return pilot
    series = {"reward": pilot.reward}
    for name, values in read.series.items():
        if name not in ("reward", "learning_rate"):
            series[name] = np.where(found, values[place], np.nan)
    tested = np.isfinite(read.eval_reward)
    at_step = np.interp(read.eval_step[tested], read.step[place[found]], pilot.step[found])
    return pilot.with_updates(
        series=series, eval_step=at_step, eval_reward=read.eval_reward[tested]
    )


def _trained() -> Iterator[Finished]:
    for name, members in runs_of_tasks().items():
        dead = dead_from_the_start(members, 0.0)
        at = f"{OWN} {members[0].model}: {name.removeprefix(OWN).strip('/')}"
        yield from (finished(run, at, is_dead=run.id in dead) for run in members)
    for name, members in runs_of_cells().items():
        place = name.removeprefix(OWN).strip("/")
        by_length = defaultdict(list)
        for run in members:
            if run.step[-1] >= LEAST_STEPS_OF_CELLS:
                by_length[float(run.step[-1])].append(run)
        for alike in by_length.values():
            dead = dead_from_the_start(alike, 0.0)
            at = f"{OWN} {alike[0].model}: cells/{place.split('/')[1]}"
            yield from (finished(run, at, is_dead=run.id in dead) for run in alike)


def finished(
    run: PilotRun,
    repository: str,
    *,
    is_public: bool = False,
    is_lora: bool | None = None,
    is_dead: bool = False,  # from its first updates, as its siblings show
) -> Finished:
    """Judge a run as `diagnose` does, and take its signals at each share at which it lives."""
    floor = 0.0 if run.reward_floor is None else run.reward_floor
    run = run.with_updates(reward_floor=floor)
    verdict, end = Collapse.of(run, floor), float(run.step[-1])
    looks = {}
    for share in sorted({*LOOKS, *SHARES}):
        part = run.first_part(share)
        if np.isfinite(part.reward).sum() < PilotRun.LEAST_REWARDS:
            continue
        if not (is_dead or find_final_fall(part.step, part.reward, floor)[0].unstable):
            looks[share] = signals_of(part, end)
    own = run.hyperparameters
    return Finished(
        run,
        repository,
        is_public,
        own.adapter == "lora" if is_lora is None else is_lora,
        own.learning_rate is not None
        and not any(line.startswith("learning_rate =") for line in run.assumptions),
        verdict.unstable or is_dead,
        0.0 if is_dead else verdict.onset_step / end if verdict.onset_step is not None else None,
        find_passing_fall(run.step, run.reward, floor) is not None and not verdict.unstable,
        looks,
    )
