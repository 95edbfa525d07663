"""W&B line charts as CSV."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from reader_conformance import LogFormat, Logged, ReaderConformance

from advisor.errors import InputError
from advisor.runs import inspect, read_runs

CHART = LogFormat("W&B chart")
SIDECAR = "settings of the runs (sidecar)"

NAME = "wandb_export_2026-05-19T17_35_00.153+01_00.csv"


def write(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, quoting=csv.QUOTE_ALL)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def chart(run: str, metric: str = "train/reward") -> list[str]:
    return [f"{run} - {metric}", f"{run} - {metric}__MIN", f"{run} - {metric}__MAX"]


def read(*paths: Path, **mapped: str) -> list[Logged]:
    return CHART.read(*paths, columns=mapped)


class TestWandbCsv(ReaderConformance):
    reader = CHART.reader

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        rows = [(n, r, r, r) for n, r in enumerate(rewards, start=1)]
        return write(folder / NAME, ["train/global_step", *chart("run-a")], rows)


@pytest.mark.parametrize(
    ("name", "header"),
    [
        (NAME, ["Step", *chart("a"), *chart("b")]),
        ("x.csv", ["Relative Time (Process)", *chart("a", "_step"), *chart("a")]),
        ("x.csv", ["Step", "a - train/reward", "b - train/reward"]),
        ("x.csv", ["my_axis", *chart("Group: 7b")]),
        ("x.csv", ["Step", "a", "a__MIN", "a__MAX"]),
        (NAME, ["Step", "14b", "8b"]),
        ("results-export.csv", ["Step", "14b", "8b"]),
        ("critic_score_mean.csv", ["Step", "14b", "8b"]),
    ],
)
def test_charts_are_claimed(tmp_path: Path, name: str, header: list[str]) -> None:
    assert CHART.claims(write(tmp_path / name, header, [[1] * len(header)]))


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("x.csv", ["step", "reward", "loss"]),
        ("x.csv", ["Step", "Training Loss", "reward"]),
        (NAME, ["Step", "Training Loss", "reward"]),
        ("x.csv", ["step", "reward - mean", "reward - std"]),
        ("x.csv", ["Step", "14b", "8b"]),
        (NAME, ["Name", "State", "Notes", "Runtime"]),
        ("x.csv", ["Wall time", "Step", "Value"]),
        ("x.txt", ["Step", *chart("a")]),
        ("x.csv", ["Step"]),
    ],
)
def test_other_tables_are_not_claimed(tmp_path: Path, name: str, header: list[str]) -> None:
    assert not CHART.claims(write(tmp_path / name, header, [[1] * len(header)]))


def test_runs_share_the_axis_and_keep_their_own_rows(tmp_path: Path) -> None:
    header = ["Step", *chart("lr - 1e-6"), *chart("b")]
    rows = [(0, 0.1, 0.1, 0.1, "", "", ""), (1, "", "", "", 0.5, 0.5, 0.5), (2, 0.3, 0.3, 0.3, 0.6)]
    one, two = read(write(tmp_path / NAME, header, rows))
    assert (one.label, two.label) == ("lr - 1e-6", "b")
    assert one.has_own_id
    assert one.table.column("train/reward").tolist() == [0.1, 0.3]
    assert one.table.column("step").tolist() == [0, 2]
    assert two.table.column("train/reward").tolist() == [0.5, 0.6]
    assert two.table.column("step").tolist() == [1, 2]
    assert two.table.numbers.tolist() == [3, 4]
    assert "W&B's own counter" in one.assumptions[0]
    assert not one.warnings


def test_a_counter_of_the_trainer_comes_before_that_of_wandb(tmp_path: Path) -> None:
    header = ["Step", *chart("a"), *chart("a", "train/global_step")]
    rows = [(n, n / 10, n / 10, n / 10, 5 * n, 5 * n, 5 * n) for n in range(1, 5)]
    (run,) = read(write(tmp_path / NAME, header, rows))
    assert run.table.column("step").tolist() == [5, 10, 15, 20]
    assert run.assumptions == ("steps are train/global_step, not W&B's own counter of log calls",)


def test_an_axis_of_time_leaves_the_counter_in_its_column(tmp_path: Path) -> None:
    header = ["Relative Time (Process)", *chart("a", "_step"), *chart("a")]
    rows = [(9.5 * n, n, n, n, n / 10, n / 10, n / 10) for n in range(1, 5)]
    (run,) = read(write(tmp_path / NAME, header, rows))
    assert run.table.column("step").tolist() == [1, 2, 3, 4]


def test_an_axis_of_time_alone_gives_no_step(tmp_path: Path) -> None:
    header = ["Relative Time (Process)", *chart("a")]
    (run,) = read(write(tmp_path / NAME, header, [(9.5, 0.1, 0.1, 0.1), (19, 0.2, 0.2, 0.2)]))
    assert "step" not in run.table.keys
    assert len(run.table) == 2


def test_an_axis_that_counts_rollouts_keeps_its_name(tmp_path: Path) -> None:
    (run,) = read(
        write(
            tmp_path / NAME, ["rollout_step", *chart("a"), *chart("a", "_step")], [(3, 1, 1, 1, 9)]
        )
    )
    assert run.table.column("rollout_step").tolist() == [3]
    assert "step" not in run.table.keys


def test_bounds_that_differ_tell_of_means(tmp_path: Path) -> None:
    header = ["Step", *chart("a"), *chart("b")]
    rows = [(n, 0.5, 0.5, 0.5, 0.5, 0.4, 0.6) for n in range(3)]
    one, two = read(write(tmp_path / NAME, header, rows))
    assert not one.warnings
    assert "means over several logged rows" in two.warnings[0]


def test_groups_are_named_as_means_over_runs(tmp_path: Path) -> None:
    header = ["Step", *chart("Group: 7b")]
    (run,) = read(write(tmp_path / NAME, header, [(n, 0.5, 0.4, 0.6) for n in range(3)]))
    assert "mean over runs" in run.warnings[0]


def test_uneven_steps_tell_of_a_sample(tmp_path: Path) -> None:
    steps = np.cumsum([1, 2, 5, 3] * 20)
    (run,) = read(
        write(tmp_path / "s.csv", ["Step", *chart("a")], [(s, 0.5, 0.5, 0.5) for s in steps])
    )
    assert "sample" in run.warnings[0]
    (run,) = read(
        write(tmp_path / "e.csv", ["Step", *chart("a")], [(2 * n, 1, 1, 1) for n in range(80)])
    )
    assert not run.warnings


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    header = ["Step", *chart("a"), *chart("a")]
    rows = [(n, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9) for n in range(3)]
    one, two = read(write(tmp_path / NAME, header, rows))
    assert (one.label, two.label) == ("a", "a (2)")
    assert two.table.column("train/reward").tolist() == [0.9] * 3


def test_headers_without_metric_take_the_mapped_one(tmp_path: Path) -> None:
    path = write(tmp_path / NAME, ["Step", "14b", "8b"], [(0, 0.7, 0.6), (1, 0.8, "")])
    one, two = read(path, reward="critic/score/mean")
    assert (one.label, two.label) == ("14b", "8b")
    assert one.table.column("critic/score/mean").tolist() == [0.7, 0.8]
    assert "critic/score/mean (as mapped)" in one.assumptions[0]


def test_headers_without_metric_take_that_of_the_file_name(tmp_path: Path) -> None:
    path = write(tmp_path / "critic_score_mean (1).csv", ["Step", "14b"], [(0, 0.7), (1, 0.8)])
    (run,) = read(path)
    assert run.table.column("critic/score/mean").tolist() == [0.7, 0.8]
    assert "from the name of the file" in run.assumptions[0]


def test_one_mapped_header_is_read_alone(tmp_path: Path) -> None:
    path = write(tmp_path / NAME, ["Step", "14b", "8b"], [(0, 0.7, 0.6), (1, 0.8, 0.5)])
    (run,) = read(path, reward="8b")
    assert run.table.column("8b").tolist() == [0.6, 0.5]


def test_a_lone_chart_without_metric_is_taken_for_the_reward(tmp_path: Path) -> None:
    runs = read(write(tmp_path / NAME, ["Step", "14b", "8b"], [(0, 0.7, 0.6), (1, 0.8, 0.7)]))
    assert [run.table.column("reward").tolist() for run in runs] == [[0.7, 0.8], [0.6, 0.7]]
    assert all(any("assumed" in line for line in run.assumptions) for run in runs)


def test_charts_of_a_folder_are_put_together(tmp_path: Path) -> None:
    paths = [
        write(
            tmp_path / "a.csv", ["Step", *chart("a"), *chart("b")], [(n, n, n, n) for n in (1, 2)]
        ),
        write(
            tmp_path / "b.csv",
            ["Relative Time (Wall)", *chart("a", "_step"), *chart("a", "train/entropy")],
            [(60.5, 2, 2, 2, 0.25, 0.25, 0.25), (30.5, 1, 1, 1, 0.5, 0.5, 0.5)],
        ),
    ]
    assert {CHART.group(path) for path in paths} == {tmp_path}
    (run,) = read(*paths)
    assert run.table.column("step").tolist() == [1, 2]
    assert run.table.column("train/reward").tolist() == [1, 2]
    assert run.table.column("train/entropy").tolist() == [0.5, 0.25]


def test_charts_that_contradict_each_other_are_other_runs(tmp_path: Path) -> None:
    header = ["Step", *chart("a")]
    paths = [
        write(tmp_path / f"{name}.csv", header, [(n, value, value, value) for n in range(3)])
        for name, value in (("mon", 0.1), ("tue", 0.2), ("wed", 0.1))
    ]
    one, two = read(*paths)
    assert (one.label, two.label) == ("a", "a (tue)")
    assert one.table.column("train/reward").tolist() == [0.1] * 3


def test_a_chart_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    good = write(tmp_path / "a.csv", ["Step", *chart("a")], [(1, 1, 1, 1)])
    bad = write(tmp_path / NAME, ["Step", "14b"], [(0, 0.7)])
    (run,) = read(good, bad)
    assert any(f"{NAME} was left out" in warning for warning in run.warnings)
    with pytest.raises(InputError, match="name only runs"):
        read(bad, write(tmp_path / "export.csv", ["Step", "8b"], [(0, 0.7)]))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('Step,"a - reward"\n1,2,3\n', "3 cells and the header 2"),
        ('Step,"a - reward"\n1,"2\n3', "cannot be read"),
        ('Step,"a - reward"\n', "no rows"),
        ('Step,"a - reward"\n1,\n2,\n', "no rows"),
    ],
)
def test_broken_tables_are_errors(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        read(path)


def test_a_last_line_that_was_cut_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Step,a - reward,b - reward\r\n1,0.5,0.25\r\n2,0.7")
    one, two = read(path)
    assert one.table.column("reward").tolist() == [0.5]
    assert one.warnings == two.warnings == ("the last line, row 3, is cut: part of no run",)


def test_the_table_of_runs_beside_a_chart_holds_their_settings(tmp_path):
    rows = [f'"{n}","{0.2 + 0.01 * n}","{0.4 + 0.01 * n}"' for n in range(1, 31)]
    header = '"Step","low - train/reward","high - train/reward"'
    (tmp_path / "wandb_export_reward.csv").write_text("\n".join([header, *rows]))
    table = [
        '"Name","State","Notes","User","Created","Runtime","num_generations","learning_rate","model_name_or_path","beta"',
        '"low","finished","-","me","2025-09-01","100","8","1e-6","Qwen/Qwen2.5-3B","0.04"',
        '"high","finished","-","me","2025-09-01","100","16","3e-6","Qwen/Qwen2.5-3B","0.0"',
        '"other","crashed","-","me","2025-09-01","100","4","1e-4","Qwen/Qwen2.5-3B","0.0"',
    ]
    (tmp_path / "wandb_runs.csv").write_text("\n".join(table))
    runs = {run.id.rpartition(":")[2]: run for run in read_runs(tmp_path)}
    assert set(runs) == {"low", "high"}
    settings = runs["high"].hyperparameters
    assert (settings.group_size, settings.learning_rate) == (16, 3e-6)
    assert runs["low"].hyperparameters.kl_coefficient == 0.04
    assert runs["low"].model == "Qwen/Qwen2.5-3B"
    # It was read; alone it is no log.
    (told,) = [item for item in inspect(tmp_path).unread if item.path.name == "wandb_runs.csv"]
    assert told.reason == SIDECAR
    (tmp_path / "wandb_export_reward.csv").unlink()
    (told,) = inspect(tmp_path).unread
    assert told.reason not in (SIDECAR, "")
