"""The same on a Dask cluster whose workers die, are of another version, or are not there."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clusters import cluster
from mapped_functions import deadly, gated_third, picky, third
from test_mapped import gated_items, items_of

from advisor.common.version import VERSION
from advisor.engine import Engine, engine_of, mapped
from advisor.engine.mapping import WAITING
from advisor.engine.outcome import LOST
from advisor.errors import InputError

pytest.importorskip("distributed", reason="Dask is not installed: grpo-advisor[dask]")
pytestmark = pytest.mark.filterwarnings("ignore")  # Dask's own


def on(own) -> Engine:
    return engine_of(f"dask://{own.address}")


@contextmanager
def once_kept(count: int, folder: Path, act: Callable[[], None]) -> Iterator[None]:
    """Do something as soon as so many results are kept, while the block runs."""
    kept, ended = folder / "items.jsonl", threading.Event()

    def watch() -> None:
        while not ended.wait(0.01):
            if kept.exists() and len(kept.read_bytes().splitlines()) >= count:
                act()
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_results_are_those_of_processes_though_a_worker_is_killed_on_the_way(tmp_path):
    with cluster(2) as own:
        items = gated_items(tmp_path, 60, free=20)

        def kill_one() -> None:
            own.workers[0].kill()
            own.workers[0].wait()
            (tmp_path / "open").touch()

        with once_kept(10, tmp_path, kill_one):
            found = mapped(gated_third, items, task="t", engine=on(own), keep=tmp_path)
        assert own.workers[0].poll() == -9
        assert own.workers[1].poll() is None
    assert [one.result for one in found.outcomes] == [third(n) for n in range(60)]
    assert len((tmp_path / "items.jsonl").read_text().splitlines()) == 60


def test_failures_are_named(tmp_path):
    with cluster(1) as own:
        found = mapped(picky, items_of(range(5)), task="t", engine=on(own))
    assert [one.text for one in found.failed] == [
        "item 2: chains disagree",
        "item 3: no such number",
    ]


def test_an_item_that_kills_its_workers_is_named_and_waited_for_by_nobody(tmp_path):
    with cluster(1) as own:
        stopped = threading.Event()

        def replace_the_dead():
            while not stopped.wait(0.2):
                if own.workers[-1].poll() is not None:
                    own.add_worker()

        thread = threading.Thread(target=replace_the_dead)
        thread.start()
        try:
            items = items_of([(n, None) for n in range(6)])
            found = mapped(deadly, items, task="t", engine=on(own))
        finally:
            stopped.set()
            thread.join()
    assert [one.result for one in found.outcomes] == [0, 1, 2, None, 4, 5]
    assert [(one.name, one.kind) for one in found.failed] == [("item 3", LOST)]


def of_another_version(folder: Path) -> dict[str, str]:
    """Environment of a worker that has another version of the package."""
    told = folder / "grpo_advisor-0.0.9.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: grpo-advisor\nVersion: 0.0.9\n")
    paths = filter(None, [str(folder), os.environ.get("PYTHONPATH")])
    return {"PYTHONPATH": os.pathsep.join(paths)}


def test_a_worker_of_another_version_is_refused_by_name(tmp_path):
    with cluster(1) as own:
        own.add_worker(of_another_version(tmp_path))
        own.wait_for(2)
        with pytest.raises(
            InputError, match=rf"worker tcp://127\.0\.0\.1:\d+ has version 0\.0\.9 of .* {VERSION}"
        ) as refused:
            mapped(third, items_of(range(4)), task="t", engine=on(own))
    assert refused.value.argument == "engine"


def test_a_scheduler_that_is_not_there_is_one_sentence(monkeypatch):
    monkeypatch.setattr("advisor.engine.dask_cluster.TIMEOUT_SECONDS", 1)
    with pytest.raises(InputError, match=r"no Dask scheduler answers at 127\.0\.0\.1:9\.") as error:
        mapped(third, items_of([1]), task="t", engine=engine_of("dask://127.0.0.1:9"))
    assert "\n" not in str(error.value)


def test_a_cluster_without_a_worker_is_waited_for_and_that_is_said(monkeypatch):
    told = []

    def tell(stage, share, detail):
        told.append((stage, detail))
        if stage == WAITING:
            threading.Timer(1.0, own.add_worker).start()

    with cluster(0) as own:
        found = mapped(third, items_of(range(4)), task="t", engine=on(own), progress=tell)
    assert len(found.done) == 4
    assert (WAITING, f"{own.address} has none yet and was asked for one") in told


def test_a_worker_that_never_comes_is_one_sentence(monkeypatch):
    monkeypatch.setattr("advisor.engine.dask_cluster.WORKER_SECONDS", 1)
    with (
        cluster(0) as own,
        pytest.raises(InputError, match="no worker came to the Dask cl") as error,
    ):
        mapped(third, items_of(range(4)), task="t", engine=on(own))
    assert f"Start one with: dask worker tcp://{own.address}" in str(error.value)


def test_workers_that_come_are_asked_for_their_version(tmp_path):
    with cluster(0) as own:
        threading.Timer(1.0, own.add_worker, [of_another_version(tmp_path)]).start()
        with pytest.raises(InputError, match=r"has version 0\.0\.9 of"):
            mapped(third, items_of(range(4)), task="t", engine=on(own))


def test_a_cluster_that_goes_away_says_so_and_keeps_what_is_done(tmp_path):
    with cluster(1) as own:
        items = gated_items(tmp_path, 40, free=12)
        with once_kept(10, tmp_path, own.stop), pytest.raises(InputError, match="was lost"):
            mapped(gated_third, items, task="t", engine=on(own), keep=tmp_path)
    (tmp_path / "open").touch()
    found = mapped(gated_third, items, task="t", keep=tmp_path)
    assert 10 <= found.kept <= 12
