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
    total = 0
    for place in places():
        runs = dict(packed(place))
        for folder in sorted((RUNS / place).glob("*/")):
            if (folder / "run.json").is_file() and not folder.name.endswith(".part"):
                runs[folder.name] = {
                    file: (folder / file).read_text(encoding="utf-8") for file in FILES
                }
        lines = "".join(
            json.dumps({"name": name} | runs[name], sort_keys=True) + "\n" for name in sorted(runs)
        )
        # No time of writing: the same runs make the same file.
        table = TABLES / f"{place}.jsonl.gz"
        table.parent.mkdir(parents=True, exist_ok=True)
        table.write_bytes(gzip.compress(lines.encode(), mtime=0))
        total += len(runs)
    return total


def places() -> list[str]:
    """Tasks of the first table, and ``model/task`` of the others, of which runs are finished."""
    finished = (path.parent.parent for path in RUNS.glob("**/run.json"))
    return sorted({folder.relative_to(RUNS).as_posix() for folder in finished})


def packed_places() -> list[str]:
    """The same, of which runs are packed."""
    tables = sorted(TABLES.glob("**/*.jsonl.gz"))
    return [table.relative_to(TABLES).as_posix().removesuffix(".jsonl.gz") for table in tables]


def packed(place: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Name and files of each packed run of a task, or of ``model/task``."""
    path = TABLES / f"{place}.jsonl.gz"
    if not path.is_file():
        return
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            run = json.loads(line)
            yield run.pop("name"), run


def unpack(place: str) -> Path:
    """Lay packed runs out in the cache as TRL left them; their folder."""
    for name, files in packed(place):
        write_run(RUNS / place / name, files)
    return RUNS / place


def write_run(folder: Path, files: dict[str, Any]) -> None:
    """Lay one run out; one that is there is left as it is."""
    if not folder.is_dir():
        folder.mkdir(parents=True)
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
