"""Which files tell of one run: trainer states of its checkpoints, W&B's file and the console."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from advisor.logs.rows.raw_run import RawRun
from advisor.logs.settings.located_run import Piece
from advisor.logs.trackers import wandb_store

CONSOLE = wandb_store.CONSOLE[-1]
CHECKPOINT = re.compile(r"checkpoint-\d+(?:__)?")


def fold_checkpoints(pieces: Sequence[Piece]) -> list[tuple[Piece, list[Piece]]]:
    """Keep of each run's nested checkpoints the longest.

    Parameters
    ----------
    pieces : sequence of Piece

    Returns
    -------
    kept : list of (Piece, list of Piece) pairs
        Sorted by path; each with the prefixes of it that were folded in.
    """
    families: dict[str, list[Piece]] = {}
    kept: list[tuple[Piece, list[Piece]]] = []
    pieces, folded = _one_of_wandb(pieces)
    for piece in pieces:
        if "trainer_state" in piece.found.log.name and not piece.raw.is_eval_only:
            families.setdefault(family(piece.found.path), []).append(piece)
        else:
            kept.append((piece, []))
    for members in families.values():
        # Of two equally long ones the final file, which lies higher, is the run's own.
        members.sort(key=lambda piece: (-piece.raw.step.size, len(piece.found.path.parts)))
        whole: list[tuple[Piece, list[Piece]]] = []
        for piece in members:
            longer = next((short for long, short in whole if _is_prefix(piece.raw, long.raw)), None)
            if longer is None:
                whole.append((piece, []))
            else:
                longer.append(piece)
        kept += whole
    kept = [(piece, [*shorter, *folded.get(piece.found.path, ())]) for piece, shorter in kept]
    # Sorting is stable, so the runs of one file keep their order.
    return sorted(kept, key=lambda item: item[0].found.path.as_posix())


def _one_of_wandb(pieces: Sequence[Piece]) -> tuple[list[Piece], dict[Path, list[Piece]]]:
    """Pieces with one file of each W&B run: its own or its console, and the others, by file.

    W&B cuts long lines of the console, which then lacks the rows that came with an evaluation; of a
    run that was killed its own file may lack the last rows.
    """
    consoles = {piece.found.path: piece for piece in pieces if piece.found.log.name == CONSOLE}
    dropped: set[Path] = set()
    folded: dict[Path, list[Piece]] = {}
    for store in pieces:
        if store.reader is wandb_store.READER:
            console = consoles.get(wandb_store.console_of(store.found.path))
            if console is not None:
                longer, other = store, console
                if _rows(console.raw) > _rows(store.raw):
                    longer, other = console, store
                dropped.add(other.found.path)
                folded.setdefault(longer.found.path, []).append(other)
    return [piece for piece in pieces if piece.found.path not in dropped], folded


def _rows(run: RawRun) -> int:
    return int(run.step.size + run.eval_step.size)


def family(path: Path) -> str:
    """Path without its checkpoint part: the same for all checkpoints of one run."""
    parts = [CHECKPOINT.sub("", part) for part in path.resolve().parts]
    return "/".join(part for part in parts if part)


def _is_prefix(short: RawRun, whole: RawRun) -> bool:
    size = short.step.size
    rewards = short.series["reward"], whole.series["reward"][:size]
    return np.array_equal(short.step, whole.step[:size]) and np.array_equal(
        *rewards, equal_nan=True
    )
