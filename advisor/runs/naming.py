"""What to call the run of a file: as short as is unique."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from advisor.runs.find import CHECKPOINT, Found


def name_files(files: Sequence[Found]) -> list[str]:
    """Name the run of each file, counted from the folder that was read.

    Parameters
    ----------
    files : sequence of Found
        Each another file.

    Returns
    -------
    names : list of str
        ``"s_lr3e-4"`` for ``s_lr3e-4/trainer_state.json`` (and for the checkpoints in it);
        ``"a/metrics"`` for ``a/metrics.jsonl``.
    """
    parts = [_parts(found) for found in files]
    # Checkpoints of one run that are no prefixes of each other keep their own folder's name.
    shared = Counter(parts)
    parts = [_parts(f, keep=shared[p] > 1) for f, p in zip(files, parts, strict=True)]
    depth = []
    for found, names in zip(files, parts, strict=True):
        below = len(found.path.relative_to(found.root).parts)
        depth.append(max(1, below - (len(found.path.resolve().parts) - 1 - len(names))))
    while True:
        found_names = ["/".join(p[-n:]) for p, n in zip(parts, depth, strict=True)]
        count = Counter(found_names)
        longer = [i for i, n in enumerate(found_names) if count[n] > 1 and depth[i] < len(parts[i])]
        if not longer:
            return found_names
        for i in longer:
            depth[i] += 1


def _parts(found: Found, keep: bool = False) -> tuple[str, ...]:
    """Parts of the whole path that name a run; the last is its own name."""
    path = found.path.resolve()
    if path.name != "trainer_state.json":
        return path.with_suffix("").parts[1:]
    folders = path.parent.parts[1:]
    while not keep and len(folders) > 1 and CHECKPOINT.fullmatch(folders[-1]):
        folders = folders[:-1]
    return folders
