"""Stores of trackers that are not read as files: one sentence says what reads them."""

from __future__ import annotations

import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from advisor import inspect, read_runs
from advisor.errors import InputError
from advisor.runs.logs.readers import known_formats

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


def said(path: Path) -> list[str]:
    """Reasons for files that were no log's part by their own fault."""
    found = inspect(path)
    assert found.runs == []
    return [item.reason for item in found.unread if "client" in item.reason]


def test_a_folder_of_mlflow_is_said_once(tmp_path: Path) -> None:
    store = mlruns(tmp_path)
    sentence = (
        "this is a folder of MLflow, read by its own client. "
        "Install 'grpo-advisor[mlflow]', then run "
        f"MLFLOW_ALLOW_FILE_STORE=true advisor inspect 'mlflow:{store}#EXPERIMENT'"
    )
    for place in (tmp_path, store, store / "7", store / "7" / ("a" * 32)):
        assert said(place) == [sentence]


def test_a_folder_of_mlflow_seen_from_within_is_named_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = mlruns(tmp_path)
    monkeypatch.chdir(store / "7" / ("a" * 32))
    (sentence,) = said(Path("."))
    assert f"'mlflow:{store}#EXPERIMENT'" in sentence


def test_a_database_is_said_with_both_names(tmp_path: Path) -> None:
    for name in ("mlflow.db", "grpo.sqlite", "any.sqlite3"):
        path = database(tmp_path / name, "CREATE TABLE metrics (name TEXT)")
        for place in (tmp_path, path):
            (sentence,) = said(place)
            assert f"'mlflow:sqlite:///{path}#EXPERIMENT'" in sentence
            assert f"'trackio:{path.stem}'" in sentence
            assert len(sentence.split()) <= 45
        path.unlink()


@pytest.mark.parametrize("ending", ["parquet", "pq"])
def test_parquet_must_be_converted(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"log.{ending}"
    path.write_bytes(b"PAR1" + bytes(20) + b"PAR1")
    with pytest.raises(InputError, match=r"Parquet is not read.*pandas.read_parquet"):
        read_runs(path)
    (item,) = inspect(tmp_path).unread
    assert item.reason.startswith("Parquet is not read. Convert it: pandas.read_parquet(")


def test_other_databases_and_settings_are_no_stores(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("CREATE TABLE metrics (run_uuid TEXT)")
    (tmp_path / "meta.yaml").write_text("lifecycle_stage: active\nname: mine\n")
    assert said(tmp_path) == []


def test_logs_beside_a_store_are_read(tmp_path: Path) -> None:
    mlruns(tmp_path)
    (tmp_path / "log.csv").write_text(LOG)
    (run,) = read_runs(tmp_path)
    (warning,) = run.warnings
    assert "this is a folder of MLflow" in warning
    assert len(inspect(tmp_path).runs) == 1


def test_a_store_in_an_archive_must_be_unpacked(tmp_path: Path) -> None:
    store = mlruns(tmp_path / "here")
    with zipfile.ZipFile(tmp_path / "runs.zip", "w") as archive:
        for path in sorted(store.rglob("*")):
            archive.write(path, path.relative_to(tmp_path / "here"))
    (sentence,) = said(tmp_path / "runs.zip")
    assert "Unpack it first. Install" in sentence


def test_a_store_alone_is_an_error_and_no_known_format(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="this is a folder of MLflow"):
        read_runs(mlruns(tmp_path))
    assert "MLflow" not in known_formats()
    assert "Trackio" not in known_formats()
