"""MLflow's folders and its database."""

from __future__ import annotations

import sqlite3
import zipfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from advisor.errors import InputError
from advisor.logfiles import limits
from advisor.logfiles.columns import Columns
from advisor.logfiles.log_file import on_disk, open_archive
from advisor.logfiles.logged import Logged, Reader
from advisor.logs.trackers import mlflow, mlflow_db
from advisor.testing.reader_conformance import ReaderConformance

RUN = "2975f86cab3240c0a24a4ab353814cf3"
START = 1_795_271_248_000
META = f"lifecycle_stage: active\nrun_id: {RUN}\nrun_name: 'swift-ant-1'\nstart_time: 1\n"


def store(folder: Path, metrics: dict[str, str], meta: str = META, **files: str) -> Path:
    """Folder of a run; lines of metrics are ``value step``, a second apart."""
    run = folder / "mlruns" / "0" / RUN
    for key, lines in metrics.items():
        path = run / "metrics" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        stamped = (f"{START + 1000 * n} {line}\n" for n, line in enumerate(lines.split("\n")))
        path.write_text("".join(stamped))
    for name, text in files.items():
        path = run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if meta:
        (run / "meta.yaml").write_text(meta)
    return run


def read(run: Path, **mapped: str) -> Logged:
    logs = [on_disk(path) for path in sorted(run.rglob("*")) if path.is_file()]
    mine = [log for log in logs if mlflow.READER.claims(log)]
    assert {mlflow.READER.group(log) for log in mine} == {run}
    (logged,) = mlflow.READER.read(mine, Columns(mapped))
    return logged


class TestMlflow(ReaderConformance):
    reader = mlflow.READER

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        lines = "\n".join(f"{reward} {n}" for n, reward in enumerate(rewards, start=1))
        return store(folder, {"reward": lines, "train/loss": lines}) / "metrics" / "reward"


class TestMlflowDatabase(ReaderConformance):
    reader = mlflow_db.READER

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        rows = [("r1", "reward", reward, n, n, 0) for n, reward in enumerate(rewards, start=1)]
        return database(folder / "mlflow.db", rows)


def database(path: Path, rows: Sequence[tuple[object, ...]], *more: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TABLE runs (run_uuid VARCHAR(32), name VARCHAR(250), lifecycle_stage VARCHAR)"
        )
        connection.execute(
            "CREATE TABLE metrics (key VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp "
            "BIGINT NOT NULL, run_uuid VARCHAR(32) NOT NULL, step BIGINT DEFAULT '0' NOT NULL, "
            "is_nan BOOLEAN DEFAULT '0' NOT NULL, CONSTRAINT metric_pk PRIMARY KEY (key, "
            "timestamp, step, run_uuid, value, is_nan))"
        )
        connection.execute("CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT)")
        connection.executemany(
            "INSERT INTO metrics (run_uuid, key, value, timestamp, step, is_nan) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            rows,
        )
        for statement in more:
            connection.execute(statement)
        connection.commit()
    return path


