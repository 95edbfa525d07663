"""JSON documents with runs inside: step logs, reward traces, evaluations of checkpoints."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from processor_time import at_most
from reader_conformance import LogFormat, Logged, ReaderConformance

from advisor.errors import InputError

DOCUMENT = LogFormat("JSON document")

TRACE = [0.25, 0.5, 0.375, 0.625]


def steps(rewards: Sequence[float] = TRACE, **more: Any) -> list[dict[str, Any]]:
    return [
        {"step": n, "loss": -1.5 * n, "reward": r, "zvf": 0.5, "gu": 0.5, **more}
        for n, r in enumerate(rewards, start=1)
    ]


def saved(folder: Path, document: Any, name: str = "results.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def runs_of(folder: Path, document: Any, columns: dict[str, str] | None = None) -> list[Logged]:
    path = saved(folder, document)
    return DOCUMENT.read(path, columns=columns)


def claimed(folder: Path, document: Any, name: str = "results.json") -> bool:
    return DOCUMENT.claims(saved(folder, document, name))


class TestStepLog(ReaderConformance):
    reader = DOCUMENT.reader

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        return saved(folder, {"experiment": "a", "lr": 1e-5, "step_log": steps(rewards)})


class TestTrace(ReaderConformance):
    reader = DOCUMENT.reader

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        other = {"tag": "w1_b", "status": "failed", "error": "no access"}
        entry = {"tag": "w1_a", "status": "completed", "reward_trace": list(rewards)}
        return saved(folder, {"campaign": "c", "results": [other, entry]})


class TestColumnsOfPandas(ReaderConformance):
    reader = DOCUMENT.reader

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        by_place = {str(n): reward for n, reward in enumerate(rewards)}
        counter = {str(n): n + 1 for n in range(len(rewards))}
        return saved(folder, {"step": counter, "reward": by_place})


@pytest.mark.parametrize(
    "rows",
    [
        {"step_log": steps()},
        {"reward_trace": TRACE},
        {"checkpoint": [50, 100], "accuracy": [0.25, 0.5]},
    ],
)
def test_claims_a_run_behind_long_texts(tmp_path: Path, rows: dict[str, Any]) -> None:
    assert claimed(tmp_path, {"notes": ["word " * 20] * 9_000, **rows})
    assert not claimed(tmp_path, {"notes": ["a reward " * 20] * 9_000})


@pytest.mark.evidence
def test_deep_and_wide_documents_end_soon(tmp_path: Path) -> None:
    deep: Any = TRACE
    for _ in range(400):
        deep = {"rewards": deep}
    wide = {"entries": [{"value": n, "more": {"a": [1]}} for n in range(200_000)]}
    for document in (deep, wide):
        with at_most(15), pytest.raises(InputError, match=r"holds"):
            runs_of(tmp_path, document)


def test_real_documents(real_logs: Path) -> None:
    with (real_logs / "INDEX.tsv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    kinds = {"json_path": "reward", "json_trace": "reward_trace", "json_cols": "eval_accuracy"}
    chosen = [row for row in rows if row["reader"] in kinds]
    assert len(chosen) == 58
    read: dict[str, list[Logged]] = {}
    for row in chosen:
        name = row["local_file"]
        log = real_logs / name
        if name not in read:
            assert DOCUMENT.claims(log)
            read[name] = DOCUMENT.read(log)
        wanted = json.loads((real_logs / name).read_text(encoding="utf-8"))
        for part in filter(None, row["filter"].split(".")):
            wanted = wanted[int(part) if part.isdigit() else part]
        key = kinds[row["reader"]]
        if key == "eval_accuracy":
            values = [wanted["base accuracy"], *wanted["accuracy"]]
        else:
            values = [cell["reward"] if isinstance(cell, dict) else cell for cell in wanted]
        same = [run for run in read[name] if run.table.column(key).tolist() == values]
        assert same, row["id"]
        stated = same[0].settings
        if key != "eval_accuracy":
            assert stated["lr"] == float(row["learning_rate"])
            assert stated.get("group_size", stated.get("group")) == int(row["group_size"])
            assert stated["model"] == row["model"]
