"""``advisor inspect``: what a folder of logs holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from advisor.cli import flags
from advisor.cli.advise import CANNOT_TELL
from advisor.cli.echo import echo

if TYPE_CHECKING:
    from advisor.runs import Inspection


def inspect(
    logs: flags.Logs,
    sidecar: flags.Sidecar = None,
    settings: flags.Settings = None,
    column: flags.Column = None,
    explained: flags.Explain = False,
    quiet: flags.Quiet = False,
    as_json: flags.Json = False,
    debug: flags.Debug = False,
) -> None:
    """Show which runs a folder holds, what was understood, and what to add before a fit.

    With --quiet only the runs are shown.

    [bold]Example[/]: advisor inspect runs/ --explain
    """
    from advisor.cli.terminal import output
    from advisor.runs import as_json as to_json
    from advisor.runs import explain, show
    from advisor.runs import inspect as inspect_logs

    found = inspect_logs(logs, **flags.stated(sidecar, settings, column))
    if as_json:
        echo(to_json(found))
    else:
        console = output()
        show(found, console, quiet=quiet)
        if found.runs and not quiet:
            echo("advisor advise counts GPU-hours of one GPU, unless --gpus says how many.")
        if explained:
            explain(found, console)
    require_runs(found, logs)
    if found.is_flat:
        raise typer.Exit(CANNOT_TELL)


def require_runs(found: Inspection, logs: Sequence[str | Path], why: str = "") -> None:
    """Raise an ``InputError`` where no run was found."""
    from advisor.errors import InputError
    from advisor.runs import known_formats

    if not found.runs:
        raise InputError(
            "no run was found" + (f" ({why})" if why else ""),
            path=", ".join(str(path) for path in logs[:3]),
            advice=f"Give a folder or file that holds one of: {known_formats()}",
        )
