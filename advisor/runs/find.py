"""Which files to read, what to call their runs, and which are checkpoints of one run."""

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
    sidecar_root : Path
        Highest folder in which a sidecar is sought.
    """

    path: Path
    root: Path
    is_named: bool
    sidecar_root: Path


def find_files(paths: Iterable[Path]) -> list[Found]:
    """Files named, and all files below the folders named, sorted, each once.

    Raises
    ------
    InputError
        A path does not exist.
    """
    found: dict[Path, Found] = {}
    for path in paths:
        if path.is_dir():
            below = (p for p in path.rglob("*") if not _is_hidden(p.relative_to(path)))
            for file in sorted(p for p in below if p.is_file()):
                found.setdefault(file.resolve(), Found(file, path, False, path))
        elif path.exists():
            folder = path.parent
            above = folder.resolve()
            for _ in range(LEVELS_ABOVE):
                above = above.parent
            found[path.resolve()] = Found(path, folder, True, above)
        else:
            raise InputError(
                "there is no such file or folder", path=path, advice="Check the path"
            )
    return list(found.values())


def _is_hidden(relative: Path) -> bool:
    return any(part.startswith(".") for part in relative.parts)


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
    singles: list[tuple[Found, list[RawRun]]] = []
    for found, raw in runs:
        if "trainer_state" in found.path.name:
            families.setdefault(family(found.path), []).append((found, raw))
        else:
            singles.append((found, [raw]))
    for members in families.values():
        # Of two equally long ones the final file, which lies higher, is the run's own.
        members.sort(key=lambda m: (-m[1].step.size, len(m[0].path.parts)))
        kept: list[tuple[Found, list[RawRun]]] = []
        for found, raw in members:
            whole = next((k for k in kept if _is_prefix(raw, k[1][0])), None)
            if whole is None:
                kept.append((found, [raw]))
            else:
                whole[1].append(raw)
        singles += kept
    return sorted(singles, key=lambda item: item[0].path.as_posix())


def family(path: Path) -> str:
    """Path without its checkpoint part: the same for all checkpoints of one run."""
    parts = [CHECKPOINT.sub("", part) for part in path.parts]
    return "/".join(part for part in parts if part)


def _is_prefix(short: RawRun, whole: RawRun) -> bool:
    size = short.step.size
    return bool(
        np.array_equal(short.step, whole.step[:size])
        and np.array_equal(
            short.series["reward"], whole.series["reward"][:size], equal_nan=True
        )
    )


def name_files(files: Sequence[Found]) -> list[str]:
    """Name for each file's run: as short as is unique, counted from the folder that was read.

    Parameters
    ----------
    files : sequence of Found
        Each another file.

    Returns
    -------
    names : list of str
        ``"s_lr3e-4"`` for ``s_lr3e-4/trainer_state.json``; ``"a/metrics"`` for
        ``a/metrics.jsonl``.
    """
    whole = [_parts(found) for found in files]
    depth = []
    for found, parts in zip(files, whole, strict=True):
        relative = len(found.path.relative_to(found.root).parts)
        dropped = len(found.path.resolve().parts) - len(parts)
        depth.append(max(1, relative - dropped))
    while True:
        names = ["/".join(parts[-n:]) for parts, n in zip(whole, depth, strict=True)]
        doubled = [i for i, name in enumerate(names) if names.count(name) > 1]
        longer = [i for i in doubled if depth[i] < len(whole[i])]
        if not longer:
            break
        for i in longer:
            depth[i] += 1
    # Checkpoints that are no prefixes of each other share a name: tell them apart in full.
    return [
        found.path.with_suffix("").as_posix() if names.count(name) > 1 else name
        for found, name in zip(files, names, strict=True)
    ]


def _parts(found: Found) -> tuple[str, ...]:
    path = found.path.resolve()
    if path.name != "trainer_state.json":
        return path.with_suffix("").parts[1:]
    folders = path.parent.parts[1:]
    while len(folders) > 1 and CHECKPOINT.fullmatch(folders[-1]):
        folders = folders[:-1]
    return folders
