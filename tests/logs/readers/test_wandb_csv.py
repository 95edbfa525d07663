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
