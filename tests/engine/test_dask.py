"""The same in joblib's context of a Dask cluster, one of whose workers dies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clusters import Cluster, cluster
from joblib import parallel_config
from mapped_functions import gated_third, picky, third
from test_mapped import gated_items, items_of

from advisor.common import mapped

pytest.importorskip("distributed", reason="Dask is not installed: grpo-advisor[dask]")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.evidence]  # Dask's own


@contextmanager
def on(own: Cluster) -> Iterator[None]:
    from distributed import Client

    with Client(f"tcp://{own.address}"), parallel_config("dask"):
        yield


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

        with once_kept(10, tmp_path, kill_one), on(own):
            found = mapped(gated_third, items, task="t", keep=tmp_path)
        assert own.workers[0].poll() == -9
        assert own.workers[1].poll() is None
    assert [one.result for one in found.outcomes] == [third(n) for n in range(60)]
    assert len((tmp_path / "items.jsonl").read_text().splitlines()) == 60


def test_failures_are_named():
    with cluster(1) as own, on(own):
        found = mapped(picky, items_of(range(5)), task="t")
    assert [one.text for one in found.failed] == [
        "item 2: chains disagree",
        "item 3: no such number",
    ]
