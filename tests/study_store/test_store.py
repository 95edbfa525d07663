"""A team's store: what is written is there, whoever else writes and whatever the server does."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine, insert, select, update
from writers import numbered

from advisor.errors import InputError
from advisor.study import store as store_module
from advisor.study import store_schema
from advisor.study.compared_records import compare_records
from advisor.study.store import open_store

CLIENTS, PROCESSES = 50, 2


def engine_of(url):
    return create_engine(url.replace("postgresql://", "postgresql+psycopg://"))


def test_a_study_comes_back_as_it_was_written_and_counts_once(url, record):
    with open_store(url) as store:
        assert store.put(record) is True
        assert store.put(record) is False
        assert store.records() == [record]
    with open_store(url) as store:
        assert store.find("study-may") == record
        assert store.find(record.id[:6]) == record


def made(record, name, day, **target):
    answer = record.answer.model_copy(
        update={
            "target": replace(record.answer.target, **target),
            "provenance": record.answer.provenance.model_copy(
                update={"created": f"2026-11-{day:02}T00:00:00+00:00"}
            ),
        }
    )
    return record.model_copy(update={"id": f"id-{name}", "name": name, "answer": answer})


def test_studies_are_filtered_and_the_latest_comes_first(url, record):
    with open_store(url) as store:
        for one in (
            made(record, "a", 1, task="sort"),
            made(record, "b", 3, task="gsm8k"),
            made(record, "c", 2, task="gsm8k", model="large"),
        ):
            store.put(one)
        assert [one["name"] for one in store.lines()] == ["b", "c", "a"]
        assert [one.name for one in store.records()] == ["b", "c", "a"]
        assert store.lines()[2] == made(record, "a", 1, task="sort").line
        assert [one["name"] for one in store.lines(task="gsm8k")] == ["b", "c"]
        assert [one["name"] for one in store.lines(task="gsm8k", model="large")] == ["c"]
        assert [one["name"] for one in store.lines(since="2026-11-02")] == ["b", "c"]
        assert store.lines(kind="infeasible") == []


def test_a_study_that_is_not_there_or_not_one(url, record):
    with open_store(url) as store:
        for name in ("a", "b"):
            store.put(made(record, name, 1))
        with pytest.raises(InputError, match="holds no study 'c'"):
            store.find("c")
        with pytest.raises(InputError, match="2 studies have ids that begin with 'id-'"):
            store.find("id-")
        with pytest.raises(InputError, match="holds no study '%'"):
            store.find("%")


def test_two_studies_are_compared_by_what_is_stored(record):
    other = made(record, "other", 5, task="gsm8k")
    other = other.model_copy(update={"pilots": other.pilots[1:]})
    found = compare_records(record, other)
    lines = {line.name: line for section in found.sections for line in section.lines}
    assert lines["task"].differs
    assert not lines["model"].differs
    assert lines[record.pilots[0].id].shown[1] == "-"
    assert not compare_records(record, record).differs


# Schema -------------------------------------------------------------------------------------------


def test_an_older_store_is_migrated_and_keeps_what_it_holds(url, record):
    engine = engine_of(url)
    with engine.begin() as connection:
        assert store_schema.migrate(connection, 1) == 0
    row = {k: v for k, v in record.row.items() if k in store_schema.studies.c}
    answer = record.answer.model_dump_json()
    with engine.begin() as connection:
        assert store_schema.version_of(connection) == 1
        old = {**row, "id": "old", "origin": "x", "answer": answer, "line": "{}"}
        connection.execute(insert(store_schema.studies).values(old))
    engine.dispose()
    with open_store(url) as store:
        (kept,) = store.records()
        assert (kept.id, kept.pilots) == ("old", ())
        store.put(record)
        assert store.find(record.id).pilots == record.pilots
    engine = engine_of(url)
    with engine.begin() as connection:
        assert store_schema.version_of(connection) == store_schema.VERSION
    engine.dispose()


def test_a_store_of_a_later_version_is_refused_and_not_touched(url, record):
    with open_store(url) as store:
        store.put(record)
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.execute(update(store_schema.schema).values(version=99))
    with pytest.raises(InputError, match="schema 99, made by a later version") as refused:
        open_store(url).__enter__()
    assert refused.value.argument == "store"
    with engine.begin() as connection:
        assert connection.execute(select(store_schema.schema.c.version)).scalar_one() == 99
    engine.dispose()


def test_a_server_that_is_not_there_is_one_sentence_without_the_password():
    pytest.importorskip("psycopg", reason="no PostgreSQL driver is installed")
    url = "postgresql://me:hunter2@127.0.0.1:9/team"
    with pytest.raises(
        InputError, match=r"me:\*\*\*@127\.0\.0\.1:9/team cannot be reached"
    ) as said:
        open_store(url).__enter__()
    assert "hunter2" not in str(said.value)
    assert "\n" not in str(said.value)


@pytest.mark.timeout(60)
def test_a_server_that_never_answers_is_not_waited_for(monkeypatch):
    pytest.importorskip("psycopg", reason="no PostgreSQL driver is installed")
    monkeypatch.setattr(store_module, "CONNECT_SECONDS", 2)  # the least that libpq takes
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/team"
        with pytest.raises(InputError, match="cannot be reached"), open_store(url):
            pass


@pytest.mark.parametrize("url", ["team.db", "mysql://host/x", "postgres//x"])
def test_what_is_no_store_is_refused(url):
    with pytest.raises(InputError, match="is no store"):
        open_store(url).__enter__()


# Many writers -------------------------------------------------------------------------------------


def wait_for_all_clients(url, writers, past=frozenset()):
    """Wait until each client has written something new; all ids that are there then."""
    engine = engine_of(url)
    while True:
        assert all(one.poll() is None for one in writers)
        with engine.begin() as connection:
            ids = set(connection.execute(select(store_schema.studies.c.id)).scalars())
        if len({one.rpartition("-")[0] for one in ids - past}) == CLIENTS:
            engine.dispose()
            return ids
        time.sleep(0.2)


@pytest.mark.long
def test_fifty_clients_lose_nothing_though_the_server_is_killed_and_restarts(
    server, record, tmp_path
):
    url = server.make_database("fifty")
    (tmp_path / "record.json").write_text(record.model_dump_json(), encoding="utf-8")
    script, stop = Path(__file__).parent / "writers.py", tmp_path / "stop"
    with open_store(url) as store:
        writers = []
        for number in range(PROCESSES):
            names = ",".join(f"{number}.{n}" for n in range(CLIENTS // PROCESSES))
            words = [url, tmp_path / "record.json", names, stop, tmp_path / f"{number}"]
            writers.append(subprocess.Popen([sys.executable, script, *words]))
        try:
            before = wait_for_all_clients(url, writers)
            server.stop()
            time.sleep(1)
            server.start()
            wait_for_all_clients(url, writers, past=before)
            stop.touch()
            assert [one.wait() for one in writers] == [0] * PROCESSES
        finally:
            for one in writers:
                one.kill()
        said = [one for n in range(PROCESSES) for one in (tmp_path / f"{n}").read_text().split()]
        there = {one.id: one for one in store.records()}
    assert len(set(said)) == len(said) > CLIENTS
    assert set(said) == set(there)
    assert all(one.pilots == record.pilots for one in there.values())


@pytest.mark.long
def test_a_server_that_stays_away_ends_a_write_with_a_sentence(server, record, monkeypatch):
    url = server.make_database("away")
    monkeypatch.setattr(store_module, "PATIENCE_SECONDS", 1.0)
    with open_store(url) as store:
        server.stop()
        try:
            with pytest.raises(InputError, match="cannot be reached"):
                store.put(numbered(record, "1"))
        finally:
            server.start()
        assert store.put(numbered(record, "1"))
