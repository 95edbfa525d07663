"""Clients that write studies until they are told to stop: a process of their own, as of others."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from advisor.study import store as store_module
from advisor.study.record import StudyRecord
from advisor.study.store import open_store

PAUSE_SECONDS = 0.2

PATIENCE_SECONDS = 600.0
"""A server on a busy machine may take more than a minute to start again."""


def numbered(record: StudyRecord, number: str) -> StudyRecord:
    """The same answer as another study."""
    return record.model_copy(update={"id": f"id-{number}", "name": f"study {number}"})


def write(url: str, record: StudyRecord, client: str, stop: Path) -> list[str]:
    """Ids of all studies that the store said it has, until a file of this name is there."""
    written: list[str] = []
    with open_store(url) as store:
        while not stop.exists():
            one = numbered(record, f"{client}-{len(written)}")
            store.put(one)
            written.append(one.id)
            time.sleep(PAUSE_SECONDS)
    return written


def main(url: str, file: str, clients: str, stop: str, out: str) -> None:
    """Write as so many clients, each a thread with connections of its own."""
    from concurrent.futures import ThreadPoolExecutor

    store_module.PATIENCE_SECONDS = PATIENCE_SECONDS
    record = StudyRecord.model_validate_json(Path(file).read_text(encoding="utf-8"))
    names = clients.split(",")
    with ThreadPoolExecutor(len(names)) as pool:
        jobs = [pool.submit(write, url, record, name, Path(stop)) for name in names]
        written = [one for job in jobs for one in job.result()]
    Path(out).write_text("\n".join(written), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
