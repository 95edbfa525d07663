"""W&B histories row by row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reader_conformance import LogFormat, Logged, ReaderConformance

HISTORY = LogFormat("W&B history")


def row(number: int, **metrics: Any) -> dict[str, Any]:
    return {**metrics, "_step": number, "_runtime": 3.5 * number, "_timestamp": 1.7e9 + number}


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(cells) + "\n" for cells in rows))
    return path


def read(path: Path) -> Logged:
    (logged,) = HISTORY.read(path)
    return logged


class TestWandbHistory(ReaderConformance):
    reader = HISTORY.reader

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        rows = [
            row(n - 1, **{"train/reward": r, "train/global_step": n, "train/loss": 0.1})
            for n, r in enumerate(rewards, start=1)
        ]
        return write(folder / "wandb-history.jsonl", rows)


class TestWandbHistoryAsList(ReaderConformance):
    test_memory_is_bounded = None  # a list is parsed as a whole, up to its limit

    reader = HISTORY.reader

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        rows = [row(n, reward=r) for n, r in enumerate(rewards, start=1)]
        path = folder / "history.json"
        path.write_text(json.dumps(rows))
        return path


class TestWandbHistoryAsCsv(ReaderConformance):
    reader = HISTORY.reader

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        path = folder / "history.csv"
        lines = [f"{n - 1},{n},{r},{n},{n}.5,1700000000.25" for n, r in enumerate(rewards, 1)]
        header = ",_step,train/reward,train/global_step,_runtime,_timestamp"
        path.write_text("\n".join([header, *lines]) + "\n")
        return path


def test_long_histories_settle_on_one_counter(tmp_path: Path) -> None:
    rows = [row(n, reward=0.5, **{"train/global_step": 2 * n}) for n in range(500)]
    run = read(write(tmp_path / "h.jsonl", rows))
    assert run.table.column("step").tolist() == list(range(0, 1000, 2))


def test_a_sample_is_told_of(tmp_path: Path) -> None:
    rows = [row(n * n, reward=0.5) for n in range(100)]
    assert "may be a sample" in read(write(tmp_path / "h.jsonl", rows)).warnings[0]
