"""What the commands of all files share: arguments, flags, and a width."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]

Quiet = Annotated[bool, typer.Option("--quiet", help="No notes; only the answer.")]

WIDE = 200
"""Columns of a table that goes to a file or a pipe."""

Logs = Annotated[list[Path], typer.Argument(help="Pilot logs, or folders of them.")]
Sidecar = Annotated[
    Path | None,
    typer.Option(help="pilots.toml or .csv with settings that the logs do not hold."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Setting of every pilot, e.g. --set group_size=8. Repeat."),
]
Column = Annotated[
    list[str] | None,
    typer.Option(help="Column of a table, e.g. --column reward=train/acc. Repeat."),
]


def pairs(values: list[str] | None, flag: str) -> dict[str, str]:
    """Split ``key=value`` flags.

    Raises
    ------
    InputError
        One of them is no pair.
    """
    from advisor.errors import InputError

    out = {}
    for value in values or []:
        key, separator, content = value.partition("=")
        if not separator or not key or not content:
            raise InputError(
                f"'{value}' is no key=value", key=flag, advice=f"Write {flag} name=value"
            )
        out[key.strip()] = content.strip()
    return out


@contextmanager
def noted(*, quiet: bool = False) -> Iterator[None]:
    """Turn warnings into notes on standard error, without a line of code; or into nothing."""
    import warnings

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield
    if not quiet:
        for warning in said:
            typer.echo(f"Note: {warning.message}.", err=True)
