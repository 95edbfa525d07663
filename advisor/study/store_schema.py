"""Tables of a team's store, and how an older one becomes today's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    Column,
    DateTime,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    func,
    insert,
    inspect,
    select,
    text,
    update,
)

from advisor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

LOCK = 7_236_401
"""Key of the lock under which one client at a time looks after the tables (PostgreSQL)."""

tables = MetaData()

schema = Table("advisor_schema", tables, Column("version", Integer, nullable=False))

studies = Table(
    "advisor_studies",
    tables,
    Column("id", String(40), primary_key=True),
    Column("name", String, nullable=False, index=True),
    Column("origin", String, nullable=False),
    Column("stored", DateTime(timezone=True), server_default=func.now(), nullable=False),
    Column("created", String, nullable=False, index=True),
    Column("task", String, nullable=False, index=True),
    Column("model", String, nullable=False, index=True),
    Column("kind", String, nullable=False),
    Column("preset", String, nullable=False),
    Column("package", String, nullable=False),
    Column("data", String, nullable=False, index=True),
    Column("learning_rate", Float, nullable=False),
    Column("reward", Float, nullable=False),
    Column("p_stable", Float, nullable=False),
    # Text: a forecast may be infinite, which the JSON of databases is not.
    Column("answer", Text, nullable=False),
    # What a list shows, so that a list of thousands opens no answer.
    Column("line", Text, nullable=False),
)

pilots = Table(
    "advisor_pilots",
    tables,
    Column("study", ForeignKey("advisor_studies.id", ondelete="CASCADE"), primary_key=True),
    Column("run", String, primary_key=True),
    Column("place", Integer, nullable=False),
    Column("fingerprint", String, nullable=False, index=True),
    Column("summary", Text, nullable=False),
)


def _make_studies(connection: Connection) -> None:
    schema.create(connection)
    connection.execute(insert(schema).values(version=0))
    studies.create(connection)


def _make_pilots(connection: Connection) -> None:
    pilots.create(connection)


STEPS: tuple[Callable[[Connection], None], ...] = (_make_studies, _make_pilots)
"""From nothing to version 1, from 1 to 2, and so on; a step is never changed, only added."""

VERSION = len(STEPS)


def version_of(connection: Connection) -> int:
    """Version of the tables; 0 where there are none."""
    if not inspect(connection).has_table(schema.name):
        return 0
    return int(connection.execute(select(schema.c.version)).scalar_one())


def migrate(connection: Connection, steps: int = VERSION) -> int:
    """Bring the tables to today's version; what they hold stays.

    Parameters
    ----------
    connection : Connection
        In a transaction: all of it happens, or nothing.
    steps : int
        Version to reach.

    Returns
    -------
    version : int
        That there was before.

    Raises
    ------
    InputError
        The store was made by a later version of the package.
    """
    _lock(connection)
    before = version_of(connection)
    if before > VERSION:
        raise InputError(
            f"the store has schema {before}, made by a later version of grpo-advisor; this one "
            f"knows schema {VERSION}",
            argument="store",
            advice="Install the later version; nothing was changed",
        )
    for number in range(before, steps):
        STEPS[number](connection)
        connection.execute(update(schema).values(version=number + 1))
    return before


def _lock(connection: Connection) -> Any:
    """Hold all other clients off until the transaction ends."""
    if connection.dialect.name == "postgresql":
        return connection.execute(text(f"select pg_advisory_xact_lock({LOCK})"))
    return connection.exec_driver_sql("begin immediate")
