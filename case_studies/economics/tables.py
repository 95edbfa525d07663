"""Tables of finished runs as a world in which advice can be tried: pilots, candidates, outcomes."""

from __future__ import annotations

import gzip
import json
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from advisor.diagnosis.collapse import dead_from_the_start, find_any_fall
from advisor.forecast import Target
from advisor.runs import PilotRun, Settings, read_runs

FLOOR = 0.0
"""Lowest reward of every table."""


@dataclass(frozen=True)
class World:
    """Finished runs of one task and size, and their rows, in the order of the file.

    Rows without an importance ratio are left out.
    """

    name: str
    runs: tuple[PilotRun, ...]
    rows: tuple[dict, ...]

    @property
    def target(self) -> Target:
        """Model and task of every run."""
        run = self.runs[0]
        return Target(str(run.task), str(run.model), float(run.parameters or 0))

    @property
    def steps(self) -> int:
        """Optimizer steps of a finished run."""
        return int(max(run.step[-1] for run in self.runs))

    def settings(self, index: int) -> Settings:
        """Settings of a run, completed."""
        completed = self.runs[index].hyperparameters.completed()
        return completed.planned_over(self.steps)

    def has_collapsed(self, index: int, steps: int) -> bool:
        """Whether a run collapsed within so many steps, as a fit that saw it would say."""
        run = self.runs[index]
        seen = run.step <= steps
        if run.id in self._born_dead:
            return True
        return find_any_fall(run.step[seen], run.reward[seen], FLOOR).unstable

    @cached_property
    def _born_dead(self) -> set[str]:
        """Ids of runs that were dead when their log began."""
        return dead_from_the_start(self.runs, FLOOR)

    def pilot(self, index: int, cut: int) -> PilotRun:
        """First steps of a run."""
        return self.runs[index].first_part(cut / self.steps)


def read_worlds(paths: list[Path]) -> list[World]:
    """Read tables; a file with several worlds, tasks or sizes becomes several worlds.

    Parameters
    ----------
    paths : list of Path
        JSON lines in the format of ``tiny_transformer/tables/README.md``, packed with gzip or not.
    """
    with tempfile.TemporaryDirectory() as folder:
        return [world for path in paths for world in _read(_plain(path, Path(folder)))]


def lines_of(path: Path) -> list[dict[str, Any]]:
    """JSON lines of a packed file."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def _plain(path: Path, folder: Path) -> Path:
    """The table itself, unpacked into a folder where it is packed."""
    if path.suffix != ".gz":
        return path
    at = folder / path.stem
    at.write_bytes(gzip.decompress(path.read_bytes()))
    return at


def _read(path: Path) -> list[World]:
    """Worlds of one table."""
    worlds = []
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    runs = read_runs([path])
    if len(rows) != len(runs):
        raise SystemExit(f"{path}: {len(rows)} rows, but {len(runs)} runs were read")
    groups: dict[tuple[str, str, str], list[int]] = {}
    for index, row in enumerate(rows):
        if row.get("use_is", True):
            key = str(row.get("world", "")), str(row["task"]), str(row["size"])
            groups.setdefault(key, []).append(index)
    for (known, task, size), members in groups.items():
        name = known or (path.stem if len(groups) == 1 else f"{path.stem} {task} {size}")
        worlds.append(
            World(
                name,
                tuple(runs[i] for i in members),
                tuple(rows[i] for i in members),
            )
        )
    return worlds
