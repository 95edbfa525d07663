"""Full disks: small file systems that fill up before a command or while it writes."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from commands import Stage, settings_in

ROOM = 16 << 20
"""What the check before work asks for (`advisor.common.saving.ROOM`)."""


@contextmanager
def small_disk(place: Path, size: int) -> Iterator[Path]:
    """A file system of its own in memory, of some bytes; needs the right to mount."""
    place.mkdir()
    options = f"size={size}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def can_mount() -> bool:
    """Whether small disks can be had here."""
    with tempfile.TemporaryDirectory() as place:
        try:
            with small_disk(Path(place) / "try", 1 << 20):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False


def run(disks: int, seed: int) -> dict[str, Any]:
    """Run commands on that many disks.

    In turn a disk that is too small from the start, and one on which the check before work finds
    room that is gone when the result is written: of more and more bytes, so that each file of a
    study is the one that does not fit.
    """
    stage = Stage()
    counts: Counter[str] = Counter()
    lost: list[str] = []
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        stage.study(place / "older", 1)
        size = sum(path.stat().st_size for path in (place / "older").rglob("*") if path.is_file())
        for number in range(disks):
            kind = ("too small", "fills up", "fills up, fit", "fills up, report")[number % 4]
            share = (1 + number // 4) / (2 + disks // 4)
            here = place / f"{number}"
            here.mkdir()
            free = int(share * size) if kind != "too small" else ROOM // 2
            with small_disk(here / "disk", 2 * size + (64 << 20)) as disk:
                shutil.copytree(place / "older", disk / "study")
                said = _on(stage, kind, disk, here, free)
            counts[kind] += 1
            lost += [f"{kind}, {free} bytes free: {one}" for one in said if one.startswith("lost")]
            wrong += [f"{kind}, {free} bytes free: {one}" for one in said if one[:4] != "lost"]
            shutil.rmtree(here, ignore_errors=True)
    return {
        "full disks": disks,
        "kinds": dict(sorted(counts.items())),
        "answers or studies lost": len(lost),
        "tracebacks, crashes, hangs": len(wrong),
        "examples": sorted({*lost, *wrong})[:20],
    }


def _on(stage: Stage, kind: str, disk: Path, here: Path, free: int) -> list[str]:
    """What went wrong on one disk; what is lost begins with that word."""
    from advisor.common import saving

    found = []
    commands = {
        "fills up, fit": ("fit", stage.logs, "--out", disk / "posterior.nc", "--quiet"),
        "fills up, report": ("report", disk / "study", "--quiet"),
    }
    advise = ("advise", stage.logs, "--out", disk / "study", "--json", "--quiet")
    command = commands.get(kind, advise)
    room = saving.ROOM
    if kind == "too small":
        _fill(disk, free)
    else:
        # The check passes; the disk is full when it counts, as one is that others write to.
        saving.ROOM = 1
        _fill(disk, free)
    try:
        ended = stage.run(command, here, seed=2)
    finally:
        saving.ROOM = room
    if ended.wrong:
        found.append(ended.wrong)
    if stage.seed_of(disk / "study") is None:
        found.append("lost: the study on the disk is whole neither the older nor the newer")
    if kind == "too small":
        if ended.code != 2 or ended.out:
            found.append(f"lost: work was begun, code {ended.code}: {ended.said[-200:]}")
    elif ended.code not in (0, 2):
        found.append(f"code {ended.code}: {ended.said[-200:]}")
    elif ended.code == 2 and command is advise:
        if settings_in(ended.out) is None:
            found.append(f"lost: no answer was printed: {ended.said[-200:]}")
        kept = [p for p in here.glob("grpo-advisor-kept-*/*") if stage.seed_of(p) == 2]
        if not kept:
            found.append(f"lost: no study was kept: {ended.said[-200:]}")
    elif ended.code == 2 and kind.endswith("fit"):
        if not list(here.glob("grpo-advisor-kept-*/posterior.nc")):
            found.append(f"lost: no posterior was kept: {ended.said[-200:]}")
    elif ended.code == 2 and not (disk / "study" / "report.html").read_text().endswith("</html>"):
        found.append("lost: the page")
    return found


def _fill(disk: Path, free: int) -> None:
    """Leave that many bytes."""
    left = shutil.disk_usage(disk).free
    with (disk / "fill").open("wb") as file:
        block = b"\1" * (1 << 20)
        for _ in range(max(0, left - free) // len(block)):
            file.write(block)
        file.write(b"\1" * (max(0, left - free) % len(block)))
