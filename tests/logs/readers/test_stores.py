"""Stores of trackers and Parquet are not read as files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from advisor import inspect, read_runs
from advisor.errors import InputError

LOG = "step,reward\n" + "".join(f"{n},{n / 100}\n" for n in range(1, 41))


def mlruns(folder: Path) -> Path:
    """Folder of MLflow with two experiments, one of them with two runs."""
    store = folder / "mlruns"
    for number in ("0", "7"):
        (store / number).mkdir(parents=True)
        text = f"artifact_location: x\nexperiment_id: '{number}'\nlifecycle_stage: active\n"
        (store / number / "meta.yaml").write_text(text)
    for run in ("a" * 32, "b" * 32):
        place = store / "7" / run
        (place / "metrics" / "train").mkdir(parents=True)
        values = "".join(f"{1795271248107 + n} 0.{n} {n}\n" for n in range(1, 9))
        (place / "metrics" / "train" / "reward").write_text(values)
        (place / "meta.yaml").write_text(
            f"artifact_uri: x\nexperiment_id: '7'\nlifecycle_stage: active\nrun_id: {run}\n"
        )
    return store


def database(path: Path, *schema: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        for statement in schema:
            connection.execute(statement)
        connection.commit()
    return path


@pytest.mark.parametrize("ending", ["parquet", "pq"])
def test_parquet_must_be_converted(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"log.{ending}"
    path.write_bytes(b"PAR1" + bytes(20) + b"PAR1")
    with pytest.raises(InputError, match=r"Parquet is not read.*pandas.read_parquet"):
        read_runs(path)
    (item,) = inspect(tmp_path).unread
    assert item.reason.startswith("Parquet is not read. Convert it: pandas.read_parquet(")


def test_stores_hold_no_run_and_hide_none(tmp_path: Path) -> None:
    mlruns(tmp_path)
    database(tmp_path / "mlflow.db", "CREATE TABLE metrics (name TEXT)")
    assert inspect(tmp_path).runs == []
    (tmp_path / "log.csv").write_text(LOG)
    (run,) = inspect(tmp_path).runs
    assert run.step.size == 40
    with pytest.raises(InputError, match="binary"):
        read_runs(tmp_path / "mlflow.db")
