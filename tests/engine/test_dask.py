"""The same on a Dask cluster whose workers die, are of another version, or are not there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clusters import cluster
from mapped_functions import gated_third, picky, third
from test_mapped import gated_items, items_of

from advisor.common import Engine, engine_of, mapped
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


@pytest.mark.evidence
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


@pytest.mark.evidence
def test_failures_are_named(tmp_path):
    with cluster(1) as own:
        found = mapped(picky, items_of(range(5)), task="t", engine=on(own))
    assert [one.text for one in found.failed] == [
        "item 2: chains disagree",
        "item 3: no such number",
    ]


def test_a_scheduler_that_is_not_there_is_one_sentence():
    with pytest.raises(InputError, match=r"no cluster answers at dask://127\.0\.0\.1:9\.") as error:
        mapped(third, items_of([1]), task="t", engine=engine_of("dask://127.0.0.1:9"))
    assert "\n" not in str(error.value)


@pytest.mark.evidence
def test_a_cluster_that_goes_away_says_so_and_keeps_what_is_done(tmp_path):
    with cluster(1) as own:
        items = gated_items(tmp_path, 40, free=12)
        with once_kept(10, tmp_path, own.stop), pytest.raises(InputError, match="was lost"):
            mapped(gated_third, items, task="t", engine=on(own), keep=tmp_path)
    (tmp_path / "open").touch()
    found = mapped(gated_third, items, task="t", keep=tmp_path)
    assert 10 <= found.kept <= 12
