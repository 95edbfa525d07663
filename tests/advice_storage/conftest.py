"""A PostgreSQL of our own for a few tests: in a temporary folder, on a free port, then gone."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

OWNERS = ("postgres", "nobody")
"""Who may own the cluster where the tests run as root, which PostgreSQL refuses to run as."""

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


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """URL of a fresh server, up to the name of a database."""
    initdb, control = program("initdb"), program("pg_ctl")
    if initdb is None or control is None:
        pytest.skip("no PostgreSQL server is installed (initdb, pg_ctl)")
    if not has_driver():
        pytest.skip("no PostgreSQL driver is installed: pip install 'grpo-advisor[postgres]'")
    user = owner()
    # Not pytest's own folder, which another user may not enter.
    folder = Path(tempfile.mkdtemp(prefix="advisor-postgres-"))
    if user is not None:
        shutil.chown(folder, user)

    def call(*words: str | Path) -> None:
        done = subprocess.run(words, user=user, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    port, data = free_port(), folder / "data"
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    try:
        call(initdb, "-D", data, "-U", "advisor", "-A", "trust", "--no-sync")
        call(control, "-D", data, "-l", folder / "log", "-o", options, "-w", "start")
        try:
            yield f"postgresql://advisor@127.0.0.1:{port}"
        finally:
            call(control, "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder)
