"""A team's studies in one database: PostgreSQL, or a SQLite file of one machine.

Folders stay what a study is; the store holds what a list of them needs: answers, settings, and the
summaries of pilots. Optuna's searches live in the same database (`advisor advise --storage`).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from advisor.errors import InputError
from advisor.run.shown import without_password
from advisor.study.record import StudyRecord

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Select

PATIENCE_SECONDS = 60.0
"""For how long a write is tried again while the server is away: it may be restarting."""

OPENING_SECONDS = 3.0
"""The same for opening a store: who named a wrong host shall not wait for a minute."""

CONNECT_SECONDS = 3
"""For one connection: libpq would wait for two minutes for a host that drops what it is sent."""

PAUSE_SECONDS = 0.5

RETRIED = ("08", "57", "40", "55")
"""Classes of SQLSTATE that pass: connection, operator (restart), serialisation, lock."""

AWAY = ("OperationalError", "InterfaceError", "ConnectionTimeout")
"""Errors of drivers without a SQLSTATE that say that the server is not there."""

Result = TypeVar("Result")


class Store:
    """An open store; made by :func:`open_store`."""

    def __init__(self, engine: Engine, url: str) -> None:
        self._engine = engine
        self._url = url

    def put(self, record: StudyRecord) -> bool:
        """Write a study, whole or not at all; tried again while the server restarts.

        Parameters
        ----------
        record : StudyRecord

        Returns
        -------
        is_new : bool
            False where it was there already: writing it again changes nothing.

        Raises
        ------
        InputError
            The server stayed away.
        """
        return self._tried(lambda connection: _put(connection, record))

    def lines(self, *, since: str | None = None, **filters: str | None) -> list[dict[str, Any]]:
        """Lines of a list of studies (`StudyRecord.line`), the latest first.

        Parameters
        ----------
        since : str, optional
            Date, as ``2026-11-01``.
        **filters : str
            ``task``, ``model``, ``kind``, ``preset``, ``name``: equal to these.

        Returns
        -------
        lines : list of dict
        """
        from sqlalchemy import desc, select

        from advisor.study.store_schema import studies

        asked = select(studies.c.line).order_by(desc(studies.c.created), studies.c.id)
        for key, value in filters.items():
            if value is not None:
                asked = asked.where(studies.c[key] == value)
        if since is not None:
            asked = asked.where(studies.c.created >= since)
        found = self._tried(lambda connection: connection.execute(asked).scalars().all())
        return [json.loads(line) for line in found]

    def records(self) -> list[StudyRecord]:
        """Everything that the store holds, the latest first."""
        from sqlalchemy import desc, select

        from advisor.study.store_schema import studies

        asked = select(studies).order_by(desc(studies.c.created), studies.c.id)
        return self._tried(lambda connection: _read(connection, asked))

    def find(self, name: str) -> StudyRecord:
        """Study by its name or the beginning of its id; of one name the latest.

        Raises
        ------
        InputError
            There is none, or several ids begin so.
        """
        from sqlalchemy import desc, or_, select

        from advisor.study.store_schema import studies

        asked = select(studies).order_by(desc(studies.c.created), studies.c.id)
        asked = asked.where(
            or_(studies.c.name == name, studies.c.id.startswith(name, autoescape=True))
        )
        found = self._tried(lambda connection: _read(connection, asked))
        named = [one for one in found if one.name == name]
        if named or len(found) == 1:
            return (named or found)[0]
        if found:
            raise InputError(
                f"{len(found)} studies have ids that begin with '{name}'",
                advice="Give more of it",
            )
        raise InputError(
            f"the store holds no study '{name}'", advice="advisor studies list names those it holds"
        )

    def _tried(self, work: Callable[[Connection], Result]) -> Result:
        """Do some work in one transaction, again for as long as the server is away."""
        return _tried(self._engine, self._url, work, PATIENCE_SECONDS)


@contextmanager
def open_store(url: str) -> Iterator[Store]:
    """Open a store, bring its tables to today's version, and close it in the end.

    Parameters
    ----------
    url : str
        ``postgresql://USER@HOST/DATABASE``, or ``sqlite:///FILE``.

    Yields
    ------
    store : Store

    Raises
    ------
    InputError
        It cannot be reached, its driver is not installed, or a later version made it.
    """
    if not re.match(r"(postgresql|sqlite)(\+\w+)?://", url):
        raise InputError(
            f"'{without_password(url)}' is no store",
            argument="store",
            advice="Write postgresql://USER@HOST/DATABASE, or sqlite:///FILE",
        )
    try:
        from sqlalchemy import create_engine
        from sqlalchemy.exc import ArgumentError
        from sqlalchemy.pool import NullPool

        from advisor.study.store_schema import migrate

        # Connections of a client that does nothing are connections that fifty others lack.
        engine = create_engine(
            _with_driver(url), poolclass=NullPool, connect_args=_connect_arguments(url)
        )
    except ImportError as error:
        raise InputError(
            f"the driver of the store is not installed ({error})",
            argument="store",
            advice="Install it with: pip install 'grpo-advisor[postgres]'",
        ) from error
    except ArgumentError as error:
        raise _unreachable(url, error) from error
    try:
        _tried(engine, url, migrate, OPENING_SECONDS)
        yield Store(engine, url)
    finally:
        engine.dispose()


def _connect_arguments(url: str) -> dict[str, Any]:
    """A host that drops what it is sent is not waited for as long as its driver would."""
    is_server = url.startswith("postgresql")
    return {"connect_timeout": CONNECT_SECONDS} if is_server else {}


def _with_driver(url: str) -> str:
    """URL that names psycopg 3 where it names no driver."""
    return re.sub(r"^postgresql://", "postgresql+psycopg://", url)


def _tried(
    engine: Engine, url: str, work: Callable[[Connection], Result], patience: float
) -> Result:
    """Do some work in one transaction, again where the server was away, for so many seconds."""
    from sqlalchemy.exc import DBAPIError

    until = time.monotonic() + patience
    while True:
        try:
            with engine.begin() as connection:
                return work(connection)
        except DBAPIError as error:
            away = _is_away(error)
            if not away or time.monotonic() > until:
                raise _unreachable(url, error, away=away) from error
        time.sleep(PAUSE_SECONDS)


def _is_away(error: Any) -> bool:
    """Whether a statement failed because the server did, or another writer was in the way."""
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return str(state)[:2] in RETRIED
    kind = type(error.orig).__name__
    return bool(error.connection_invalidated) or kind in AWAY


def _reason(error: Exception) -> str:
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _unreachable(url: str, error: Exception, *, away: bool = True) -> InputError:
    what = "cannot be reached" if away else "refused it"
    return InputError(
        f"{without_password(url)} {what} ({_reason(error)})",
        argument="store",
        advice="Check host, user and database, that the server runs, and that you may write there",
    )


def _put(connection: Connection, record: StudyRecord) -> bool:
    from sqlalchemy.dialects import postgresql, sqlite

    from advisor.study.store_schema import pilots, studies

    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    row, columns = record.row, set(studies.c.keys())
    values = {
        **{key: value for key, value in row.items() if key in columns},
        "id": record.id,
        "origin": record.origin,
        "answer": json.dumps(record.answer.model_dump(mode="json")),
        "line": json.dumps(record.line),
    }
    asked = dialect.insert(studies).values(values).on_conflict_do_nothing()
    if connection.execute(asked.returning(studies.c.id)).first() is None:
        return False  # also where an earlier try was committed, and the server died in answering
    rows = [
        {
            "study": record.id,
            "run": run.id,
            "place": place,
            "fingerprint": run.fingerprint,
            "summary": json.dumps(run.model_dump(mode="json")),
        }
        for place, run in enumerate(record.pilots)
    ]
    if rows:
        connection.execute(pilots.insert(), rows)
    return True


def _read(connection: Connection, asked: Select[Any]) -> list[StudyRecord]:
    from sqlalchemy import select

    from advisor.study.store_schema import pilots

    rows = connection.execute(asked).mappings().all()
    of_study: dict[str, list[Any]] = {row["id"]: [] for row in rows}
    for some in _parts(list(of_study)):
        told = select(pilots.c.study, pilots.c.summary).where(pilots.c.study.in_(some))
        for study, summary in connection.execute(told.order_by(pilots.c.study, pilots.c.place)):
            of_study[study].append(json.loads(summary))
    return [
        StudyRecord(
            id=row["id"],
            name=row["name"],
            origin=row["origin"],
            answer=json.loads(row["answer"]),
            pilots=tuple(of_study[row["id"]]),
        )
        for row in rows
    ]


def _parts(values: Sequence[str], size: int = 500) -> Iterator[Sequence[str]]:
    """A few at a time: databases bound the length of a question."""
    for at in range(0, len(values), size):
        yield values[at : at + size]
