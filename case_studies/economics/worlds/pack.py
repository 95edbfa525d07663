"""Collect finished worlds into the tables: `pack.py DIR`, which holds the files of `train.py`."""

from __future__ import annotations

import gzip
import json
import sys
from collections import defaultdict
from pathlib import Path

from plan import WORLDS, World
from train import head

TABLES = Path(__file__).resolve().parent / "tables"
Row = dict[str, object]


def check(world: World, rows: list[Row]) -> None:
    """Refuse rows that the plan does not ask for."""
    wanted = [head(world, run, int(str(rows[0]["params"]))) for run in world.runs]
    for place, (row, settings) in enumerate(zip(rows, wanted, strict=True), start=1):
        found = {name: row[name] for name in settings}
        if found != settings:
            raise SystemExit(f"{world.name}, row {place}: {found}, but the plan says {settings}")


def main() -> None:
    """Write the tables."""
    tables: dict[str, list[Row]] = defaultdict(list)
    for world in WORLDS:
        path = Path(sys.argv[1]) / f"{world.name}.jsonl"
        if path.exists():
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            check(world, rows)
            tables[world.table] += rows
    for table, rows in tables.items():
        worlds = {(row["task"], row["size"], row["world"]) for row in rows}
        if len({key[:2] for key in worlds}) != len(worlds):
            raise SystemExit(f"{table}: two worlds have the same task and size")
        text = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)
        packed = gzip.compress(text.encode("utf-8"), 9, mtime=0)
        (TABLES / f"{table}.jsonl.gz").write_bytes(packed)
        print(f"{table}: {len(worlds)} worlds, {len(rows)} runs, {len(packed):,} bytes")


if __name__ == "__main__":
    main()
