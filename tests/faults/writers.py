"""Two writers of one place, begun together, and a reader who looks on."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from commands import Stage, settings_in

KEPT = "Nothing is lost: it is in "
"""Said where the other writer does not end in a minute, on a machine that others use."""


def run(rounds: int, seed: int) -> dict[str, Any]:
    """Let two writers write one study, that many times, and load it meanwhile."""
    stage, chance = Stage(), random.Random(seed)
    lost: list[str] = []
    wrong: list[str] = []
    reads = unread = 0
    last = {1: 0, 2: 0}
    with tempfile.TemporaryDirectory() as place:
        for number in range(rounds):
            folder = Path(place) / str(number)
            folder.mkdir()
            if number % 2:
                stage.study(folder / "study", 1)
            command = ("advise", stage.logs, "--out", "study", "--json", "--quiet")
            first = stage.start(command, folder, seed=1)
            time.sleep(chance.choice((0.0, 0.0, 0.05, 0.3)))
            second = stage.start(command, folder, seed=2)
            if number % 2:
                for _ in range(40):
                    reads += 1
                    unread += stage.seed_of(folder / "study") is None
                    time.sleep(0.01)
            for name, child in (("first", first), ("second", second)):
                ended = child.ended()
                if ended.wrong:
                    wrong.append(f"{name}: {ended.wrong}")
                is_kept = ended.code == 0 or KEPT in ended.said
                if not is_kept or settings_in(ended.out) is None:
                    lost.append(f"{name}: code {ended.code}, {ended.said[-200:]}")
            stands = stage.seed_of(folder / "study")
            if stands is None:
                lost.append("the study that stands is none of the two")
            else:
                last[stands] += 1
            left = sorted(path.name for path in folder.iterdir() if path.name != "study")
            if left:
                wrong.append(f"left behind: {left}")
            shutil.rmtree(folder)
    return {
        "rounds": rounds,
        "the first stands": last[1],
        "the second stands": last[2],
        "answers lost": len(lost),
        "tracebacks, crashes, hangs, leavings": len(wrong),
        "loads meanwhile": reads,
        "loads that failed": unread,
        "examples": sorted({*lost, *wrong})[:20],
    }
