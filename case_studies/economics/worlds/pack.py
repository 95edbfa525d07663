"""Collect finished worlds into the tables and describe them: `pack.py DIR [TABLES]`.

DIR holds the files of `train.py`, TABLES is where the tables go. Prints the Markdown table of the
README.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from plan import WORLDS, World
from train import head

TABLES = Path(__file__).resolve().parent / "tables"
AVERAGED = 10
Row = dict[str, object]


def read_rows(path: Path) -> list[Row]:
    """Rows of a file of `train.py`."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def check(world: World, rows: list[Row]) -> None:
    """Refuse rows that the plan does not ask for."""
    wanted = [head(world, run, int(str(rows[0]["params"]))) for run in world.runs]
    for place, (row, settings) in enumerate(zip(rows, wanted, strict=True), start=1):
        found = {name: row[name] for name in settings}
        if found != settings:
            raise SystemExit(f"{world.name}, row {place}: {found}, but the plan says {settings}")


def died(row: Row) -> bool:
    """Last tenth below half of the best ten-step mean, or no such mean above the base."""
    reward = np.array(row["reward"], dtype=float)
    best = np.convolve(reward, np.ones(AVERAGED) / AVERAGED, "valid").max()
    last = reward[-max(1, len(reward) // 10) :].mean()
    return bool(last < best / 2 or best <= row["base_acc"])


def described(world: World, rows: list[Row]) -> str:
    """One line of the README's table."""
    finals = np.array([row["final_eval"] for row in rows], dtype=float)
    rates = [row["lr"] for row in rows]
    # The rate whose runs come out best on average; a lucky run of a bad rate does not count.
    means = {rate: finals[[r == rate for r in rates]].mean() for rate in set(rates)}
    best_rate = max(means, key=lambda rate: means[rate])
    seconds = sum(float(str(row["seconds"])) for row in rows)
    cells = [
        world.name,
        world.table,
        f"{rows[0]['params']:,}",
        str(world.steps),
        str(len(rows)),
        f"{rows[0]['base_acc']:.3f}",
        f"{finals.max():.2f}",
        f"{np.median(finals):.2f}",
        f"{np.mean([died(row) for row in rows]):.0%}",
        f"{min(means):.1e} to {max(means):.1e}",
        f"{best_rate:.1e}",
        f"{seconds:.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Write the tables and print what they hold."""
    folder = Path(sys.argv[1])
    at = Path(sys.argv[2]) if len(sys.argv) > 2 else TABLES
    tables: dict[str, list[Row]] = defaultdict(list)
    lines = []
    for world in WORLDS:
        path = folder / f"{world.name}.jsonl"
        if path.exists():
            rows = read_rows(path)
            check(world, rows)
            tables[world.table] += rows
            lines.append(described(world, rows))
    at.mkdir(exist_ok=True)
    for table, rows in tables.items():
        worlds = {(row["task"], row["size"], row["world"]) for row in rows}
        if len({key[:2] for key in worlds}) != len(worlds):
            raise SystemExit(f"{table}: two worlds have the same task and size")
        text = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)
        packed = gzip.compress(text.encode("utf-8"), 9, mtime=0)
        (at / f"{table}.jsonl.gz").write_bytes(packed)
        print(f"{table}: {len(worlds)} worlds, {len(rows)} runs, {len(packed):,} bytes")
    everything = [row for rows in tables.values() for row in rows]
    print(f"{len(lines)} worlds, {len(everything)} runs, {sum(map(died, everything))} died")
    print(
        "| world | table | parameters | steps | runs | base | best final | median final | died | "
        "rates | best rate | seconds |\n" + "|---" * 12 + "|"
    )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
