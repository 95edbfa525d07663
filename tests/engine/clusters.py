"""A Dask cluster of our own: a scheduler and workers, each a process that a test may kill."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
TIMEOUT_SECONDS = 240


class Cluster:
    """A scheduler of this machine, and its workers."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        self.workers: list[subprocess.Popen[bytes]] = []
        self._scheduler = start(
            "scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"
        )

    def add_worker(self, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a worker of one thread; it is not started again where it dies."""
        worker = start(
            "worker",
            f"tcp://{self.address}",
            *("--nthreads", "1", "--no-nanny", "--no-dashboard"),
            environment=environment,
        )
        self.workers.append(worker)
        return worker

    def wait_for(self, count: int) -> None:
        """Wait until so many workers are there."""
        from distributed import Client

        until = time.monotonic() + TIMEOUT_SECONDS
        while True:
            try:
                with Client(f"tcp://{self.address}", timeout=2, set_as_default=False) as client:
                    if count:
                        client.wait_for_workers(count, timeout=TIMEOUT_SECONDS)
                    return
            except OSError:
                if time.monotonic() > until:
                    raise

    def stop(self) -> None:
        for process in (*self.workers, self._scheduler):
            process.kill()
            process.wait()


def start(*words: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a program of Dask that can import what stands in this folder."""
    paths = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    given = os.environ | {"PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"} | dict(environment or {})
    return subprocess.Popen(
        [sys.executable, "-m", "dask", *words],
        env=given,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@contextmanager
def cluster(workers: int) -> Iterator[Cluster]:
    """A cluster with so many workers, gone in the end."""
    own = Cluster()
    try:
        for _ in range(workers):
            own.add_worker()
        own.wait_for(workers)
        yield own
    finally:
        own.stop()
