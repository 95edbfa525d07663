"""Command that writes a study's page anew: report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.flags import Debug, Quiet, noted


def report(
    study: Annotated[Path, typer.Argument(help="Folder that advisor advise or demo wrote.")],
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write report.html of a study: one file with figures, what-if sliders and configs.

    Open it in any browser; it needs no network. [bold]Example[/]: advisor report study
    """
    from advisor.study import rewrite_report

    with noted(quiet=quiet):
        path = rewrite_report(study)
    typer.echo(path)
