"""Parquet histories."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from advisor.errors import InputError
from advisor.runs.logfiles.log_file import on_disk
from advisor.runs.logfiles.logged import Columns, Logged
from advisor.runs.logs.trackers.history import PARQUET_HISTORY as READER
from advisor.testing.reader_conformance import ReaderConformance

arrow = pytest.importorskip("pyarrow")
arrow_parquet = importlib.import_module("pyarrow.parquet")

Rows = Sequence[Mapping[str, Any]]


def write(path: Path, rows: Rows, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    keys = list(dict.fromkeys(key for row in rows for key in row))
    table = arrow.table({key: [row.get(key) for row in rows] for key in keys})
    arrow_parquet.write_table(table, path, **options)
    return path


def wandb(number: int, **metrics: Any) -> dict[str, Any]:
    return {"_step": number, "_timestamp": 1.7e9 + number, "_runtime": 2.5 * number, **metrics}


def read(*paths: Path, **mapped: str) -> list[Logged]:
    return list(READER.read([on_disk(path) for path in paths], Columns(mapped)))


class TestParquet(ReaderConformance):
    reader = READER

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        rows = [
            wandb(n - 1, **{"train/reward": r, "train/global_step": n})
            for n, r in enumerate(rewards, start=1)
        ]
        return write(folder / "history.parquet", rows)


class TestParquetInParts(ReaderConformance):
    reader = READER

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        rows = [wandb(n, reward=r) for n, r in enumerate(rewards, start=1)]
        half = len(rows) // 2
        write(folder / "abc-history-v0" / "0001.parquet", rows[half:])
        return write(folder / "abc-history-v0" / "0000.parquet", rows[:half])


@pytest.mark.parametrize(
    "row",
    [
        wandb(1, **{"my/own": 0.5}),
        {"global_step": 1, "reward": 0.5},
    ],
)
def test_histories_are_claimed(tmp_path: Path, row: dict[str, Any]) -> None:
    assert READER.claims(on_disk(write(tmp_path / "x.parquet", [row])))


@pytest.mark.parametrize(
    "row",
    [
        {"question": "1 + 1", "answer": "2"},
        {"step": 1, "prompt": "1 + 1", "completion": "2", "reward": 1.0},
        {"reward": 0.5, "text": "no counter"},
        {"step": 3, "loss": 0.5},
        {"_step": 3, "loss": 0.5},
        {"run_name": "a", "timestamp": "2026-01-01", "gpu": 0.5},
    ],
)
def test_data_sets_and_samples_are_not_claimed(tmp_path: Path, row: dict[str, Any]) -> None:
    assert not READER.claims(on_disk(write(tmp_path / "x.parquet", [row])))


def test_parts_are_read_in_order_as_one_history(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / f"000{part}.parquet", [wandb(10 * part + n, reward=n) for n in range(3)])
        for part in (2, 0, 1)
    ]
    assert {READER.group(on_disk(path)) for path in paths} == {tmp_path}
    (run,) = read(*paths)
    assert run.table.column("step").tolist() == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    assert run.table.numbers.tolist() == list(range(1, 10))
    alone = tmp_path / "run.parquet"
    assert READER.group(on_disk(alone)) == alone


def test_nulls_are_absent_and_other_types_passed_over(tmp_path: Path) -> None:
    rows = [
        wandb(n, **{"train/reward": None if n == 1 else n / 4, "kind": "train", "x": {"a": [1.0]}})
        for n in range(3)
    ]
    (run,) = read(write(tmp_path / "x.parquet", rows))
    assert run.table.has("train/reward").tolist() == [True, False, True]
    assert run.table.text("kind") == {0: "train", 1: "train", 2: "train"}
    assert "x" in run.table.keys
    assert "x" not in run.table.filled_keys


def test_categories_are_text(tmp_path: Path) -> None:
    table = arrow.table(
        {
            "step": [1, 2],
            "reward": [0.5, 0.25],
            "type": arrow.array(["train", "eval"]).dictionary_encode(),
        }
    )
    arrow_parquet.write_table(table, tmp_path / "x.parquet")
    (run,) = read(tmp_path / "x.parquet")
    assert run.table.text("type") == {0: "train", 1: "eval"}


def test_a_mapped_key_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", [wandb(1, **{"my/own": 0.5, "my/other": 0.25})])
    (run,) = read(path, reward="my/own")
    assert run.table.column("my/own").tolist() == [0.5]
    assert run.table.filled_keys.count("my/other") == 0
    assert "my/other" in run.table.keys


def test_a_plain_table_is_said_nothing_of(tmp_path: Path) -> None:
    (run,) = read(write(tmp_path / "x.parquet", [{"step": n, "reward": 0.5} for n in range(3)]))
    assert run.table.column("step").tolist() == [0, 1, 2]
    assert run.assumptions == run.warnings == ()


@pytest.mark.parametrize(
    "raw",
    [
        b"PAR1",
        b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1",
        b"PAR1" + b"\0" * 100 + (50).to_bytes(4, "little") + b"PAR1",
        b"PAR1" + b"\0" * 100 + (200).to_bytes(4, "little") + b"PAR1",
    ],
)
def test_broken_files_are_errors(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(raw)
    assert not READER.claims(on_disk(path))
    with pytest.raises(InputError, match="cannot be read"):
        read(path)
