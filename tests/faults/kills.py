"""Commands that write, killed at random moments and at each rename: what stood still stands."""

from __future__ import annotations

import random
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands import Stage

RENAMES = 14
"""A command has fewer renames, links and removals than this."""


@dataclass(frozen=True)
class Target:
    """A command, what stood before, and whether what stands now is whole."""

    name: str
    arguments: tuple[object, ...]
    is_whole: Callable[[Stage, Path], bool]


def run(kills: int, seed: int) -> dict[str, Any]:
    """Kill that many commands: a third at renames, the rest at random moments."""
    stage, chance = Stage(), random.Random(seed)
    targets = _targets(stage)
    counts: Counter[str] = Counter()
    lost: list[str] = []
    wrong: list[str] = []
    left = left_of_files = killed = tried = 0
    with tempfile.TemporaryDirectory() as place:
        durations = {one.name: _whole_run(stage, one, Path(place)) for one in targets}
        turns = [(one, at) for one in targets for at in range(1, RENAMES)]
        chance.shuffle(turns)
        while killed < kills and tried < 6 * kills:
            tried += 1
            at_rename = bool(turns) and tried % 3 == 0
            one, at = turns.pop() if at_rename else (chance.choice(targets), 0)
            folder = Path(place) / str(tried)
            _prepare(stage, folder)
            ended = stage.run(
                one.arguments,
                folder,
                seed=2,
                kill_at=at,
                kill_after=None if at_rename else chance.random() * durations[one.name],
                number=chance.choice((signal.SIGKILL, signal.SIGTERM)),
            )
            if ended.wrong:
                wrong.append(f"{one.name}: {ended.wrong}")
            if ended.code not in (-signal.SIGKILL, 143):
                shutil.rmtree(folder)
                continue  # it was done before
            killed += 1
            counts[f"{one.name}, {'at a rename' if at_rename else 'at random'}"] += 1
            if not one.is_whole(stage, folder):
                lost.append(f"{one.name}: {sorted(p.name for p in folder.iterdir())}")
            again = stage.run(one.arguments, folder, seed=2)
            if again.wrong or not one.is_whole(stage, folder):
                lost.append(f"{one.name}, again: {again.said[-200:]}")
            # Of a folder the next writer sweeps them; that of a file nobody reads, and it stays.
            drafts = [p for p in folder.rglob(".*") if p.name.endswith((".draft", ".aside"))]
            left += sum(p.is_dir() for p in drafts)
            left_of_files += sum(p.is_file() for p in drafts)
            shutil.rmtree(folder)
    return {
        "kills": killed,
        "commands": dict(sorted(counts.items())),
        "studies or files lost": len(lost),
        "drafts left after the next run": left,
        "drafts of single files left": left_of_files,
        "tracebacks, crashes, hangs": len(wrong),
        "examples": sorted({*lost, *wrong})[:20],
    }


def _targets(stage: Stage) -> list[Target]:
    from advisor.errors import AdvisorError
    from advisor.model import Posterior

    def study(stage: Stage, folder: Path) -> bool:
        return stage.seed_of(folder / "study") in (1, 2)

    def page(stage: Stage, folder: Path) -> bool:
        text = (folder / "study" / "report.html").read_text(encoding="utf-8")
        return study(stage, folder) and text.rstrip().endswith("</html>")

    def posterior(stage: Stage, folder: Path) -> bool:
        try:
            Posterior.load(folder / "posterior.nc")
        except AdvisorError:
            return False
        return True

    def config(stage: Stage, folder: Path) -> bool:
        """A file that must not exist yet: whole, or not there."""
        path = folder / "grpo.yaml"
        if not path.exists():
            return True
        whole = path.read_text().startswith("#") and "learning_rate" in path.read_text()
        path.unlink()
        return whole and study(stage, folder)

    logs = stage.logs
    return [
        Target("advise", ("advise", logs, "--out", "study", "--json", "--quiet"), study),
        Target("fit", ("fit", logs, "--out", "posterior.nc", "--quiet"), posterior),
        Target("report", ("report", "study", "--quiet"), page),
        Target("export", ("export", "study", "--to", "trl", "--out", "grpo.yaml"), config),
    ]


def _prepare(stage: Stage, folder: Path) -> None:
    """A folder with an older study and posterior."""
    whole = folder.parent / "whole"
    if not whole.exists():
        whole.mkdir()
        stage.study(whole / "study", 1)
        stage.posteriors[1].save(whole / "posterior.nc")
    shutil.copytree(whole, folder)


def _whole_run(stage: Stage, one: Target, place: Path) -> float:
    """Seconds that a command takes where nothing happens to it; it must do its work."""
    folder = place / f"whole run of {one.name}"
    _prepare(stage, folder)
    ended = stage.run(one.arguments, folder, seed=2)
    assert ended.code == 0, ended
    assert one.is_whole(stage, folder), one.name
    if one.name == "advise":
        assert stage.seed_of(folder / "study") == 2
    shutil.rmtree(folder)
    return ended.seconds
