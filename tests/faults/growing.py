"""Trainers that write a log while `inspect` and what `watch` follows it with read it."""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from commands import Stage

from advisor.runs import PilotRun

ROWS = 30
REWARDS = [round(0.2 + 0.017 * n + 0.0013 * (n % 7), 6) for n in range(ROWS)]


def run(rounds: int, seed: int) -> dict[str, Any]:
    """Read a log again and again while one trainer, or two, write it; that many times."""
    stage, chance = Stage(), random.Random(seed)
    lost: list[str] = []
    wrong: list[str] = []
    looks = refused = 0
    with tempfile.TemporaryDirectory() as place:
        for number in range(rounds):
            kind = KINDS[number % len(KINDS)]
            path = Path(place) / str(number) / kind.name
            path.parent.mkdir()
            path.touch()
            writers = {_trainer(kind, path, chance.random()) for _ in range(kind.writers)}
            follower = _follower(path)
            asked = stage.start(("inspect", path, "--json"), path.parent)
            while writers:
                writers -= {pid for pid in writers if os.waitpid(pid, os.WNOHANG)[0]}
                written, looks = kind.written(path), looks + 1
                found = _looked(path, follower)
                wrong += [found] if isinstance(found, str) else []
                refused += found == 0
                if isinstance(found, int) and found < written and written >= PilotRun.LEAST_REWARDS:
                    lost.append(f"{kind.name}: {found} rows of {written} that stood there")
                lost += _lost(follower, kind, "while it grew")
            wrong += _misread(asked.ended(), kind)
            # A look that found the last line open, or the file half written, is followed by more.
            for _ in range(3):
                follower.growth()
            lost += _lost(follower, kind, "at its end", least=ROWS)
            ended = stage.run(("inspect", path, "--json"), path.parent)
            wrong += _misread(ended, kind)
            if kind.writers == 1 and _rows(ended.out) != ROWS:
                lost.append(f"{kind.name}: {_rows(ended.out)} of {ROWS} rows, {ended.said[-200:]}")
    return {
        "rounds": rounds,
        "looks while it was written": looks,
        "of them refused with a sentence": refused,
        "rows lost or other than written": len(lost),
        "tracebacks, crashes, hangs": len(wrong),
        "examples": sorted({*lost, *wrong})[:20],
    }


class Kind:
    """How a trainer writes its log: line by line, cut anywhere, or the whole file each time."""

    def __init__(self, name: str, line: Callable[[int], str], *, writers: int = 1) -> None:
        self.name, self.line, self.writers = name, line, writers
        self.is_whole = name.endswith("state.json")

    def text(self, rows: int) -> str:
        """The file after so many rows."""
        if self.is_whole:
            history = [{"step": n + 1, "reward": REWARDS[n]} for n in range(rows)]
            return json.dumps({"log_history": history, "logging_steps": 1, "global_step": rows})
        head = "step,reward\n" if self.name.endswith(".csv") else ""
        return head + "".join(map(self.line, range(rows)))

    def written(self, path: Path) -> int:
        """Rows that stand whole in the file; 0 where it is begun again each time."""
        lines = path.read_bytes().count(b"\n") - self.name.endswith(".csv")
        return 0 if self.is_whole or self.writers > 1 else max(lines, 0)


KINDS = (
    Kind("log.jsonl", lambda n: json.dumps({"step": n + 1, "reward": REWARDS[n]}) + "\n"),
    Kind("log.csv", lambda n: f"{n + 1},{REWARDS[n]}\n"),
    Kind("trainer_state.json", lambda n: ""),
    Kind(
        "two.jsonl", lambda n: json.dumps({"step": n + 1, "reward": REWARDS[n]}) + "\n", writers=2
    ),
)


def _trainer(kind: Kind, path: Path, seed: float) -> int:
    """Begin a process that writes the log."""
    pid = os.fork()
    if pid:
        return pid
    chance = random.Random(seed)
    try:
        if kind.is_whole:
            for rows in range(1, ROWS + 1):
                with open(path, "w") as stream:
                    for part in _cut(kind.text(rows), chance, 2):
                        stream.write(part)
                        stream.flush()
                        time.sleep(chance.choice((0.0, 0.01, 0.05)))
        else:
            with open(path, "ab", buffering=0) as stream:
                # Two of one log write whole lines, as loggers do; one may be seen within a line.
                text = kind.text(ROWS)
                lines = text.splitlines(keepends=True)
                for part in lines if kind.writers > 1 else _cut(text, chance, 2 * ROWS):
                    stream.write(part.encode())
                    time.sleep(chance.choice((0.0, 0.01, 0.05)))
    finally:
        os._exit(0)


def _cut(text: str, chance: random.Random, pieces: int) -> list[str]:
    places = sorted(chance.sample(range(1, len(text)), pieces - 1))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def _follower(path: Path) -> Any:
    from advisor.monitoring import Follower, reader

    return Follower(path, reader())


def _rows(out: str) -> int:
    try:
        return int(json.loads(out)["runs"][0]["rows"])
    except (ValueError, LookupError):
        return 0


def _looked(path: Path, follower: Any) -> int | str:
    """Rows that `inspect` finds, 0 where it says why there are none; what it raised."""
    from advisor import inspect
    from advisor.monitoring.following import signature_of

    try:
        found = inspect(path)
        # A line that stays open from one look to the next is taken as it stands: they are seconds
        # apart, and here the trainer pauses for less.
        if signature_of(path) != follower._signature:
            follower.growth()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if not found.runs and not (found.unread and found.unread[0].reason):
        return "no run and no reason"
    return int(found.runs[0].step.size) if found.runs else 0


def _misread(ended: Any, kind: Kind) -> list[str]:
    """How the command ends that must not: broken, or without its one sentence."""
    if ended.wrong or ended.code not in (0, 2, 3):
        return [f"{kind.name}: code {ended.code}, {ended.wrong}"]
    is_sentence = ended.said.startswith("Error: ") and ended.said.count("\n") == 1
    return (
        [f"{kind.name}: no sentence, {ended.said}"] if ended.code == 2 and not is_sentence else []
    )


def _lost(follower: Any, kind: Kind, when: str, least: int = 0) -> list[str]:
    """What a watch knows that is not a beginning of what was written."""
    known = follower._whole
    if kind.writers > 1:
        return []
    if known is None:
        return [f"{kind.name} {when}: nothing was read"] if least else []
    rows = known.step.size
    same = np.array_equal(known.reward, REWARDS[:rows]) and known.step[-1] == rows
    if rows >= least and same:
        return []
    return [f"{kind.name} {when}: {rows} rows, last {known.step[-1:]}, {known.reward[-2:]}"]
