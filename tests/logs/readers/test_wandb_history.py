"""W&B histories row by row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from reader_conformance import LogFormat, Logged, ReaderConformance

from advisor.errors import InputError

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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("metrics.jsonl", '{"step": 1, "reward": 0.5}\n'),
        ("runs.jsonl", '{"_step": [1, 2], "reward": [0.1, 0.2]}\n'),
        ("wandb-summary.json", '{"_step": 5, "train/reward": 0.5}'),
        ("notes.txt", '{"_step": 5, "train/reward": 0.5}\n'),
        ("rows.csv", "step,reward\n1,0.5\n"),
        ("rows.csv", "_step,reward\n1,0.5\n"),
    ],
)
def test_other_files_are_not_claimed(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert not HISTORY.claims(tmp_path / name)


def test_the_trainers_counter_comes_before_that_of_wandb(tmp_path: Path) -> None:
    rows = [row(3 * n, **{"critic/score/mean": n / 10, "training/global_step": n}) for n in (1, 2)]
    run = read(write(tmp_path / "h.jsonl", rows))
    assert run.table.column("step").tolist() == [1, 2]
    assert run.assumptions[0].startswith("steps are training/global_step, not W&B's own")


def test_without_a_counter_that_of_wandb_is_taken_and_named(tmp_path: Path) -> None:
    run = read(write(tmp_path / "h.jsonl", [row(n, reward=0.5) for n in range(4)]))
    assert run.table.column("step").tolist() == [0, 1, 2, 3]
    assert "only where each one was logged" in run.assumptions[0]


def test_a_counter_of_rollouts_is_not_overruled(tmp_path: Path) -> None:
    run = read(write(tmp_path / "h.jsonl", [row(n, reward=0.5, rollout_step=n) for n in range(4)]))
    assert "step" not in run.table.keys
    assert run.table.column("rollout_step").tolist() == [0, 1, 2, 3]


def test_a_step_of_the_loop_itself_stays(tmp_path: Path) -> None:
    run = read(write(tmp_path / "h.jsonl", [row(n, reward=0.5, step=10 * n) for n in range(4)]))
    assert run.table.column("step").tolist() == [0, 10, 20, 30]
    assert run.assumptions == ()


def test_long_histories_settle_on_one_counter(tmp_path: Path) -> None:
    rows = [row(n, reward=0.5, **{"train/global_step": 2 * n}) for n in range(500)]
    run = read(write(tmp_path / "h.jsonl", rows))
    assert run.table.column("step").tolist() == list(range(0, 1000, 2))


def test_typed_objects_are_passed_over(tmp_path: Path) -> None:
    histogram = {"_type": "histogram", "values": [1, 2], "bins": [0, 1, 2], "kl": 3.0}
    run = read(
        write(tmp_path / "h.jsonl", [row(1, reward=0.5, weights=histogram, eval={"reward": 0.25})])
    )
    assert run.table.column("eval/reward").tolist() == [0.25]
    assert not any(key.startswith("weights") for key in run.table.keys)


def test_values_that_are_not_finite_stay(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text('{"_step": 1, "reward": NaN}\n{"_step": 2, "reward": "NaN"}\n{"_step": 3}\n')
    run = read(path)
    assert run.table.has("reward").tolist() == [True, True, False]


def test_a_sample_is_told_of(tmp_path: Path) -> None:
    rows = [row(n * n, reward=0.5) for n in range(100)]
    assert "sample of the run" in read(write(tmp_path / "h.jsonl", rows)).warnings[0]


def test_a_cut_last_line_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "h.jsonl", [row(n, reward=0.5) for n in range(3)])
    path.write_text(path.read_text()[:-20])
    run = read(path)
    assert len(run.table) == 2
    assert run.warnings == ("the last line, row 3, is cut: part of no run",)


def test_a_broken_line_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text('{"_step": 1, "reward": 0.5}\n{"_step": 2, "rew\n{"_step": 3, "reward": 0.5}\n')
    with pytest.raises(InputError, match="row 2"):
        read(path)


def test_a_history_without_rows_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    path.write_text("[]")
    with pytest.raises(InputError, match="no rows"):
        read(path)
