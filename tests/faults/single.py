"""Whole commands, each a process of its own, killed by SIGKILL at random moments of real work.

Nothing is made up: they read, sample, search and write. What stood before must stand after, byte
for byte or as a whole newer one, and the same command must then do its work.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROWS = 60
AGAIN = 10
"""After every so many kills of a command it is run to its end."""


def run(kills: int, seed: int) -> dict[str, Any]:
    """Kill each command in turn."""
    from advisor.errors import StudyError
    from advisor.study import Study

    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    lost: list[str] = []
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        commands = _made(place)
        seconds = {name: _timed(name, each, place) for name, each in commands.items()}
        before = _digests(place / "logs") | _digests(place / "plan")
        study = _digests(place / "study")
        killed = tried = 0
        while killed < kills and tried < 3 * kills:
            name = [*commands][tried % len(commands)]
            tried += 1
            said = _ended(commands[name], place, after=chance.random() * seconds[name])
            killed += said.returncode == -signal.SIGKILL
            counts[name] += said.returncode == -signal.SIGKILL
            if "Traceback" in said.stderr:
                wrong.append(f"{name}: {said.stderr[-300:]}")
            if _digests(place / "logs") | _digests(place / "plan") != before:
                lost.append(f"{name}: a log or the plan is another")
            try:
                Study.load(place / "study")
            except StudyError as error:
                lost.append(f"{name}: {error}")
            if name != "advise" and _digests(place / "study") != study:
                lost.append(f"{name}: the study is another")
            if counts[name] % AGAIN == 1:
                again = _ended(commands[name], place)
                if again.returncode or "Traceback" in again.stderr:
                    wrong.append(f"{name}, again: {again.returncode} {again.stderr[-300:]}")
            study = _digests(place / "study")
        drafts = [str(path.relative_to(place)) for path in place.rglob(".*.draft")]
    return {
        "kills": killed,
        "commands": dict(sorted(counts.items())),
        "seconds of a whole run": {name: round(took, 1) for name, took in seconds.items()},
        "studies, logs or plans lost": len(lost),
        "drafts left": len(drafts),
        "tracebacks, or no work after a kill": len(wrong),
        "examples": sorted({*lost, *wrong})[:20],
    }


def _made(place: Path) -> dict[str, tuple[str, ...]]:
    """Pilots and their plan in a folder, and the commands that read and write there."""
    import numpy as np
    from made_plan import made_plan

    plan = made_plan((1e-4, 3e-4, 1e-3), ROWS)
    noise = np.random.default_rng(1)
    (place / "plan").mkdir()
    (place / "plan" / "plan.json").write_text(plan.model_dump_json())
    given = ["[defaults]", "parameters = 1e5", 'model = "tiny-s"', 'task = "sort"']
    for pilot in plan.pilots:
        rate = pilot.settings.learning_rate
        level = 0.9 - 0.7 * np.exp(-np.arange(ROWS) * rate * 100) + noise.normal(0, 0.02, ROWS)
        rows = [{"step": n, "reward": round(float(r), 4)} for n, r in enumerate(level, start=1)]
        text = "\n".join(map(json.dumps, rows)) + "\n"
        for folder in ("logs", "plan"):
            (place / folder / pilot.name).mkdir(parents=True)
            (place / folder / pilot.name / "log.jsonl").write_text(text)
        given += [
            "[[run]]",
            f'id = "{pilot.name}/log"',
            f"learning_rate = {rate}",
            "group_size = 8",
        ]
        given += ["prompts_per_step = 16", "minibatches_per_refresh = 1", "epochs_per_refresh = 1"]
    (place / "logs" / "pilots.toml").write_text("\n".join(given) + "\n")
    log, study = f"{place}/logs/pilot-1/log.jsonl", f"{place}/study"
    return {
        "advise": ("advise", f"{place}/logs", "--steps", "120", "--fast", "--out", study),
        "next-pilot": ("next-pilot", study),
        "watch": ("watch", log, "--study", study, "--steps", str(ROWS)),
        "pilots --follow": ("pilots", f"{place}/plan", "--follow", "--every", "0.1"),
    }


def _timed(name: str, arguments: tuple[str, ...], place: Path) -> float:
    """Seconds that a command takes where nothing happens to it; it must do its work."""
    started = time.monotonic()
    said = _ended(arguments, place)
    assert said.returncode in (0, 3), (name, said)
    return time.monotonic() - started


def _ended(
    arguments: tuple[str, ...], place: Path, after: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command as a user does, and kill it after some seconds."""
    command = [sys.executable, "-m", "advisor", *arguments, "--quiet"]
    root = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    child = subprocess.Popen(
        command, cwd=place, env=environment, stdout=pipe, stderr=pipe, text=True
    )
    try:
        out, said = child.communicate(timeout=after or 600.0)
    except subprocess.TimeoutExpired:
        child.kill()
        out, said = child.communicate()
    return subprocess.CompletedProcess(command, child.returncode, out, said)


def _digests(folder: Path) -> dict[str, str]:
    """Contents of all files that are not hidden."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }
