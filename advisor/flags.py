"""What the commands of all files share: a flag, and a width."""

from __future__ import annotations

from typing import Annotated

import typer

Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]

WIDE = 200
"""Columns of a table that goes to a file or a pipe."""
