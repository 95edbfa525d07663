"""Console of the made-up trainer: ``mu! pace=1e-6`` once, then ``mu> mu_turn=1 mu_praise=0.2``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from advisor.errors import InputError
from advisor.runs import Claim, Columns, LogFile, Logged, Reader, TableBuilder

PAIR = re.compile(r"(\w+)=(\S+)")


def claims(log: LogFile) -> bool:
    """Whether a text file holds a row of the made-up trainer."""
    return log.suffix == ".out" and b"\nmu> " in log.head()


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the one run of a console."""
    (log,) = logs
    builder = TableBuilder(log.path)
    settings: dict[str, str] = {}
    for line in log.lines(strict=False):
        if line.text.startswith("mu> "):
            builder.add(line.number, dict(PAIR.findall(line.text)))
        elif line.text.startswith("mu! "):
            settings |= dict(PAIR.findall(line.text))
    if not len(builder):
        raise InputError("no row", path=log.path, advice="Wait for the first step")
    yield Logged(builder.build(), framework="made-up", settings=settings)


READER = Reader("made-up console", claims, read, claim=Claim.LINE)
