"""Where runs lie: trained ones as TRL left them in a cache, all of them packed beside this file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RUNS = HERE / ".cache" / "runs"
TABLES = HERE / "tables"
FILES = ("trainer_state.json", "config.yaml", "run.json")


def pack() -> int:
    """Write every finished run of the cache into the packed tables; the number that they hold."""
    TABLES.mkdir(exist_ok=True)
    total = 0
    for task in sorted({path.name for path in RUNS.glob("*/") if path.is_dir()}):
        runs = dict(packed(task))
        for folder in sorted((RUNS / task).glob("*/")):
            if not folder.name.endswith(".part"):
                runs[folder.name] = {
                    file: (folder / file).read_text(encoding="utf-8") for file in FILES
                }
        lines = "".join(
            json.dumps({"name": name} | runs[name], sort_keys=True) + "\n" for name in sorted(runs)
        )
        # No time of writing: the same runs make the same file.
        (TABLES / f"{task}.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
        total += len(runs)
    return total


def packed(task: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Name and files of each packed run of a task."""
    path = TABLES / f"{task}.jsonl.gz"
    if not path.is_file():
        return
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            run = json.loads(line)
            yield run.pop("name"), run


def unpack(task: str) -> Path:
    """Lay the packed runs of a task out in the cache as TRL left them; the task's folder."""
    for name, files in packed(task):
        write_run(RUNS / task / name, files)
    return RUNS / task


def write_run(folder: Path, files: dict[str, Any]) -> None:
    """Lay one run out; one that is there is left as it is."""
    if not folder.is_dir():
        folder.mkdir(parents=True)
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