def read_all(reader: Reader, path: Path) -> list[Logged]:
    return list(reader.read([on_disk(path)], Columns()))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("metrics/reward", "reward 0.5 1\n"),
        ("metrics/reward", "1 0.5 3\n"),
        ("metrics/reward", "1795271248107 0.5 3 b5db97dd689ec4cb3ae84 \n"),
        ("metrics/reward", "1795271248107,0.5,3\n"),
        ("metrics/reward.json", '{"reward": 1}'),
        ("values/reward", "1795271248107 0.5 3\n"),
        ("metrics", "1795271248107 0.5 3\n"),
        ("metrics/reward", "\n1795271248107 0.5 3\n"),
    ],
)
def test_other_files_are_not_claimed(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert not mlflow.READER.claims(on_disk(path))


def test_metrics_of_a_logged_model_are_not_claimed(tmp_path: Path) -> None:
    path = tmp_path / "mlruns" / "0" / "models" / "m-1" / "metrics" / "reward"
    path.parent.mkdir(parents=True)
    path.write_text(f"1795271248107 0.5 3 {RUN}\n")
    assert not mlflow.READER.claims(on_disk(path))


@pytest.mark.parametrize(
    "line", ["1 0.5 3", "1 -1e-06 0", "1 nan 1", "1 inf 2", "1 0.5", "1 5 3 d e"]
)
def test_a_run_is_claimed_by_its_lines(tmp_path: Path, line: str) -> None:
    run = store(tmp_path, {"reward": ""})
    (run / "metrics" / "reward").write_text(line + "\n")
    assert mlflow.READER.claims(on_disk(run / "metrics" / "reward"))
    (run / "meta.yaml").unlink()
    (run / "metrics" / "reward").write_text(f"1795271248{line}\n")
    assert mlflow.READER.claims(on_disk(run / "metrics" / "reward"))


def test_metrics_meet_in_one_row_per_step(tmp_path: Path) -> None:
    run = store(
        tmp_path,
        {
            "reward": "0.1 10\n0.2 20\n0.3 30",
            "rewards/exact/mean": "0.5 10\n0.6 20\nnan 30",
            "eval_reward": "0.7 20",
        },
    )
    table = read(run).table
    assert table.column("step").tolist() == [10, 20, 30]
    assert table.column("reward").tolist() == [0.1, 0.2, 0.3]
    assert table.column("rewards/exact/mean")[:2].tolist() == [0.5, 0.6]
    assert table.has("rewards/exact/mean").all()
    assert table.has("eval_reward").tolist() == [False, True, False]


def test_steps_logged_again_are_rows_of_their_own(tmp_path: Path) -> None:
    lines = "0.1 1\n0.2 2\n0.3 3\n0.8 2\n0.9 3\n1.0 4"
    table = read(store(tmp_path, {"reward": lines, "loss": lines})).table
    assert table.column("step").tolist() == [1, 2, 3, 2, 3, 4]
    assert table.column("reward").tolist() == table.column("loss").tolist()
    assert table.column("loss").tolist() == [0.1, 0.2, 0.3, 0.8, 0.9, 1.0]


def test_values_without_a_step_are_rows_by_order(tmp_path: Path) -> None:
    logged = read(store(tmp_path, {"reward": "0.1 0\n0.2 0\n0.3 0", "loss": "1 0\n2 0\n3 0"}))
    assert "step" not in logged.table.keys
    assert logged.table.column("reward").tolist() == [0.1, 0.2, 0.3]
    assert logged.table.column("loss").tolist() == [1, 2, 3]
    assert logged.assumptions == (
        "loss, reward: logged without a step, so rows follow their order",
    )


def test_values_without_a_step_stay_apart_from_those_with_one(tmp_path: Path) -> None:
    table = read(
        store(tmp_path, {"reward": "0.1 0\n0.2 0\n0.3 0", "eval_reward": "0.5 0\n0.6 9"})
    ).table
    assert table.column("step")[table.has("eval_reward")].tolist() == [0, 9]
    assert not (table.has("step") & table.has("reward")).any()
    assert table.column("reward")[table.has("reward")].tolist() == [0.1, 0.2, 0.3]


def test_one_step_is_a_step(tmp_path: Path) -> None:
    logged = read(store(tmp_path, {"reward": "0.1 7", "loss": "1 7"}))
    assert logged.table.column("step").tolist() == [7]
    assert logged.assumptions == ()


def test_parameters_and_name(tmp_path: Path) -> None:
    run = store(
        tmp_path,
        {"reward": "0.1 1"},
        **{
            "params/learning_rate": "1e-06",
            "params/data/train_batch_size": "64",
            "params/empty": "",
            "params/long": "x" * 9000,
            "tags/mlflow.runName": "seven",
            "artifacts/notes.txt": "1795271248107 0.5 3",
        },
    )
    logged = read(run)
    assert logged.label == "seven"
    assert not logged.has_own_id
    assert logged.settings == {
        "data.train_batch_size": "64",
        "empty": "",
        "learning_rate": "1e-06",
        "long": "",
    }
    (run / "tags" / "mlflow.runName").unlink()
    assert read(run).label == "swift-ant-1"
    (run / "meta.yaml").unlink()
    assert read(run).label == RUN


def test_a_run_in_an_archive_has_its_parameters(tmp_path: Path) -> None:
    run = store(tmp_path, {"reward": "0.1 1"}, **{"params/a/b": "1", "params_of_mine": "2"})
    with zipfile.ZipFile(tmp_path / "runs.zip", "w") as archive:
        for path in sorted(run.rglob("*")):
            archive.write(path, path.relative_to(tmp_path))
    members = open_archive(on_disk(tmp_path / "runs.zip"))
    mine = [member for member in members if mlflow.READER.claims(member)]
    (logged,) = mlflow.READER.read(mine, Columns())
    assert logged.settings == {"a.b": "1"}
    assert logged.label == "swift-ant-1"


def test_folders_named_metrics_above_the_store_do_not_matter(tmp_path: Path) -> None:
    run = store(tmp_path / "metrics", {"metrics/reward": "0.1 1"})
    (log,) = [on_disk(run / "metrics" / "metrics" / "reward")]
    assert mlflow.READER.claims(log)
    assert mlflow.READER.group(log) == run
    (logged,) = mlflow.READER.read([log], Columns({"reward": "metrics/reward"}))
    assert logged.table.column("metrics/reward").tolist() == [0.1]


def test_a_deleted_run_says_so(tmp_path: Path) -> None:
    meta = META.replace("active", "deleted")
    assert "deleted" in read(store(tmp_path, {"reward": "0.1 1"}, meta)).warnings[0]


def test_a_cut_last_line_is_left_out(tmp_path: Path) -> None:
    run = store(tmp_path, {"reward": "0.1 1\n0.2 20"})
    path = run / "metrics" / "reward"
    path.write_text(path.read_text()[:-2])
    logged = read(run)
    assert logged.table.column("step").tolist() == [1]
    assert "cut" in logged.warnings[0]


def test_broken_lines_are_errors(tmp_path: Path) -> None:
    run = store(tmp_path, {"reward": "0.1 1\nmuch 2\n0.3 3"})
    with pytest.raises(InputError, match=r"row 2.*not a time, a value and a step"):
        read(run)
    run = store(tmp_path, {"reward": "", "other": "0.1 1"})
    (run / "metrics" / "reward").write_text("")
    with pytest.raises(InputError, match="no values of known metrics"):
        read(run)


def test_values_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = store(tmp_path, {"reward": "0.1 1\n0.2 2\n0.3 3"})
    path = database(tmp_path / "m.db", [("r", "reward", n, n, n, 0) for n in range(3)])
    monkeypatch.setattr(limits, "MOST_MLFLOW_POINTS", 2)
    with pytest.raises(InputError, match="more than 2 values"):
        read(run)
    with pytest.raises(InputError, match="more than 2 values"):
        read_all(mlflow_db.READER, path)


def test_a_database_holds_several_runs(tmp_path: Path) -> None:
    rows = [
        ("aaaaaaaa11", "reward", 0.1, 1, 1, 0),
        ("bbbbbbbb22", "reward", 0.5, 1, 5, 0),
        ("aaaaaaaa11", "reward", 0.2, 2, 2, 0),
        ("aaaaaaaa11", "grad_norm", 0.0, 2, 2, 1),
        ("aaaaaaaa11", "my/own", 0.0, 2, 2, 0),
        ("cccccccc33", "reward", 0.5, 1, 5, 0),
        ("dddddddd44", "my/own", 0.5, 1, 5, 0),
    ]
    path = database(
        tmp_path / "mlflow.db",
        rows,
        "INSERT INTO runs VALUES ('aaaaaaaa11', 'same', 'active')",
        "INSERT INTO runs VALUES ('bbbbbbbb22', 'same', 'active')",
        "INSERT INTO runs VALUES ('cccccccc33', 'gone', 'deleted')",
        "INSERT INTO params VALUES ('optim/lr', '1e-06', 'aaaaaaaa11')",
        "INSERT INTO params VALUES ('optim/lr', '2e-06', 'cccccccc33')",
    )
    assert mlflow_db.READER.claims(on_disk(path))
    one, two = read_all(mlflow_db.READER, path)
    assert (one.label, two.label) == ("same (aaaaaaaa)", "same (bbbbbbbb)")
    assert one.table.column("step").tolist() == [1, 2]
    assert one.table.column("reward").tolist() == [0.1, 0.2]
    assert one.table.has("grad_norm").tolist() == [False, True]
    assert str(one.table.column("grad_norm")[1]) == "nan"
    assert "my/own" in one.table.keys
    assert one.settings == {"optim.lr": "1e-06"}
    assert two.settings == {}


def test_a_database_without_known_metrics_is_an_error(tmp_path: Path) -> None:
    path = database(tmp_path / "m.db", [("r", "my/own", 0.5, 1, 5, 0)])
    with pytest.raises(InputError, match="no run in the database"):
        read_all(mlflow_db.READER, path)


def test_other_databases_are_not_claimed(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE metrics (run_name TEXT, metrics TEXT)")
        connection.commit()
    assert not mlflow_db.READER.claims(on_disk(path))
    with pytest.raises(InputError, match="MLflow's columns"):
        read_all(mlflow_db.READER, path)
