"""Command that writes a study's page anew: report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.advice import Study
from advisor.cli.flags import Column, Debug, Settings, Sidecar, noted, pairs


def report(
    study: Study,
    pilots: Annotated[
        list[Path] | None,
        typer.Option(
            help="The study's pilot logs: adds a check of forecasts, which takes as long as a fit."
        ),
    ] = None,
    sidecar: Sidecar = None,
    settings: Settings = None,
    column: Column = None,
    seed: Annotated[int, typer.Option(help="Of the sampler of the check.", min=0)] = 1,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    debug: Debug = False,
) -> None:
    """Write report.html of a study: one file with figures, what-if sliders and configs.

    It opens in any browser, without a network.

    [bold]Example[/]: advisor report study --pilots runs/
    """
    from advisor.cli.plot import check_of
    from advisor.study.study import load_study, rewrite_report

    more = []
    if pilots:
        with noted(quiet=quiet):
            posterior, _ = load_study(study)
        overrides, columns = pairs(settings, "--set"), pairs(column, "--column")
        more.append(
            check_of(posterior, pilots, sidecar, overrides, columns, seed=seed, quiet=quiet)
        )
    with noted(quiet=quiet or bool(pilots)):  # said above
        typer.echo(rewrite_report(study, more))
