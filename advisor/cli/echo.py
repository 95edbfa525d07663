"""What the command line prints: names out of logs do not steer the terminal."""

from __future__ import annotations

import typer

from advisor.common import harmless


def echo(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print text that may hold names of others, to standard output or standard error."""
    typer.echo(harmless(str(text)), err=err, nl=nl)
