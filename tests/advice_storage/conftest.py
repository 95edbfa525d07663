"""A PostgreSQL of our own for a few tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from postgres_server import running


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """URL of a fresh server, up to the name of a database."""
    with running() as found:
        yield found.url
