"""Which files to read, and which trainer states are checkpoints of one run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from advisor.errors import InputError
from advisor.runs.raw_run import RawRun

CHECKPOINT = re.compile(r"checkpoint-\d+(?:__)?")

LEVELS_ABOVE = 2
"""Folders above a log given by name in which its sidecar is sought (checkpoint, run, sweep)."""


@dataclass(frozen=True)
class Found:
    """A file to read.

    Attributes
    ----------
    path, root : Path
        The file, and the folder from which its name counts.
    is_named : bool
        Given by name, rather than found in a folder.
    sidecar_top : Path
        Highest folder in which a sidecar is sought.
    """

    path: Path
    root: Path
    is_named: bool
    sidecar_top: Path


def find_files(paths: Iterable[Path]) -> list[Found]:
    """Files named, and all files below the folders named, sorted, each once.

    Raises
    ------
    InputError
        A path does not exist.
    """
    found: dict[Path, Found] = {}
    for path in paths:
        try:
            is_there = path.exists()
        except OSError:  # a name longer than the system allows
            is_there = False
        if is_there and path.is_dir():
            below = (p for p in path.rglob("*") if not _is_hidden(p.relative_to(path)))
            for file in sorted(p for p in below if p.is_file()):
                found.setdefault(file.resolve(), Found(file, path, False, path))
        elif is_there:
            top = path.resolve().parent
            for _ in range(LEVELS_ABOVE):
                top = top.parent
            found[path.resolve()] = Found(path, path.parent, True, top)
        else:
            raise InputError(
                "there is no such file or folder",
                path=path,
                advice="Check the path, relative to the folder you are in",
            )
    return list(found.values())


def fold_checkpoints(runs: Sequence[tuple[Found, RawRun]]) -> list[tuple[Found, list[RawRun]]]:
    """Keep of each run's nested checkpoints the longest.

    Parameters
    ----------
    runs : sequence of (Found, RawRun) pairs

    Returns
    -------
    kept : list of (Found, list of RawRun) pairs
        The longest run first, then the prefixes of it that were folded in.
    """
    families: dict[str, list[tuple[Found, RawRun]]] = {}
    kept: list[tuple[Found, list[RawRun]]] = []
    for found, raw in runs:
        if found.path.name.endswith("trainer_state.json"):
            families.setdefault(_family(found.path), []).append((found, raw))
        else:
            kept.append((found, [raw]))
    for members in families.values():
        # Of two equally long ones the final file, which lies higher, is the run's own.
        members.sort(key=lambda member: (-member[1].step.size, len(member[0].path.parts)))
        whole: list[tuple[Found, list[RawRun]]] = []
        for found, raw in members:
            longer = next((runs for _, runs in whole if _is_prefix(raw, runs[0])), None)
            if longer is None:
                whole.append((found, [raw]))
            else:
                longer.append(raw)
        kept += whole
    # Sorting is stable, so the runs of one file keep their order.
    return sorted(kept, key=lambda item: item[0].path.as_posix())


def _is_hidden(relative: Path) -> bool:
    return any(part.startswith(".") for part in relative.parts)


def _family(path: Path) -> str:
    """Path without its checkpoint part: the same for all checkpoints of one run."""
    parts = [CHECKPOINT.sub("", part) for part in path.resolve().parts]
    return "/".join(part for part in parts if part)


def _is_prefix(short: RawRun, whole: RawRun) -> bool:
    size = short.step.size
    rewards = short.series["reward"], whole.series["reward"][:size]
    return np.array_equal(short.step, whole.step[:size]) and np.array_equal(
        *rewards, equal_nan=True
    )
