"""A PostgreSQL of our own for a few tests: in a temporary folder, on a free port, then gone."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

OWNERS = ("postgres", "nobody")
"""Who may own the cluster where the tests run as root, which PostgreSQL refuses to run as."""

PATIENCE_SECONDS = "240"
"""For which pg_ctl waits: on a busy machine a server starts slowly, and after a kill the more."""

DEBIAN = Path("/usr/lib/postgresql")
"""Where Debian keeps the programs of a server; they are on nobody's path."""


def program(name: str) -> Path | None:
    on_path = shutil.which(name)
    if on_path is not None:
        return Path(on_path)
    return max(DEBIAN.glob(f"*/bin/{name}"), default=None)


def owner() -> str | None:
    """User to switch to, or None where we may run it ourselves."""
    if os.geteuid() != 0:
        return None
    known = {user.pw_name for user in pwd.getpwall()}
    for name in OWNERS:
        if name in known:
            return name
    pytest.skip("PostgreSQL does not run as root, and there is no user to switch to")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def has_driver() -> bool:
    from sqlalchemy import create_engine

    try:
        create_engine("postgresql://")
    except ImportError:
        return False
    return True


class Server:
    """A server that can be stopped and started again; ``url`` ends before a database's name."""

    def __init__(self, folder: Path, user: str | None, control: Path) -> None:
        port = free_port()
        self.url = f"postgresql://advisor@127.0.0.1:{port}"
        self._folder, self._user, self._control = folder, user, control
        self._options = (
            f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
        )

    def call(self, *words: str | Path) -> None:
        done = subprocess.run(
            words, user=self._user, cwd=self._folder, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        log = self._folder / "log"
        self.call(*self._controlled(), "-l", log, "-o", self._options, "-w", "start")

    def stop(self) -> None:
        """As if it had been killed: what it did not write down is lost."""
        self.call(*self._controlled(), "-m", "immediate", "-w", "stop")

    def make_database(self, name: str) -> str:
        """URL of a new database."""
        from sqlalchemy import create_engine, text

        engine = create_engine(f"{self.url}/postgres", isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f"create database {name}"))
        engine.dispose()
        return f"{self.url}/{name}"

    def _controlled(self) -> tuple[str | Path, ...]:
        return self._control, "-D", self._folder / "data", "-t", PATIENCE_SECONDS


@contextmanager
def running() -> Iterator[Server]:
    """A fresh server; skips the test where its programs or a driver are missing."""
    initdb, control = program("initdb"), program("pg_ctl")
    if initdb is None or control is None:
        pytest.skip("no PostgreSQL server is installed (initdb, pg_ctl)")
    if not has_driver():
        pytest.skip("no PostgreSQL driver is installed: pip install 'psycopg[binary]'")
    user = owner()
    # Not pytest's own folder, which another user may not enter.
    folder = Path(tempfile.mkdtemp(prefix="advisor-postgres-"))
    if user is not None:
        shutil.chown(folder, user)
    server = Server(folder, user, control)
    try:
        server.call(initdb, "-D", folder / "data", "-U", "advisor", "-A", "trust", "--no-sync")
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)
