"""Studies and stores for the tests of a team's store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import Server, running

from advisor.advice import advise
from advisor.study.record import StudyRecord
from advisor.testing import made_up_posterior


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with running() as found:
        yield found


@pytest.fixture(scope="session")
def record() -> StudyRecord:
    """Record of an answer from a made-up posterior."""
    posterior = made_up_posterior()
    answer = advise(posterior, trials=20, weigh_pilots=False)
    return StudyRecord.of(posterior, answer, "study-may", Path("studies/study-may"))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path) -> str:
    """A store of each kind, empty."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/team.db"
    name = "".join(letter for letter in request.node.name if letter.isalnum()).lower()[:50]
    return request.getfixturevalue("server").make_database(f"s{name}")
