"""What to call the run of a file: as short as is unique."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from advisor.logs.trackers.checkpoints import CHECKPOINT


class Place(NamedTuple):
    """What a run is named after: a file or a folder, and the folder from which its name counts."""

    path: Path
    root: Path
    is_folder: bool = False


def name_places(places: Sequence[Place]) -> list[str]:
    """Name the run of each place, counted from the folder that was read.

    Parameters
    ----------
    places : sequence of Place
        Each another file or folder.

    Returns
    -------
    names : list of str
        ``"s_lr3e-4"`` for ``s_lr3e-4/trainer_state.json`` (and for the checkpoints in it);
        ``"a/metrics"`` for ``a/metrics.jsonl``; with its ending where only that tells two apart.
    """
    whole = [place.path.resolve() for place in places]
    parts = [_parts(path, place.is_folder) for path, place in zip(whole, places, strict=True)]
    # Checkpoints of one run that are no prefixes of each other keep their own folder's name, and
    # files that differ in their endings alone keep these.
    shared = Counter(parts)
    parts = [
        _parts(path, place.is_folder, keep=shared[names] > 1)
        for path, place, names in zip(whole, places, parts, strict=True)
    ]
    depth = []
    for path, place, names in zip(whole, places, parts, strict=True):
        root = place.root.resolve()
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


def _parts(path: Path, is_folder: bool, keep: bool = False) -> tuple[str, ...]:
    """Parts of the whole path that name a run; the last is its own name."""
    if is_folder:
        return path.parts[1:]
    if path.name != "trainer_state.json":
        plain = path if path.suffix != ".gz" else path.with_suffix("")
        return (path if keep else plain.with_suffix("")).parts[1:]
    folders = path.parent.parts[1:]
    while not keep and len(folders) > 1 and CHECKPOINT.fullmatch(folders[-1]):
        folders = folders[:-1]
    return folders
