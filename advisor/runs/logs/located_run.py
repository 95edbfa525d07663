"""A run on its way from file to `PilotRun`: what its log holds, which files, and its name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import Field

from advisor.runs.arrays import FloatArray
from advisor.runs.logfiles.logged import LogCandidate, Reader
from advisor.runs.logs.trackers import wandb
from advisor.runs.pilot_run import PilotRun
from advisor.runs.trainers import Derived

CHECKPOINT = re.compile(r"checkpoint-\d+(?:__)?")


class RawRun(PilotRun):
    """One run as its log alone tells it, made without checks (``model_construct``)."""

    id: str = ""
    label: str | None = None
    has_own_id: bool = False
    rate_step: FloatArray = Field(default_factory=lambda: np.zeros(0))
    rate: FloatArray = Field(default_factory=lambda: np.zeros(0))
    planned_steps: int | None = None
    # Optimizer steps per row where the log states them; else rows stand ``logging_steps`` apart.
    stated_spacing: int | None = None
    observed: Derived = Field(default_factory=Derived)

    @property
    def rows(self) -> int:
        """Rows of both kinds."""
        return int(self.step.size + self.eval_step.size)

    def on_optimizer_steps(self, interval: int) -> RawRun:
        """The same of what only a log tells."""
        planned = None if self.planned_steps is None else self.planned_steps * interval
        own = {"rate_step": self.rate_step * interval, "planned_steps": planned}
        return super().on_optimizer_steps(interval).model_copy(update=own)


class LocatedRun(NamedTuple):
    """What a file told of a run, what config files state of it, and who read it."""

    candidate: LogCandidate
    reader: Reader
    raw: RawRun
    stated: Derived
    is_own_file: bool = False  # Of several runs that were read together: it is named after its file


class Place(NamedTuple):
    """What a run is named after: a file or a folder, and the folder from which its name counts."""

    path: Path
    root: Path
    is_folder: bool = False


def fold_checkpoints(runs: Sequence[LocatedRun]) -> list[tuple[LocatedRun, list[LocatedRun]]]:
    """Runs sorted by path, each with the checkpoints (prefixes of it) that were folded in."""
    families: dict[str, list[LocatedRun]] = {}
    kept: list[tuple[LocatedRun, list[LocatedRun]]] = []
    runs, folded = _one_of_wandb(runs)
    for run in runs:
        if "trainer_state" in run.candidate.log.name and not run.raw.is_eval_only:
            families.setdefault(family(run.candidate.path), []).append(run)
        else:
            kept.append((run, []))
    for members in families.values():
        # Of two equally long ones the final file, which lies higher, is the run's own.
        members.sort(key=lambda run: (-run.raw.step.size, len(run.candidate.path.parts)))
        whole: list[tuple[LocatedRun, list[LocatedRun]]] = []
        for run in members:
            longer = next((short for long, short in whole if _is_prefix(run.raw, long.raw)), None)
            if longer is None:
                whole.append((run, []))
            else:
                longer.append(run)
        kept += whole
    kept = [(run, [*shorter, *folded.get(run.candidate.path, ())]) for run, shorter in kept]
    # Sorting is stable, so the runs of one file keep their order.
    return sorted(kept, key=lambda item: item[0].candidate.path.as_posix())


def _one_of_wandb(
    runs: Sequence[LocatedRun],
) -> tuple[list[LocatedRun], dict[Path, list[LocatedRun]]]:
    """Runs with the longer of each W&B run's own file and its console, and the others by file."""
    found = ((run.candidate, run) for run in runs)
    consoles = {own.path: run for own, run in found if own.log.name == wandb.CONSOLE[-1]}
    folded: dict[Path, list[LocatedRun]] = {}
    dropped: set[Path] = set()
    for store in (run for run in runs if run.reader is wandb.STORE):
        console = consoles.get(wandb.console_of(store.candidate.path))
        if console is not None:
            longer, other = sorted((store, console), key=lambda run: -run.raw.rows)
            dropped.add(other.candidate.path)
            folded.setdefault(longer.candidate.path, []).append(other)
    return [run for run in runs if run.candidate.path not in dropped], folded


def family(path: Path) -> str:
    """Path without its checkpoint part: the same for all checkpoints of one run."""
    parts = [CHECKPOINT.sub("", part) for part in path.resolve().parts]
    return "/".join(part for part in parts if part)


def _is_prefix(short: RawRun, whole: RawRun) -> bool:
    size = short.step.size
    rewards = short.series["reward"], whole.series["reward"][:size]
    is_same = np.array_equal(*rewards, equal_nan=True)
    return is_same and np.array_equal(short.step, whole.step[:size])


def name_places(places: Sequence[Place]) -> list[str]:
    """Name the run of each place, counted from the folder that was read."""
    parts = [_parts(place) for place in places]
    # Checkpoints of one run that are no prefixes of each other keep their own folder's name, and
    # files that differ in their endings alone keep these.
    shared = Counter(parts)
    parts = [_parts(place, keep=shared[own] > 1) for place, own in zip(places, parts, strict=True)]
    depth = []
    for place, names in zip(places, parts, strict=True):
        path, root = place.path.resolve(), place.root.resolve()
        below = len(path.relative_to(root).parts) if path.is_relative_to(root) else 1
        depth.append(max(1, below - (len(path.parts) - 1 - len(names))))
    while True:
        found = ["/".join(p[-n:]) for p, n in zip(parts, depth, strict=True)]
        count = Counter(found)
        longer = [i for i, n in enumerate(found) if count[n] > 1 and depth[i] < len(parts[i])]
        if not longer:
            return found
        for i in longer:
            depth[i] += 1


def _parts(place: Place, keep: bool = False) -> tuple[str, ...]:
    """Parts of the whole path that name a run; the last is its own name."""
    path = place.path.resolve()
    if place.is_folder:
        return path.parts[1:]
    if path.name != "trainer_state.json":
        plain = path if path.suffix != ".gz" else path.with_suffix("")
        return (path if keep else plain.with_suffix("")).parts[1:]
    folders = path.parent.parts[1:]
    while not keep and len(folders) > 1 and CHECKPOINT.fullmatch(folders[-1]):
        folders = folders[:-1]
    return folders
