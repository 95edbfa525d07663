"""Trackio's databases."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from processor_time import at_most

from advisor.errors import InputError
from advisor.logfiles import database, limits
from advisor.logfiles.columns import Columns
from advisor.logfiles.log_file import on_disk, open_archive
from advisor.logfiles.logged import Logged
from advisor.logs.trackers.trackio import READER
from advisor.testing.reader_conformance import ReaderConformance

NEWEST = (
    "CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, timestamp "
    "TEXT NOT NULL, run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL)",
    "CREATE TABLE configs (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, run_name "
    "TEXT NOT NULL, config TEXT NOT NULL, created_at TEXT NOT NULL, UNIQUE(run_id))",
)
BEFORE_IDS = tuple(
    sql.replace("run_id TEXT NOT NULL, ", "").replace("(run_id)", "(run_name)") for sql in NEWEST
)
FIRST = (
    "CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp DATETIME DEFAULT "
    "CURRENT_TIMESTAMP, project_name TEXT NOT NULL, run_name TEXT NOT NULL, metrics TEXT NOT NULL)",
    "CREATE TABLE configs (project_name TEXT NOT NULL, run_name TEXT NOT NULL, config TEXT NOT "
    "NULL, PRIMARY KEY (project_name, run_name))",
)


def make(path: Path, *schema: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    for statement in schema:
        connection.execute(statement)
    return connection


def log(connection: sqlite3.Connection, step: int, metrics: dict[str, Any], run: str = "a") -> None:
    connection.execute(
        "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?, ?)",
        (f"id-of-{run}", "2026-01-01", run, step, json.dumps(metrics).encode()),
    )


def read(path: Path) -> list[Logged]:
    return list(READER.read([on_disk(path)], Columns()))


class TestTrackio(ReaderConformance):
    reader = READER

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        path = folder / "project.db"
        with closing(make(path, *NEWEST)) as connection:
            for n, reward in enumerate(rewards, start=1):
                log(connection, n - 1, {"train/reward": reward, "train/global_step": n})
            connection.commit()
        return path


def test_other_databases_are_not_claimed(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(make(path, "CREATE TABLE metrics (name TEXT, value REAL)")) as connection:
        connection.commit()
    assert not READER.claims(on_disk(path))
    with pytest.raises(InputError, match="no table 'metrics'"):
        read(path)


def test_a_schema_far_into_the_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    filler = [f"CREATE TABLE t{n} (a TEXT, b TEXT DEFAULT '{'x' * 400}')" for n in range(100)]
    with closing(make(path, *filler, *NEWEST)) as connection:
        connection.commit()
    assert b"metrics" not in path.read_bytes()[:65536]
    assert READER.claims(on_disk(path))


def test_runs_have_their_names_and_settings(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    with closing(make(path, *NEWEST)) as connection:
        for step in range(3):
            for run in ("a", "b"):
                log(connection, step, {"reward": step / 8, "kl": "NaN"}, run)
        config = {
            "learning_rate": 1e-6,
            "peft_config": {"default": {"r": 16, "target_modules": ["q"]}},
            "_name_or_path": "Qwen/Qwen3-1.7B",
            "_Username": "someone",
        }
        connection.execute(
            "INSERT INTO configs (run_id, run_name, config, created_at) VALUES (?, ?, ?, ?)",
            ("id-of-b", "b", json.dumps(config), "2026"),
        )
        connection.commit()
    one, two = read(path)
    assert (one.label, two.label) == ("a", "b")
    assert one.settings == {}
    assert two.settings == {
        "learning_rate": 1e-6,
        "peft_config.default.r": 16,
        "_name_or_path": "Qwen/Qwen3-1.7B",
    }
    assert two.table.column("reward").tolist() == [0, 0.125, 0.25]
    assert two.table.has("kl").all()
    assert two.table.numbers.tolist() == [2, 4, 6]
    assert "Trackio's own counter" in two.assumptions[0]


def test_runs_of_one_name_are_told_apart_by_id(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    with closing(make(path, *NEWEST)) as connection:
        log(connection, 0, {"reward": 0.5}, "x")
        log(connection, 0, {"reward": 0.25}, "y")
        connection.execute("UPDATE metrics SET run_name = 'same'")
        connection.commit()
    assert [run.label for run in read(path)] == ["same (id-of-x)", "same (id-of-y)"]


def test_a_run_that_was_renamed_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    with closing(make(path, *NEWEST)) as connection:
        for step in range(4):
            log(connection, step, {"reward": step / 8}, "x")
        connection.execute("UPDATE metrics SET run_name = 'new' WHERE step > 1")
        connection.commit()
    (run,) = read(path)
    assert run.label == "new"
    assert len(run.table) == 4


def test_files_without_ids_are_read(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    with closing(make(path, *BEFORE_IDS)) as connection:
        for step in range(3):
            connection.execute(
                "INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES ('t', 'a', ?, ?)",
                (step, json.dumps({"train/reward": step / 8, "train/global_step": step * 5})),
            )
        connection.execute(
            "INSERT INTO configs (run_name, config, created_at) VALUES ('a', '{\"lr\": 1}', 't')"
        )
        connection.commit()
    assert READER.claims(on_disk(path))
    (run,) = read(path)
    assert run.label == "a"
    assert run.table.column("step").tolist() == [0, 5, 10]
    assert run.settings == {"lr": 1}


def test_the_first_version_kept_all_projects_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "trackio.db"
    with closing(make(path, *FIRST)) as connection:
        for project in ("p", "q"):
            for step in range(3):
                connection.execute(
                    "INSERT INTO metrics (project_name, run_name, metrics) VALUES (?, 'a', ?)",
                    (project, json.dumps({"reward": step / 8})),
                )
        connection.commit()
    assert READER.claims(on_disk(path))
    one, two = read(path)
    assert (one.label, two.label) == ("p/a", "q/a")
    assert "step" not in one.table.keys


def test_rows_that_are_not_merged_yet_are_read_and_nothing_is_written(tmp_path: Path) -> None:
    live = tmp_path / "live"
    live.mkdir()
    with closing(make(live / "p.db", "PRAGMA journal_mode = WAL", *NEWEST)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.commit()
        for step in range(5):
            log(connection, step, {"reward": step / 8})
        connection.commit()
        copy = tmp_path / "copy"
        copy.mkdir()
        for name in ("p.db", "p.db-wal"):
            (copy / name).write_bytes((live / name).read_bytes())
    assert (copy / "p.db").stat().st_size < (copy / "p.db-wal").stat().st_size
    before = {path: path.read_bytes() for path in copy.iterdir()}
    assert READER.claims(on_disk(copy / "p.db"))
    (run,) = read(copy / "p.db")
    assert len(run.table) == 5
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
        for path in before:
            archive.write(path, path.name)
    member = open_archive(on_disk(tmp_path / "p.zip"))[0]
    assert READER.claims(member)
    (run,) = READER.read([member], Columns())
    assert len(run.table) == 5
    assert {path: path.read_bytes() for path in copy.iterdir()} == before


def test_reading_leaves_a_database_in_wal_mode_alone(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    with closing(make(path, "PRAGMA journal_mode = WAL", *NEWEST)) as connection:
        log(connection, 0, {"reward": 0.5})
        connection.commit()
    before = path.read_bytes()
    read(path)
    assert [p.name for p in tmp_path.iterdir()] == ["p.db"]
    assert path.read_bytes() == before


def test_a_view_that_never_ends_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    view = (
        "CREATE VIEW metrics AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT i AS run_name, i AS metrics, i AS step FROM n"
    )
    with closing(make(path, view)) as connection:
        connection.commit()
    with at_most(5), pytest.raises(InputError, match="no table 'metrics'"):
        read(path)


def test_columns_that_compute_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    schema = (
        "CREATE TABLE metrics (run_name TEXT, step INTEGER, big INTEGER, "
        "metrics TEXT AS (hex(zeroblob(big))))"
    )
    with closing(make(path, schema)) as connection:
        connection.execute("INSERT INTO metrics (run_name, step, big) VALUES ('a', 1, 10)")
        connection.commit()
    with pytest.raises(InputError, match="no table 'metrics'"):
        read(path)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT hex(run_name) FROM metrics",
        "DELETE FROM metrics",
        "ATTACH 'other.db' AS other",
        "PRAGMA journal_mode = DELETE",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
    ],
)
def test_an_open_database_only_gives_its_rows(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "p.db"
    with closing(make(path, *NEWEST)) as connection:
        connection.commit()
    with (
        pytest.raises(InputError, match=r"not authorized|prohibited"),
        database.open_database(on_disk(path)) as opened,
    ):
        opened.execute(statement)


def test_values_and_time_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.db"
    with closing(make(path, *NEWEST)) as connection:
        for step in range(50):
            log(connection, step, {"reward": 0.5, "text": "x" * 5000})
        connection.commit()
    (run,) = read(path)
    assert len(run.table) == 50
    monkeypatch.setattr(limits, "MOST_TRACKIO_ROWS", 49)
    with pytest.raises(InputError, match="more than 49 rows"):
        read(path)
    monkeypatch.undo()
    monkeypatch.setattr(limits, "MOST_SQLITE_VALUE_BYTES", 4000)
    with pytest.raises(InputError, match="too big"):
        read(path)
    monkeypatch.undo()
    monkeypatch.setattr(limits, "MOST_SQLITE_QUERY_SECONDS", -1.0)
    monkeypatch.setattr(limits, "SQLITE_INSTRUCTIONS_PER_CHECK", 10)
    with pytest.raises(InputError, match="interrupted"):
        read(path)


@pytest.mark.parametrize("metrics", ["[1]", "{", "5", "[" * 100_000])
def test_rows_that_are_no_objects_are_errors(tmp_path: Path, metrics: str) -> None:
    path = tmp_path / "p.db"
    with closing(make(path, *NEWEST)) as connection:
        log(connection, 0, {"reward": 0.5})
        log(connection, 1, {"reward": 0.5})
        connection.execute("UPDATE metrics SET metrics = ? WHERE step = 1", (metrics,))
        connection.commit()
    with pytest.raises(InputError, match="row 2"):
        read(path)


def test_a_database_without_rows_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    with closing(make(path, *NEWEST)) as connection:
        connection.commit()
    with pytest.raises(InputError, match="no rows"):
        read(path)
