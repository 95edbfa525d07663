"""A function over many items: what is kept, what fails, what is done again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from joblib import parallel_config
from mapped_functions import counted, deadly, gated_third, picky, third

from advisor.common import Item, mapped
from advisor.errors import InputError

TWO = 2


def items_of(payloads, *marks):
    return [Item(f"item {n}", payload, (str(n), *marks)) for n, payload in enumerate(payloads)]


def gated_items(folder: Path, count: int, free: int) -> list[Item]:
    """Thirds, of which all but the first few wait until the folder holds the file ``open``."""
    return items_of([(str(folder), n, n >= free) for n in range(count)])


def counted_items(folder: Path, count: int, *marks: str) -> list[Item]:
    return items_of([(str(folder), n) for n in range(count)], *marks)


@pytest.fixture
def calls(tmp_path):
    """Folder in which every call leaves a file."""
    folder = tmp_path / "calls"
    folder.mkdir()
    return folder


def test_results_are_those_of_the_loop_in_its_order_on_one_process_and_on_two():
    loop = [third(n / 7) for n in range(20)]
    for jobs in (1, TWO):
        found = mapped(third, items_of([n / 7 for n in range(20)]), task="t", jobs=jobs)
        assert [one.result for one in found.outcomes] == loop  # to the last bit
        assert [one.name for one in found.outcomes] == [f"item {n}" for n in range(20)]
        assert (found.kept, found.failed) == (0, [])


def test_what_is_kept_is_not_done_again(tmp_path, calls):
    keep = tmp_path / "keep"
    first = mapped(counted, counted_items(calls, 3), task="t", keep=keep)
    assert len(list(calls.iterdir())) == 3
    again = mapped(counted, counted_items(calls, 5), task="t", keep=keep)
    assert len(list(calls.iterdir())) == 5
    assert (again.kept, again.outcomes[:3]) == (3, first.outcomes)
    assert len((keep / "items.jsonl").read_text().splitlines()) == 5


@pytest.mark.parametrize("changed", ["marks", "task", "version", "name"])
def test_another_version_prior_seed_or_task_is_another_item(tmp_path, calls, monkeypatch, changed):
    keep = tmp_path / "keep"
    mapped(counted, counted_items(calls, 2, "seed 1"), task="t", keep=keep)
    items, task = counted_items(calls, 2, "seed 1"), "t"
    if changed == "marks":
        items = counted_items(calls, 2, "seed 2")
    elif changed == "task":
        task = "u"
    elif changed == "name":
        items = [item._replace(name=item.name + "!") for item in items]
    else:
        monkeypatch.setattr("advisor.common.engine.VERSION", "9.9.9")
    assert mapped(counted, items, task=task, keep=keep).kept == 0
    assert len(list(calls.iterdir())) == 4


def test_a_line_that_breaks_off_costs_its_item_only(tmp_path, calls):
    keep = tmp_path / "keep"
    mapped(counted, counted_items(calls, 3), task="t", keep=keep)
    path = keep / "items.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 20])
    found = mapped(counted, counted_items(calls, 3), task="t", keep=keep)
    assert found.kept == 2
    assert len(list(calls.iterdir())) == 4
    assert mapped(counted, counted_items(calls, 3), task="t", keep=keep).kept == 2  # of one line
    assert mapped(counted, counted_items(calls, 3), task="t", keep=keep).kept == 3


def test_failures_are_named_and_the_rest_goes_on(tmp_path):
    for jobs in (1, TWO):
        found = mapped(picky, items_of(range(5)), task="t", jobs=jobs)
        assert [one.result for one in found.outcomes] == [0, 1, None, None, 4]
        assert [one.text for one in found.failed] == [
            "item 2: chains disagree",
            "item 3: no such number",
        ]
        assert [one.kind for one in found.failed] == ["NotConvergedError", "ValueError"]


@pytest.mark.evidence
def test_a_process_that_dies_is_one_sentence_and_what_is_kept_stands(tmp_path):
    items = items_of(range(12))
    with pytest.raises(InputError, match="2 processes was lost") as lost:
        mapped(deadly, items, task="t", jobs=TWO, keep=tmp_path)
    assert "\n" not in str(lost.value)
    assert "it continues from what `keep` contains" in str(lost.value)
    kept = tmp_path / "items.jsonl"  # the process may die before any item was done
    lines = kept.read_text().splitlines() if kept.exists() else []
    assert all(json.loads(line)["result"] != 3 for line in lines)


def test_a_client_that_is_killed_loses_at_most_what_was_under_way(tmp_path):
    keep, free, count = tmp_path / "keep", 12, 40
    script = f"""
from pathlib import Path
from mapped_functions import gated_third
from test_mapped import gated_items
from advisor.common import mapped
items = gated_items(Path({str(tmp_path)!r}), {count}, {free})
mapped(gated_third, items, task="t", jobs=2, keep=Path({str(keep)!r}))
"""
    here = Path(__file__).parent
    client = subprocess.Popen([sys.executable, "-c", script], cwd=here)
    path = keep / "items.jsonl"
    try:
        while not path.exists() or len(path.read_bytes().splitlines()) < 10:
            assert client.poll() is None
            time.sleep(0.02)
    finally:
        client.kill()
        client.wait()
    (tmp_path / "open").touch()  # also for the workers that it left behind
    there = len(path.read_text().splitlines())
    items = gated_items(tmp_path, count, free)
    found = mapped(gated_third, items, task="t", jobs=TWO, keep=keep)
    assert there - 1 <= found.kept <= there <= free
    assert [one.result for one in found.outcomes] == [third(n) for n in range(count)]


def test_a_context_of_joblib_replaces_processes():
    with parallel_config("threading", n_jobs=2):
        found = mapped(
            lambda n: threading.current_thread().name, items_of(range(4)), task="t", jobs=TWO
        )
    backends = {one.result for one in found.outcomes}
    assert threading.main_thread().name not in backends  # nor a process, where a lambda would fail


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written") as refused:
        mapped(third, items_of([1]), task="t", keep=tmp_path / "file")
    assert refused.value.argument == "keep"


FULL = """
import resource, sys
from pathlib import Path
from mapped_functions import third
from advisor.common import Item, mapped
from advisor.errors import InputError
resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700))
items = [Item(f"item {n}", n, (str(n),)) for n in range(50)]
try:
    mapped(third, items, task="t", keep=Path(sys.argv[1]))
except InputError as error:
    print(error)
"""


def test_a_disk_that_fills_up_is_one_sentence_and_what_is_kept_stays(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
    )
    assert "items.jsonl" in ended.stdout
    assert "what is done cannot be written (File too large)" in ended.stdout
    assert ended.stderr == ""
    found = mapped(third, items_of(range(50)), task="t", keep=tmp_path)
    assert 0 < found.kept < 50
    assert len(found.outcomes) == 50


def test_what_is_kept_and_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "items.jsonl").mkdir()
    with pytest.raises(InputError, match="what is kept cannot be read"):
        mapped(third, items_of([1]), task="t", keep=tmp_path)
