"""JSON documents with runs inside: step logs, reward traces, evaluations of checkpoints."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processor_time import at_most
from reader_conformance import LogFormat, Logged, ReaderConformance

from advisor import read_runs
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


def test_step_log_comes_before_the_trace_of_the_same_run(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, {"reward_trace": TRACE, "step_log": steps()})
    assert run.table.column("reward").tolist() == TRACE
    assert run.table.column("zvf").tolist() == [0.5] * 4
    assert run.table.column("step").tolist() == [1, 2, 3, 4]
    assert "reward_trace" not in run.table.keys


def test_parallel_lists_are_joined_and_others_are_not(tmp_path: Path) -> None:
    document = {
        "reward_trace": TRACE,
        "loss_trace": [1.0, 2.0, None, 4.0],
        "steps": [10, 20, 30, 40],
        "first3": [0.1, 0.2, 0.3],
    }
    (run,) = runs_of(tmp_path, document)
    assert run.table.column("steps").tolist() == [10, 20, 30, 40]
    np.testing.assert_array_equal(run.table.column("loss_trace"), [1.0, 2.0, np.nan, 4.0])
    assert "first3" not in run.table.keys


def test_settings_the_nearest_win(tmp_path: Path) -> None:
    document = {
        "metadata": {"model": "org/M-8B", "lr": 1e-5, "optim": {"beta1": 0.95}},
        "seed": 1,
        "rank_sweep": [{"rank": 4, "lr": 3e-5, "step_log": steps(), "prompts": ["x"] * 9}],
    }
    (run,) = runs_of(tmp_path, document)
    assert run.settings == {
        "model": "org/M-8B",
        "lr": 3e-5,
        "optim.beta1": 0.95,
        "seed": 1,
        "rank": 4,
    }


def test_runs_are_told_apart_by_name_else_by_place(tmp_path: Path) -> None:
    document = {
        "batch_sweep": [
            {"tag": "base", "reward_trace": TRACE},
            {"reward_trace": TRACE[::-1]},
            {"tag": "base", "reward_trace": TRACE},
        ]
    }
    found = [(run.label, run.has_own_id) for run in runs_of(tmp_path, document)]
    assert found == [
        ("base", True),
        ("batch_sweep.1", False),
        ("base (batch_sweep.2)", True),
    ]


def test_a_run_alone_needs_no_label(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, {"experiment": "grpo", "reward_trace": TRACE})
    assert run.label is None


def test_lists_of_rows_by_the_name_of_their_run(tmp_path: Path) -> None:
    found = runs_of(tmp_path, {"grpo": steps(), "dapo": steps(TRACE[::-1])})
    assert [run.label for run in found] == ["grpo", "dapo"]
    assert found[1].table.column("reward").tolist() == TRACE[::-1]


def test_failed_entries_are_counted(tmp_path: Path) -> None:
    failed = {"tag": "b", "status": "failed", "error": "403"}
    found = runs_of(tmp_path, {"results": [failed, {"tag": "a", "rewards": TRACE}, failed]})
    assert len(found) == 1
    assert found[0].warnings == ("2 entries failed without rewards: part of no run",)


def test_checkpoints_evaluated_offline(tmp_path: Path) -> None:
    document = {
        "checkpoint": [50, 100],
        "accuracy": [0.25, 0.5],
        "pass@3": [0.5, 0.75],
        "base accuracy": 0.125,
        "base pass@3": 0.375,
    }
    assert claimed(tmp_path, document)
    (run,) = runs_of(tmp_path, document)
    assert run.table.column("step").tolist() == [0, 50, 100]
    assert run.table.column("eval_accuracy").tolist() == [0.125, 0.25, 0.5]
    assert "held out" in run.assumptions[0]


def test_checkpoints_by_name(tmp_path: Path) -> None:
    document = {"checkpoints": ["checkpoint-100", "checkpoint-200"], "pass@1": [0.5, 0.75]}
    (run,) = runs_of(tmp_path, document)
    assert run.table.column("step").tolist() == [100, 200]
    assert run.table.column("eval_accuracy").tolist() == [0.5, 0.75]


@pytest.mark.parametrize(
    "beside",
    [
        {"eval_steps": [0, 4], "eval_accuracy": [0.125, 0.5]},
        {"eval_history": [{"step": 0, "accuracy": 0.125}, {"step": 4, "accuracy": 0.5}]},
    ],
)
def test_evaluations_beside_a_trace_are_held_out(tmp_path: Path, beside: dict[str, Any]) -> None:
    (run,) = runs_of(tmp_path, {"rewards": TRACE, **beside})
    assert run.table.column("step").tolist() == [1, 2, 3, 4, 0, 4]
    assert run.table.column("rewards")[:4].tolist() == TRACE
    assert run.table.column("eval_accuracy")[4:].tolist() == [0.125, 0.5]
    assert not run.table.has("rewards")[4:].any()


def test_evaluations_as_many_as_rewards_keep_their_own_steps(tmp_path: Path) -> None:
    document = {"rewards": TRACE, "eval_steps": [0, 10, 20, 30], "eval_accuracy": TRACE}
    (run,) = runs_of(tmp_path, document)
    assert run.table.column("step").tolist() == [1, 2, 3, 4, 0, 10, 20, 30]
    assert not run.table.has("eval_accuracy")[:4].any()


def test_rewards_of_held_out_rows_are_no_train_reward(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, {"step_log": steps(), "eval_log": [{"step": 2, "reward": 0.75}]})
    assert run.table.column("eval_reward")[4] == 0.75
    assert run.table.has("reward").sum() == 4


def test_rows_with_an_object_of_metrics(tmp_path: Path) -> None:
    history = [{"step": n, "metrics": {"reward": r}} for n, r in enumerate(TRACE, start=1)]
    (run,) = runs_of(tmp_path, {"history": history})
    assert run.table.column("reward").tolist() == TRACE


@pytest.mark.parametrize(
    "document",
    [
        {"prompt": "2+2", "completions": ["4", "5", "4"], "rewards": [1.0, 0.0, 1.0]},
        {"samples": [{"prompt": "2+2", "reward": 1.0}, {"prompt": "3+3", "reward": 0.0}]},
        {"results": [{"model": "a", "tag": "x", "reward": 0.5}, {"tag": "y", "reward": 0.6}]},
        {"by_arm": {"grpo": {"n": 3, "mean_reward": 0.7}}},
        {"reward_funcs": ["exact"], "reward_weights": [1.0, 0.5], "learning_rate": 1e-6},
        {"log_history": steps()},
        {"steps": [1, 2, 3], "loss": [1.0, 2.0, 3.0]},
        [],
        steps(),
    ],
)
def test_claims_no_document_of_another_kind(tmp_path: Path, document: Any) -> None:
    assert not claimed(tmp_path, document)


def test_a_list_of_runs_is_claimed(tmp_path: Path) -> None:
    document = [{"experiment": n, "lr": 1e-5, "step_log": steps()} for n in ("a", "b")]
    assert claimed(tmp_path, document)
    assert [run.label for run in runs_of(tmp_path, document)] == ["a", "b"]


def test_claims_only_json(tmp_path: Path) -> None:
    assert claimed(tmp_path, {"step_log": steps()})
    assert not claimed(tmp_path, {"step_log": steps()}, "results.jsonl")


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


def test_a_list_of_rows_is_a_table(tmp_path: Path) -> None:
    assert not claimed(tmp_path, steps())
    (run,) = read_runs(tmp_path)
    assert (run.format, run.reward.tolist()) == (LogFormat("table").reader.name, TRACE)


def test_a_mapped_key_counts_as_reward(tmp_path: Path) -> None:
    columns = {"reward": "solved"}
    (run,) = runs_of(tmp_path, {"solved": TRACE}, columns)
    assert run.table.column("solved").tolist() == TRACE


def test_error_names_what_is_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no list of rewards \(keys seen: total, models; 1 of"):
        runs_of(tmp_path, {"total": 3, "models": [{"status": "failed"}]})


def test_error_names_the_line_at_which_it_breaks(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text('{"reward_trace": [0.5,\n 0.25,\n')
    with pytest.raises(InputError, match=r"row 3: this is not valid JSON"):
        DOCUMENT.read(path)


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


@pytest.mark.parametrize("key", ["std_error", "n_samples"])
def test_rewards_of_the_samples_of_an_evaluation_are_no_run(tmp_path: Path, key: str) -> None:
    document = {"rewards": TRACE, "metadata": {"checkpoint": "a", "group_size": 1, key: 4}}
    assert not claimed(tmp_path, document)
    # Beside a loss for each of them they are of training.
    assert claimed(tmp_path, {**document, "losses": [0.1, 0.2, 0.3, 0.4]})
