"""``advisor report``: a study's page, written anew."""

from __future__ import annotations

import typer

from advisor.cli import flags


def report(
    study: flags.StudyFolder,
    pilots: flags.Pilots = None,
    sidecar: flags.Sidecar = None,
    settings: flags.Settings = None,
    column: flags.Column = None,
    seed: flags.Seed = 1,
    quiet: flags.Quiet = False,
    debug: flags.Debug = False,
) -> None:
    """Write report.html of a study: one file with figures, what-if sliders and configs.

    It opens in any browser, without a network. With --pilots it also shows a check of forecasts,
    which takes as long as a fit.

    [bold]Example[/]: advisor report study --pilots runs/
    """
    from advisor.cli.plot import check_forecasts
    from advisor.cli.terminal import load, noted
    from advisor.study.study import rewrite_report

    more = []
    if pilots:
        posterior, _ = load(study, quiet=quiet)
        beside = flags.stated(sidecar, settings, column)
        more.append(check_forecasts(posterior, pilots, beside, seed=seed, quiet=quiet))
    with noted(quiet=quiet or bool(pilots)):  # said above
        typer.echo(rewrite_report(study, more))
