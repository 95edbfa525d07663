"""Fifty clients write studies into PostgreSQL for a minute; the server is killed and restarts."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TESTS = HERE.parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "study_store")]

from postgres_server import running  # noqa: E402

from advisor.advice import advise  # noqa: E402
from advisor.study.record import StudyRecord  # noqa: E402
from advisor.study.store import open_store  # noqa: E402
from advisor.testing import made_up_posterior  # noqa: E402

CLIENTS, PROCESSES = 50, 5
AWAY_SECONDS = 2.0
START_SECONDS = 120.0


def store(seconds: float) -> dict[str, Any]:
    """Write, kill, restart, count."""
    posterior = made_up_posterior()
    answer = advise(posterior, trials=40, weigh_pilots=False)
    record = StudyRecord.of(posterior, answer, "study", Path("study"))
    with running() as server, tempfile.TemporaryDirectory() as scratch:
        url, folder = server.make_database("team"), Path(scratch)
        (folder / "record.json").write_text(record.model_dump_json(), encoding="utf-8")
        with open_store(url) as opened:
            assert opened.records() == []
        writers = []
        for number in range(PROCESSES):
            names = ",".join(f"{number}.{n}" for n in range(CLIENTS // PROCESSES))
            words = [
                url,
                str(folder / "record.json"),
                names,
                str(folder / "stop"),
                str(folder / f"{number}"),
            ]
            writers.append(
                subprocess.Popen(
                    [sys.executable, str(TESTS / "study_store" / "writers.py"), *words],
                    env=os.environ | {"PYTHONPATH": str(HERE.parents[1])},
                )
            )
        try:
            wait_for_all(url)
            time.sleep(seconds / 3)
            server.stop()
            time.sleep(AWAY_SECONDS)
            server.start()
            time.sleep(seconds * 2 / 3)
            (folder / "stop").touch()
            codes = [one.wait(START_SECONDS) for one in writers]
        finally:
            for one in writers:
                one.kill()
        said = [one for n in range(PROCESSES) for one in (folder / f"{n}").read_text().split()]
        started = time.perf_counter()
        with open_store(url) as opened:
            lines = opened.lines()
            listing = time.perf_counter() - started
            there = opened.records()
    ids = {one.id for one in there}
    return {
        "clients": CLIENTS,
        "seconds": seconds,
        "server_killed_for_seconds": AWAY_SECONDS,
        "exit_codes": codes,
        "written": len(said),
        "there": len(ids),
        "lost": len(set(said) - ids),
        "incomplete": sum(one.pilots != record.pilots for one in there),
        "listed": len(lines),
        "seconds_to_list_all": round(listing, 1),
    }


def wait_for_all(url: str) -> None:
    """Wait until every client has written something; on a busy machine some start late."""
    until = time.monotonic() + START_SECONDS
    with open_store(url) as opened:
        while time.monotonic() < until:
            if len({line["id"].rpartition("-")[0] for line in opened.lines()}) == CLIENTS:
                return
            time.sleep(1)
    raise SystemExit(f"some of the clients did not write within {START_SECONDS:g} seconds")
