"""JSONL of verl's file logger and of EasyR1's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advisor.errors import InputError
from advisor.runs.logfiles.log_file import on_disk
from advisor.runs.logfiles.logged import Columns, Logged
from advisor.runs.trainers.verl import console as verl_console
from advisor.testing.reader_conformance import ReaderConformance


def row(step: int, reward: float | None, **more: Any) -> dict[str, Any]:
    data = {"actor/pg_loss": -0.01, "critic/score/mean": reward, "critic/rewards/mean": -13.0}
    return {"step": step, "data": {**data, **more}}


def write(path: Path, rows: Sequence[Any], end: str = "") -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows) + end, encoding="utf-8")
    return path


def read(path: Path) -> Logged:
    assert verl_console.claims_jsonl(on_disk(path))
    (run,) = verl_console.read_jsonl([on_disk(path)], Columns())
    return run


class TestFileLogger(ReaderConformance):
    reader = verl_console.JSONL_READER

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        return write(folder / "gsm8k.jsonl", [row(n, r) for n, r in enumerate(rewards, 1)])


class TestEasyR1(ReaderConformance):
    reader = verl_console.JSONL_READER
    rounds = 50

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        rows = [
            {"step": n, "actor": {"lr": 1e-6}, "critic": {"score": {"mean": r, "max": 1.0}}}
            for n, r in enumerate(rewards, 1)
        ]
        return write(folder / "experiment_log.jsonl", rows)


def test_validation_before_training_has_no_reward(tmp_path: Path) -> None:
    first = {"step": 0, "data": {"val-core/gsm8k/acc/mean@1": 0.25}}
    run = read(write(tmp_path / "a.jsonl", [first, row(1, 0.5), row(2, None), row(3, 0.75)]))
    assert run.table.column("step").tolist() == [0, 1, 2, 3]
    assert run.table.has("critic/score/mean").tolist() == [False, True, False, True]
    assert "val-core/gsm8k/acc/mean@1" in run.table.keys
    assert "data/critic/score/mean" not in run.table.keys


def test_nan_is_a_number_and_text_is_none(tmp_path: Path) -> None:
    more = {"actor/kl_coef": float("nan"), "note": "x"}
    run = read(write(tmp_path / "a.jsonl", [row(1, 0.5, **more)]))
    assert run.table.has("actor/kl_coef").all()
    assert np.isnan(run.table.column("actor/kl_coef")[0])


def test_cut_last_line_is_left_out(tmp_path: Path) -> None:
    run = read(write(tmp_path / "a.jsonl", [row(1, 0.5), row(2, 0.25)], end='{"step": 3, "da'))
    assert run.table.column("critic/score/mean").tolist() == [0.5, 0.25]
    assert run.warnings == ("the last line is cut and was left out",)


def test_broken_line_in_between_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    good = json.dumps(row(1, 0.5))
    path.write_text(f"{good}\n{good[:20]}\n{good}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.jsonl, row 2: this is not valid JSON"):
        list(verl_console.read_jsonl([on_disk(path)], Columns()))


def test_file_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n\n", encoding="utf-8")
    with pytest.raises(InputError, match="empty"):
        list(verl_console.read_jsonl([on_disk(path)], Columns()))


@pytest.mark.parametrize(
    "first",
    [
        {"step": 1, "reward": 0.5},
        {"step": 1, "data": {"reward": 0.5}},
        {"step": 1, "data": {"critic/score/mean": 0.5}, "type": "train"},
        {"step": True, "data": {"critic/score/mean": 0.5}},
        {"step": "1", "data": {"critic/score/mean": 0.5}},
        {"step": 1, "data": [0.5]},
        {"step": 1, "actor": {"lr": 1e-6}, "reward": 0.5},
        {"data": {"critic/score/mean": 0.5}},
        [1],
    ],
)
def test_rows_of_others_are_not_claimed(tmp_path: Path, first: Any) -> None:
    assert not verl_console.claims_jsonl(on_disk(write(tmp_path / "a.jsonl", [first])))


def test_other_endings_are_not_claimed(tmp_path: Path) -> None:
    assert not verl_console.claims_jsonl(on_disk(write(tmp_path / "a.csv", [row(1, 0.5)])))
    assert verl_console.claims_jsonl(on_disk(write(tmp_path / "metrics.log", [row(1, 0.5)])))


def test_only_validation_is_claimed_under_easyr1s_name(tmp_path: Path) -> None:
    first = {"step": 0, "val": {"reward_score": 0.1}, "val_response_length": {"mean": 9.0}}
    assert verl_console.claims_jsonl(on_disk(write(tmp_path / "experiment_log.jsonl", [first])))
    assert not verl_console.claims_jsonl(on_disk(write(tmp_path / "other.jsonl", [first])))


def test_no_public_log_is_claimed(real_logs: Path) -> None:
    files = [path for path in real_logs.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if verl_console.claims_jsonl(on_disk(path))] == []
